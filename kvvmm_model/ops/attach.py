"""attach: a sealed prefix is mapped, to be read, into other reservations.  All or none."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import map_with, unmake
from kvvmm_model.refusals import (
    device_lost,
    first_of,
    named,
    prefix_named,
    quarantined,
    rights_unknown,
    whole,
)
from kvvmm_model.state import Mapping, State, Transition
from kvvmm_model.vocabulary import Driver, Refusal, Refused, Rights, refused

Target = tuple[object, object, object]
"""Reservation, prefix, offset in bytes."""


def attach(state: State, targets: tuple[Target, ...], driver: Driver) -> Transition:
    """Map prefixes at offsets of reservations; ``Done`` carries the granules mapped.

    One transaction: where one target fails, all are undone.  Nothing is charged.  Every handle has
    its reference before its map, and loses it only when the driver confirmed that it is not mapped.
    Fault points: 1 map, then query; 2 set_access, one a target; unwinding, 3 unmap, then query.
    """
    # REFUSALS
    wanted: list[list[Mapping]] = []
    refusals: list[Refused] = []
    for target in targets:
        planned = [mapping for mappings in wanted for mapping in mappings]
        plan = _plan(state, target, planned)
        if isinstance(plan, Refused):
            refusals.append(plan)
        else:
            wanted.append(plan)
    refusal = first_of(refusals)
    if refusal is None and not targets:
        refusal = device_lost(state) or refused(Refusal.RANGE, targets=0)
    if refusal is not None:
        return Transition(state, refusal)

    # STEPS
    before, calls = state, Calls(driver)
    made: list[Mapping] = []
    for mappings in wanted:
        state, new = map_with(state, mappings, Rights.READ, calls)
        made += new
        if calls.faults:
            break

    # LEDGER: each mapping was booked before its call.
    if not calls.faults:
        return calls.conclude(before, state, sum(mapping.size for mapping in made))

    # UNWIND: strictly newest first, one mapping at a time.
    return calls.conclude(before, unmake(state, made, calls))


def _plan(state: State, target: Target, planned: list[Mapping]) -> list[Mapping] | Refused:
    """The mappings that a target needs; ``planned`` are those of the targets before it."""
    found = named(state, target[0])
    if isinstance(found, Refused):
        return found
    prefix = prefix_named(state, target[1])
    if isinstance(prefix, Refused):
        return prefix
    offset, granularity = whole(target[2]), state.settings.granularity_bytes
    if offset is None or offset < 0:
        return refused(Refusal.RANGE, offset_bytes=target[2])
    if offset % granularity:
        nearest = offset - offset % granularity
        return refused(Refusal.MISALIGNED, offset_bytes=offset, nearest_bytes=nearest)
    window, end = offset // granularity, offset // granularity + state.size_of(prefix)
    if end > found.size:
        return refused(
            Refusal.TOO_LONG,
            offset_bytes=offset,
            prefix_bytes=state.bytes(end - window),
            reservation_bytes=state.bytes(found.size),
        )
    ours = [mapping for mapping in planned if mapping.reservation == found.serial]
    there = [m for m in (*found.mappings, *ours) if m.window < end and window < m.end]
    barred = quarantined(state, there) or rights_unknown(state, there)
    if barred is not None:
        return barred
    if there:
        offsets = tuple(state.bytes(mapping.window) for mapping in there)
        return refused(Refusal.OCCUPIED, offsets_bytes=offsets)
    if not prefix.sealed:
        return refused(Refusal.UNSEALED, prefix=prefix.serial)
    plan: list[Mapping] = []
    for serial in prefix.handles:
        plan.append(Mapping(found.serial, window, serial, state.handles[serial].size))
        window = plan[-1].end
    return plan
