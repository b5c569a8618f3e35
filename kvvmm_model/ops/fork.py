"""fork: new reservations that begin as others do.  All or none."""

from attrs import define, evolve, field, frozen

from kvvmm_model.backing import Backing, admit, create, put_back, take
from kvvmm_model.calls import Calls
from kvvmm_model.parts import map_with, span_of, unmake
from kvvmm_model.planning import Chunk, chunks
from kvvmm_model.refusals import device_lost, first_of, named, quarantined, rights_unknown, whole
from kvvmm_model.state import Mapping, Reservation, State, Transition
from kvvmm_model.vocabulary import (
    Driver,
    Fault,
    Refusal,
    Refused,
    Rights,
    Standing,
    refused,
)

Parent = tuple[object, object]
"""Reservation, length in bytes."""


@frozen
class Cut:
    """How a child is made of its parent.

    ``shared``: the parent's sealed mappings that end at the length or before.  ``copied``: how many
    bytes behind them the child gets a copy of, in memory of its own: the ``chunks``.
    """

    parent: Reservation
    shared: tuple[Mapping, ...]
    copied: int
    chunks: tuple[Chunk, ...]


@define
class Made:
    """What a fork has made so far, each oldest first; ``dirty``: handles that may hold a copy."""

    children: list[int] = field(factory=list[int])
    shared: list[Mapping] = field(factory=list[Mapping])
    private: list[Mapping] = field(factory=list[Mapping])
    fresh: list[int] = field(factory=list[int])
    dirty: set[int] = field(factory=set[int])


def fork(state: State, parents: tuple[Parent, ...], driver: Driver) -> Transition:
    """Make a child of each parent that reads as it does up to a length; ``Done``: their serials.

    What is sealed below the length is shared, the rest up to it copied, and behind it the child is
    empty.  There is no copy-on-write: what is shared is never written, so the parent's rights are
    not touched and it stays as it was whatever fails.  Fault points: 1 release, of what must be
    given up; 2 address_reserve, one a child; 3 fence; 4 map, then query; 5 set_access; 6 create;
    7 map, then query; 8 set_access; 9 copy, one a child; 10 fence; unwinding, 11 fence, if a copy
    was called; 12 unmap, then query; 13 release; 14 unmap, then query; 15 address_free.
    """
    # REFUSALS
    cuts = [_cut(state, parent) for parent in parents]
    refusal = first_of(cut for cut in cuts if isinstance(cut, Refused))
    if refusal is None and not parents:
        refusal = device_lost(state) or refused(Refusal.RANGE, parents=0)
    if refusal is not None:
        return Transition(state, refusal)
    plan = [cut for cut in cuts if isinstance(cut, Cut)]
    backing = admit(state, (size for cut in plan for _, size in cut.chunks))
    if isinstance(backing, Refused):
        return Transition(state, backing)

    # STEPS
    before, calls, made = state, Calls(driver), Made()
    state = _make(state, plan, backing, made, calls)

    # LEDGER: each step has booked what it confirmed; what is left of the grant goes back.
    if not calls.faults:
        state = state.granted(-state.ledger.granted)
        return calls.conclude(before, state, tuple(made.children))

    # UNWIND: strictly newest first.  Under a copy that may still land, nothing is unmapped.
    landed = not made.dirty or calls.fence() is None
    state = (unmake if landed else _keep)(state, made.private, calls)
    state = put_back(state, backing, made.fresh, made.dirty, calls)
    state = (unmake if landed else _keep)(state, made.shared, calls)
    for child in reversed(made.children):
        state = _abandon(state, child, calls)
    return calls.conclude(before, state)


def _make(state: State, plan: list[Cut], backing: Backing, made: Made, calls: Calls) -> State:
    """The steps; the first that fails is the last."""
    state = take(state, backing, calls)
    for cut in plan:
        if calls.faults:
            return state
        state = _reserve(state, cut.parent.size, made, calls)
    if calls.faults or calls.fence() is not None:
        return state
    for child, cut in zip(made.children, plan, strict=True):
        wanted = [evolve(m, reservation=child, rights=Rights.NONE) for m in cut.shared]
        state, mappings = map_with(state, wanted, Rights.READ, calls)
        made.shared += mappings
        if calls.faults:
            return state
    state, made.fresh = create(state, backing, calls)
    if calls.faults:
        return state
    handles = iter(backing.handles(made.fresh))
    for child, cut in zip(made.children, plan, strict=True):
        wanted = [Mapping(child, window, next(handles), size) for window, size in cut.chunks]
        state, mappings = map_with(state, wanted, Rights.RW, calls)
        made.private += mappings
        if calls.faults:
            return state
        if cut.copied:
            made.dirty.update(mapping.handle for mapping in mappings)
            _copy(state, cut, mappings, calls)
        if calls.faults:
            return state
    if made.dirty:
        _ = calls.fence()  # its fault ends the operation as well
    return state


def _cut(state: State, parent: Parent) -> Cut | Refused:
    """What a child shares and copies."""
    found, length = named(state, parent[0]), whole(parent[1])
    if isinstance(found, Refused):
        return found
    total, granularity = state.bytes(found.size), state.settings.granularity_bytes
    if length is None or not 1 <= length <= total:
        return refused(Refusal.RANGE, length_bytes=parent[1], reservation_bytes=total)
    end = -(-length // granularity)
    needed = [mapping for mapping in found.mappings if mapping.window < end]
    whole_ones = tuple(m for m in needed if state.bytes(m.end) <= length)
    barred = quarantined(state, needed) or rights_unknown(state, needed)
    if barred is not None:
        return barred
    for mapping in whole_ones:
        if not mapping.sealed:
            offset = state.bytes(mapping.window)
            return refused(Refusal.UNSEALED, offset_bytes=offset, length_bytes=length)
    at = 0
    for mapping in needed:
        if mapping.window > at:
            break
        at = mapping.end
    if at < end:
        return refused(Refusal.NOT_COMMITTED, offset_bytes=state.bytes(at), length_bytes=length)
    first = whole_ones[-1].end if whole_ones else 0
    runs = [(first, end - first)] if first < end else []
    copied = length - state.bytes(first)
    return Cut(found, whole_ones, copied, tuple(chunks(runs, state.settings)))


def _reserve(state: State, size: int, made: Made, calls: Calls) -> State:
    """A range as large as the parent's."""
    address = calls.address_reserve(state.bytes(size), 0)
    if isinstance(address, Fault):
        return state if address.rules_out_effect else state.addresses_unattributed(size)
    made.children.append(state.next_reservation)
    return state.reserved(address, size)


def _copy(state: State, cut: Cut, made: list[Mapping], calls: Calls) -> None:
    """One copy, device to device, of exactly the bytes behind what is shared."""
    target, _ = span_of(state, tuple(made))
    source = cut.parent.address_of(made[0].window, state.settings.granularity_bytes)
    _ = calls.copy(target, source, cut.copied)  # its fault ends the operation


def _keep(state: State, made: list[Mapping], calls: Calls) -> State:
    """UNWIND, where the device may still be copying: quarantined as it is."""
    _ = calls  # none is made
    for mapping in made:
        state = state.quarantined((mapping,))
    return state


def _abandon(state: State, child: int, calls: Calls) -> State:
    """A child that was not finished: its range is freed once no mapping is left in it."""
    found = state.reservations[child]
    if found.mappings:
        return state.standing(child, Standing.CLOSED)
    if calls.address_free(found.address, state.bytes(found.size)) is None:
        return state.range_freed(child)
    return state.standing(child, Standing.QUARANTINED)
