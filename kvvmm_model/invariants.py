"""What holds in every state at rest, fault or not: predicates under the sentence they mean.

Those that need more than a state are checked where it is at hand: L-3 (charged against physical)
and L-9 (contents) by the comparison, L-6 between two states, L-10 at the end of a sequence, L-11
by trying again.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

from kvvmm_model.state import State
from kvvmm_model.vocabulary import Rights, Standing

Finding = object
"""The smallest part of the state that breaks an invariant."""


def _owned_is_the_sum_of_its_classes(state: State) -> Iterable[Finding]:
    ledger = state.ledger
    pooled = [entry.handle for entry in state.pool]
    owned = held = 0
    for handle in state.handles.values():
        classes = bool(handle.mappings), bool(handle.held), handle.quarantined
        times = pooled.count(handle.serial)
        if sum(classes) + times != 1:
            yield f"mapped, held, quarantined: {classes}, pooled {times} times", handle
        owned, held = owned + handle.size, held + handle.held
    if (ledger.owned, ledger.held) != (owned, held):
        yield ledger, tuple(state.handles.values())
    if ledger.pooled != sum(state.handles[serial].size for serial in pooled):
        yield ledger, state.pool
    if ledger.quarantined != sum(h.size for h in state.handles.values() if h.quarantined):
        yield ledger, [handle for handle in state.handles.values() if handle.quarantined]


def _charged_is_owned_and_unattributed(state: State) -> Iterable[Finding]:
    ledger = state.ledger
    if (
        ledger.charged != ledger.owned + ledger.unattributed
        or ledger.granted
        or min(ledger[1:]) < 0
    ):
        yield ledger


def _references_are_mappings_and_prefixes(state: State) -> Iterable[Finding]:
    mapped, holding = dict.fromkeys(state.handles, 0), dict.fromkeys(state.handles, 0)
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            mapped[mapping.handle] = mapped.get(mapping.handle, 0) + 1
    for prefix in state.prefixes.values():
        for serial in prefix.handles:
            holding[serial] = holding.get(serial, 0) + 1
    for serial in {**mapped, **holding}:
        handle = state.handles.get(serial)
        counted = mapped.get(serial, 0), holding.get(serial, 0)
        if handle is None or (handle.mappings, handle.prefixes) != counted:
            yield f"mappings, prefixes: {counted}", handle


def _mapped_is_what_the_windows_hold(state: State) -> Iterable[Finding]:
    held = 0
    for reservation in state.reservations.values():
        at = 0
        for mapping in reservation.mappings:
            if mapping.window < at or mapping.end > reservation.size:
                yield mapping, reservation.size
            if mapping.reservation != reservation.serial:
                yield mapping, reservation.serial
            handle = state.handles.get(mapping.handle)
            if handle is not None and mapping.size != handle.size:
                yield mapping, handle
            at = mapping.end
            held += mapping.size
    if held != state.ledger.mapped:
        yield held, state.ledger


def _no_memory_is_writable_twice(state: State) -> Iterable[Finding]:
    """Who can write is alone: a second mapping, or a seal, leaves everybody with READ."""
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            if mapping.rights is Rights.RW and state.handles[mapping.handle].mappings > 1:
                yield mapping


def _nothing_sealed_is_writable(state: State) -> Iterable[Finding]:
    sealed = {
        handle for prefix in state.prefixes.values() if prefix.sealed for handle in prefix.handles
    }
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            in_doubt = mapping.quarantined and not mapping.writable
            if mapping.handle in sealed and not (mapping.sealed or in_doubt):
                yield mapping


def _doubt_is_quarantined(state: State) -> Iterable[Finding]:
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            settled = reservation.standing is Standing.OPEN and mapping.rights is not Rights.NONE
            if not mapping.quarantined and not settled:
                yield reservation.standing, mapping


def _unsealed_prefixes_lie_at_their_owners(state: State) -> Iterable[Finding]:
    """So that a seal finds what was published: release and close cancel before they unmap."""
    for prefix in state.prefixes.values():
        owner = state.reservations.get(prefix.reservation)
        if prefix.sealed or state.lost:
            continue
        if owner is None or owner.standing is not Standing.OPEN:
            yield prefix, owner
            continue
        leading = owner.mappings[: len(prefix.handles)]
        if tuple(mapping.handle for mapping in leading) != prefix.handles:
            yield prefix, leading
        if any(mapping.quarantined for mapping in leading) or leading[0].window:
            yield prefix, leading


def _closed_ranges_hold_only_quarantine(state: State) -> Iterable[Finding]:
    for reservation in state.reservations.values():
        closed = reservation.standing is Standing.CLOSED
        if closed and not reservation.mappings:
            yield reservation
        if reservation.standing is Standing.QUARANTINED and reservation.mappings:
            yield reservation


def _ranges_do_not_overlap(state: State) -> Iterable[Finding]:
    ranges = sorted((r.address, state.bytes(r.size)) for r in state.reservations.values())
    for (address, size_bytes), (following, _) in pairwise(ranges):
        if address + size_bytes > following:
            yield address, size_bytes, following


def _pool_is_within_its_bound(state: State) -> Iterable[Finding]:
    places = [entry.place for entry in state.pool]
    if state.ledger.pooled > state.settings.retention or places != sorted(set(places)):
        yield state.ledger.pooled, state.settings.retention, places


INVARIANTS: dict[str, Callable[[State], Iterable[Finding]]] = {
    "L-1 owned = mapped, held, pooled and quarantined handles: each handle in one class": (
        _owned_is_the_sum_of_its_classes
    ),
    "L-2 charged = owned + unattributed, nothing stays granted, no count is negative": (
        _charged_is_owned_and_unattributed
    ),
    "L-4 a handle's references are its mappings and the live prefixes that hold it": (
        _references_are_mappings_and_prefixes
    ),
    "L-4 an unsealed prefix lies whole in its owner's leading windows": (
        _unsealed_prefixes_lie_at_their_owners
    ),
    "L-5 mapped = the windows that hold a mapping; mappings do not overlap and stay inside": (
        _mapped_is_what_the_windows_hold
    ),
    "L-6 no two ranges that we hold overlap": _ranges_do_not_overlap,
    "L-7 a handle that is writable has one mapping": _no_memory_is_writable_twice,
    "L-7 nothing sealed is writable by anyone": _nothing_sealed_is_writable,
    "L-8 a mapping that is not quarantined is open and was given rights": _doubt_is_quarantined,
    "L-8 a closed range holds quarantined mappings; a quarantined range holds none": (
        _closed_ranges_hold_only_quarantine
    ),
    "L-1 the pool is in order of age and within its bound": _pool_is_within_its_bound,
}


def broken(state: State) -> list[str]:
    """The sentences that do not hold, each with what breaks it."""
    return [
        f"{sentence}: {finding!r}"
        for sentence, predicate in INVARIANTS.items()
        for finding in predicate(state)
    ]
