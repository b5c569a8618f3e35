"""Each invariant is broken by a state that breaks nothing else, and says so by its sentence."""

from collections.abc import Callable

import pytest
from attrs import evolve

from kvvmm_model.invariants import INVARIANTS, broken
from kvvmm_model.state import Handle, Mapping, Pooled, State, initial
from kvvmm_model.vocabulary import Rights, Settings, Standing

ADDRESS = 1 << 40


def sound() -> State:
    """One thing of every kind; a granule is a byte.

    Handles 1 (of two granules) and 2 in the open reservation 1, 3 and 4 in the pool, 5
    quarantined, 6 in quarantine in the closed reservation 2; reservation 3 is quarantined.
    """
    state = initial(Settings(1, retention=3), limit=20)
    for size in (8, 4, 2):
        state = state.reserved(ADDRESS + 100 * state.next_reservation, size)
    for size in (2, 1, 1, 1, 1, 1):
        state = state.granted(size).created(10 * state.next_handle, size)
    for mapping in (Mapping(1, 0, 1, 2), Mapping(1, 5, 2, 1)):
        state = state.mapped(mapping).rights((mapping,), Rights.RW)
    state = state.pooled(3).pooled(4).handle_quarantined(5)
    doubtful = Mapping(2, 1, 6, 1)
    state = state.mapped(doubtful).quarantined((doubtful,)).standing(2, Standing.CLOSED)
    return shared(state.standing(3, Standing.QUARANTINED))


def shared(state: State) -> State:
    """Reservation 4 has handles 7 and 8; 7 is sealed in prefix 1, both are in prefix 2, unsealed.

    Prefix 3 alone holds handle 9.
    """
    state = state.reserved(ADDRESS + 600, 4)
    for size in (1, 1, 1):
        state = state.granted(size).created(10 * state.next_handle, size)
    for window, handle in enumerate((7, 8)):
        mapping = Mapping(4, window, handle, 1)
        state = state.mapped(mapping).rights((mapping,), Rights.RW)
    read_only = state.reservations[4].mappings[:1]
    state = state.published(4, (7,)).rights(read_only, Rights.READ)
    state = state.sealed(state.prefixes[1]).published(4, (7, 8)).published(1, (9,))
    return state.sealed(state.prefixes[3])


def changed(state: State, **by: int) -> State:
    """The state with counts of its ledger raised or lowered."""
    counts = {name: getattr(state.ledger, name) + amount for name, amount in by.items()}
    return evolve(state, ledger=state.ledger._replace(**counts))


def with_handle(state: State, handle: Handle) -> State:
    return evolve(state, handles=state.handles.put(handle.serial, handle))


def with_mappings(state: State, serial: int, *mappings: Mapping) -> State:
    found = evolve(state.reservations[serial], mappings=mappings)
    return evolve(state, reservations=state.reservations.put(serial, found))


def first(state: State) -> Mapping:
    return state.reservations[1].mappings[0]


def last(state: State) -> Mapping:
    return state.reservations[1].mappings[1]


def owned_miscounted(state: State) -> State:
    return changed(state, owned=1, charged=1)


def pooled_miscounted(state: State) -> State:
    return changed(state, pooled=1)


def quarantined_miscounted(state: State) -> State:
    return changed(state, quarantined=1)


def handle_in_two_classes(state: State) -> State:
    twice = evolve(state.handles[2], quarantined=True)
    return changed(with_handle(state, twice), quarantined=1)


def handle_in_no_class(state: State) -> State:
    return changed(with_handle(state, Handle(19, 190, 1)), owned=1, charged=1)


def charge_too_high(state: State) -> State:
    return changed(state, charged=1)


def grant_forgotten(state: State) -> State:
    return changed(state, granted=1)


def count_negative(state: State) -> State:
    return changed(state, unattributed_addresses=-1)


def reference_too_many(state: State) -> State:
    return with_handle(state, evolve(state.handles[7], mappings=2))


def prefix_not_counted(state: State) -> State:
    return with_handle(state, evolve(state.handles[8], prefixes=0))


def held_miscounted(state: State) -> State:
    return changed(state, held=1)


def unsealed_prefix_elsewhere(state: State) -> State:
    astray = evolve(state.prefixes[2], reservation=1)
    return evolve(state, prefixes=state.prefixes.put(2, astray))


def unsealed_prefix_without_an_owner(state: State) -> State:
    astray = evolve(state.prefixes[2], reservation=2)
    return evolve(state, prefixes=state.prefixes.put(2, astray))


def unsealed_prefix_in_doubt(state: State) -> State:
    return state.quarantined(state.reservations[4].mappings[1:])


def sealed_and_writable(state: State) -> State:
    return state.rights(state.reservations[4].mappings[:1], Rights.RW)


def mapped_miscounted(state: State) -> State:
    return changed(state, mapped=1)


def mapping_past_the_end(state: State) -> State:
    return with_mappings(state, 1, first(state), evolve(last(state), window=8))


def mappings_overlap(state: State) -> State:
    return with_mappings(state, 1, first(state), evolve(last(state), window=1))


def mapping_of_another_reservation(state: State) -> State:
    return with_mappings(state, 1, first(state), evolve(last(state), reservation=2))


def mapping_of_part_of_a_handle(state: State) -> State:
    smaller = evolve(first(state), size=1)
    return changed(with_mappings(state, 1, smaller, last(state)), mapped=-1)


def ranges_overlap(state: State) -> State:
    near = evolve(state.reservations[2], address=state.reservations[1].address + 7)
    return evolve(state, reservations=state.reservations.put(2, near))


def writable_twice(state: State) -> State:
    alias = evolve(last(state), window=6)
    state = with_mappings(state, 1, first(state), last(state), alias)
    return changed(with_handle(state, evolve(state.handles[2], mappings=2)), mapped=1)


def rights_open(state: State) -> State:
    return with_mappings(state, 1, first(state), evolve(last(state), rights=Rights.NONE))


def in_use_though_closed(state: State) -> State:
    (doubtful,) = state.reservations[2].mappings
    return with_mappings(state, 2, evolve(doubtful, quarantined=False, rights=Rights.RW))


def closed_and_empty(state: State) -> State:
    return state.reserved(ADDRESS + 900, 1).standing(5, Standing.CLOSED)


def quarantined_and_mapped(state: State) -> State:
    return state.standing(2, Standing.QUARANTINED)


def pool_out_of_order(state: State) -> State:
    return evolve(state, pool=state.pool[::-1])


def pool_with_one_place_twice(state: State) -> State:
    return evolve(state, pool=(Pooled(1, 3), Pooled(1, 4)))


def pool_above_its_bound(state: State) -> State:
    return evolve(state, settings=evolve(state.settings, retention=1))


CASES: dict[str, tuple[Callable[[State], State], ...]] = {
    "L-1 owned": (
        owned_miscounted,
        pooled_miscounted,
        quarantined_miscounted,
        handle_in_two_classes,
        handle_in_no_class,
        held_miscounted,
    ),
    "L-2 charged": (charge_too_high, grant_forgotten, count_negative),
    "L-4 a handle's references": (reference_too_many, prefix_not_counted),
    "L-4 an unsealed prefix": (
        unsealed_prefix_elsewhere,
        unsealed_prefix_without_an_owner,
        unsealed_prefix_in_doubt,
    ),
    "L-5 mapped": (
        mapped_miscounted,
        mapping_past_the_end,
        mappings_overlap,
        mapping_of_another_reservation,
        mapping_of_part_of_a_handle,
    ),
    "L-6 no two ranges": (ranges_overlap,),
    "L-7 a handle": (writable_twice,),
    "L-7 nothing sealed": (sealed_and_writable,),
    "L-8 a mapping": (rights_open, in_use_though_closed),
    "L-8 a closed range": (closed_and_empty, quarantined_and_mapped),
    "L-1 the pool": (pool_out_of_order, pool_with_one_place_twice, pool_above_its_bound),
}
PAIRS = [(begin, change) for begin, changes in CASES.items() for change in changes]


def test_sound_state_breaks_nothing() -> None:
    assert broken(sound()) == []
    assert broken(initial(Settings(1), limit=0)) == []


def test_every_invariant_has_a_case() -> None:
    assert len(CASES) == len(INVARIANTS)
    for sentence in INVARIANTS:
        assert sum(sentence.startswith(begin) for begin in CASES) == 1


@pytest.mark.parametrize(("begin", "change"), PAIRS, ids=[change.__name__ for _, change in PAIRS])
def test_state_that_breaks_one_invariant_is_told_by_its_sentence(
    begin: str, change: Callable[[State], State]
) -> None:
    (sentence,) = (sentence for sentence in INVARIANTS if sentence.startswith(begin))
    told = broken(change(sound()))
    assert told
    for line in told:
        assert line.startswith(f"{sentence}: ")
