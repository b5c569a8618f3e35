"""attach: a sealed prefix is mapped, to be read, into other reservations.  All or none."""

from collections.abc import Iterable, Iterator, Sequence

from kvvmm_cuda.checks import (
    device_lost,
    first_of,
    integer,
    named,
    prefix_named,
    quarantined,
    rights_unknown,
)
from kvvmm_cuda.handle import Handle
from kvvmm_cuda.locking import locked
from kvvmm_cuda.records import Prefix, Records, Reservation
from kvvmm_cuda.work import DeviceLost, Place, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refusal, Refused, Rights, refused

Target = tuple[object, object, object]
"""Reservation, prefix, offset in bytes."""

Plan = Sequence[Place]
"""What one target needs."""


def attach(records: Records, driver: Driver, targets: tuple[Target, ...]) -> Outcome:
    """Map prefixes at offsets of reservations; ``Done`` carries the granules mapped."""
    # REFUSALS
    if not targets:
        return device_lost(records) or refused(Refusal.RANGE, targets=0)
    named_ones = [named(records, reservation) for reservation, _, _ in targets]
    with locked(found for found in named_ones if isinstance(found, Reservation)):
        work = Work(records, driver)
        plans = _admit(work, targets)
        if isinstance(plans, Refused):
            return plans
        pinned = [handle for plan in plans for _, _, handle in plan]
        try:
            # STEPS
            # LEDGER: each mapping is booked before its call.
            done = all(work.map_with(plan, Rights.READ) for plan in plans)
            # UNWIND: strictly newest first, one mapping at a time.
            if not done:
                work.unmake(work.made)
            _unpin(work, pinned)
            work.give_back_orphans(pinned)  # the prefix was retired meanwhile, and all others left
        except DeviceLost:
            _unpin(work, pinned)
            work.abandon(work.made, ())
        return work.outcome(sum(handle.size for handle in pinned))


def _admit(work: Work, targets: Iterable[Target]) -> Sequence[Plan] | Refused:
    """Check every target and count the references of all handles, in one step."""
    records = work.records
    with records.lock:
        plans: list[Plan] = []
        refusals: list[Refused] = []
        for target in targets:
            plan = _plan(records, target, [place for plan in plans for place in plan])
            if isinstance(plan, Refused):
                refusals.append(plan)
            else:
                plans.append(plan)
        refusal = first_of(refusals)
        if refusal is not None:
            return refusal
        for plan in plans:
            for _, _, handle in plan:
                work.refer(handle, others=1)
        return plans


def _unpin(work: Work, pinned: list[Handle]) -> None:
    """The references that were counted ahead end; mappings have their own by now."""
    with work.records.lock:
        for handle in pinned:
            work.refer(handle, others=-1)


def _plan(records: Records, target: Target, planned: Sequence[Place]) -> Plan | Refused:
    """Where a target's handles go; ``planned`` are those of the targets before it."""
    found = named(records, target[0])
    if isinstance(found, Refused):
        return found
    prefix = prefix_named(records, target[1])
    if isinstance(prefix, Refused):
        return prefix
    unit, offset = records.settings.granularity_bytes, integer(target[2])
    if offset < 0:
        return refused(Refusal.RANGE, offset_bytes=target[2])
    window, over = divmod(offset, unit)
    if over:
        return refused(Refusal.MISALIGNED, offset_bytes=offset, nearest_bytes=offset - over)
    if window + prefix.size > found.size:
        return refused(
            Refusal.TOO_LONG,
            offset_bytes=offset,
            prefix_bytes=prefix.size * unit,
            reservation_bytes=found.size * unit,
        )
    barred = _occupied(records, found, (window, window + prefix.size), planned)
    if barred is not None:
        return barred
    if not prefix.sealed:
        return refused(Refusal.UNSEALED, prefix=prefix.serial)
    return list(_places(found, prefix, window))


def _occupied(
    records: Records, found: Reservation, windows: tuple[int, int], planned: Iterable[Place]
) -> Refused | None:
    """Nothing lies in the windows, and nothing will when the earlier targets are done."""
    first, end = windows
    there = found.overlapping(first, end)
    barred = quarantined(records, there) or rights_unknown(records, there)
    if barred is not None:
        return barred
    occupied = [mapping.window for mapping in there]
    for reservation, window, handle in planned:
        if reservation is found and window < end and first < window + handle.size:
            occupied.append(window)
    if not occupied:
        return None
    unit = records.settings.granularity_bytes
    return refused(Refusal.OCCUPIED, offsets_bytes=tuple(window * unit for window in occupied))


def _places(found: Reservation, prefix: Prefix, window: int) -> Iterator[Place]:
    at = window
    for handle in prefix.handles:
        yield found, at, handle
        at += handle.size
