"""commit: back windows with memory.  All of them or none."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kvvmm_cuda.checks import byte_range, named, quarantined, stale
from kvvmm_cuda.handle import Handle
from kvvmm_cuda.records import Mapping, Records, Reservation
from kvvmm_cuda.runs import contiguous
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import (
    Code,
    Driver,
    Outcome,
    Policy,
    Refusal,
    Refused,
    Settings,
    Standing,
    refused,
)


class Chunk(NamedTuple):
    """Where a handle will be mapped."""

    window: int
    size: int


def commit(
    records: Records, driver: Driver, reservation: object, offset_bytes: object, size_bytes: object
) -> Outcome:
    """Back every window that ``[offset, offset + size)`` touches; ``Done`` carries the new ones."""
    # REFUSALS
    found = named(records, reservation)
    if isinstance(found, Refused):
        return found
    with found.lock:
        if found.standing is not Standing.OPEN:
            return stale(reservation)
        wanted = byte_range(records, found, offset_bytes, size_bytes)
        if isinstance(wanted, Refused):
            return wanted
        unit = records.settings.granularity_bytes
        first, end = wanted[0] // unit, -(-(wanted[0] + wanted[1]) // unit)
        there = found.overlapping(first, end)
        barred = quarantined(records, there)
        if barred is not None:
            return barred
        plan = chunks(missing_runs(there, first, end), records.settings)
        work = Work(records, driver)
        admitted = _admit(work, plan)
        if isinstance(admitted, Refused):
            return admitted
        return _back(work, found, plan, admitted)


def missing_runs(there: Iterable[Mapping], first: int, end: int) -> list[Chunk]:
    """The runs of windows in ``[first, end)`` that none of the mappings covers."""
    runs: list[Chunk] = []
    at = first
    for mapping in there:
        if mapping.window > at:
            runs.append(Chunk(at, mapping.window - at))
        at = mapping.end
    if at < end:
        runs.append(Chunk(at, end - at))
    return runs


def chunks(runs: Iterable[Chunk], settings: Settings) -> list[Chunk]:
    """Cut runs into handles: of one granule each, or powers of two, largest first."""
    plan: list[Chunk] = []
    bound = settings.longest_run if settings.policy is Policy.RUN else 1
    for first, length in runs:
        window, end = first, first + length
        while window < end:
            size = 1 << (min(end - window, bound).bit_length() - 1)
            plan.append(Chunk(window, size))
            window += size
    return plan


class Admission(NamedTuple):
    """What a commit may use: pool hits by window, and pooled handles that it gives up first."""

    hits: dict[int, Handle]
    victims: list[Handle]


def _admit(work: Work, plan: Sequence[Chunk]) -> Admission | Refused:
    """Take pool hits, check the budget and set the grant aside, in one step."""
    records = work.records
    with records.lock:
        hits: dict[int, Handle] = {}
        for window, size in plan:
            hit = records.pool.take(size)
            if hit is not None:
                hits[window] = hit
                work.took(hit)
        needed = sum(size for window, size in plan if window not in hits)
        free, room = records.free, records.pool.size
        short = max(0, needed - free) if needed else 0
        if short > room:
            for hit in reversed(hits.values()):
                records.pool.put_back(hit)
            unit = records.settings.granularity_bytes
            return refused(
                Refusal.BUDGET,
                needed_bytes=needed * unit,
                free_bytes=free * unit,
                reclaimable_bytes=room * unit,
            )
        work.add_grant(min(needed, max(0, free)))
        return Admission(hits, _take_victims(work, short))


def _take_victims(work: Work, amount: int) -> list[Handle]:
    """The oldest pooled handles leave the pool; the caller holds the lock."""
    victims = work.records.pool.take_oldest(amount)
    for victim in victims:
        work.took(victim)
    return victims


def _back(work: Work, found: Reservation, plan: Sequence[Chunk], admitted: Admission) -> Outcome:
    """The steps of a commit that was admitted, and their unwinding."""
    hits, fresh = admitted.hits, list[Handle]()
    try:
        # STEPS
        # LEDGER: each step books what it confirmed.
        done = (
            _give_up(work, admitted.victims)
            and _create(work, plan, hits, fresh, may_give_up=not admitted.victims)
            and _map(work, found, plan, hits, fresh)
        )
        # UNWIND: strictly newest first, one mapping at a time.
        if not done:
            _unwind(work, hits, fresh)
    except DeviceLost:
        work.abandon(work.made, (*fresh, *hits.values()))
    work.return_grant()
    return work.outcome(sum(size for _, size in plan))


def _give_up(work: Work, victims: Sequence[Handle]) -> bool:
    """Release pooled handles into the grant, oldest first; ends at the first that fails."""
    done = 0
    try:
        for victim in victims:
            done += 1
            if not work.release(victim, into_grant=True):
                return False
    finally:
        for victim in reversed(victims[done:]):
            work.put_back(victim)
    return True


def _create(
    work: Work,
    plan: Sequence[Chunk],
    hits: dict[int, Handle],
    fresh: list[Handle],
    *,
    may_give_up: bool,
) -> bool:
    """Get every fresh handle in hand before the first map."""
    sizes = [size for window, size in plan if window not in hits]
    for number, size in enumerate(sizes):
        made = work.create(size)
        if not isinstance(made, Handle) and made.code == Code.OUT_OF_MEMORY and may_give_up:
            may_give_up = False
            with work.records.lock:
                victims = _take_victims(work, sum(sizes[number:]))
            if victims and _give_up(work, victims):
                made = work.create(size)
                if isinstance(made, Handle):
                    work.faults.clear()  # an OUT_OF_MEMORY that was overcome
        if not isinstance(made, Handle):
            return False
        fresh.append(made)
    return True


def _map(
    work: Work,
    found: Reservation,
    plan: Sequence[Chunk],
    hits: dict[int, Handle],
    fresh: Sequence[Handle],
) -> bool:
    """Map every handle, then give rights a run at a time."""
    unused = iter(fresh)
    for window, _ in plan:
        handle = hits[window] if window in hits else next(unused)
        if work.map(found, window, handle) is None:
            return False
    return all(work.set_access(run) for run in contiguous(work.made))


def _unwind(work: Work, hits: dict[int, Handle], fresh: Sequence[Handle]) -> None:
    for mapping in reversed(work.made):
        result = work.unmap([mapping])
        work.quarantine((*result.there, *result.open))
    for handle in reversed(fresh):
        if not handle.references:
            _ = work.release(handle)  # not confirmed, it is quarantined and listed
    for hit in reversed(hits.values()):
        if not hit.references:
            work.put_back(hit)
