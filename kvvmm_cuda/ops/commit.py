"""commit: windows gain memory.  All or none."""

from collections.abc import Iterable, Sequence

from kvvmm_cuda.backing import Backing, Chunk, admit, chunks
from kvvmm_cuda.checks import byte_range, named, quarantined, rights_unknown, stale
from kvvmm_cuda.records import Mapping, Records, Reservation
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refusal, Refused, Rights, Standing, refused


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
        barred = (
            quarantined(records, there) or rights_unknown(records, there) or _sealed(unit, there)
        )
        if barred is not None:
            return barred
        plan = chunks(missing_runs(there, first, end), records.settings)
        work = Work(records, driver)
        backing = admit(work, [size for _, size in plan])
        if isinstance(backing, Refused):
            return backing
        return _back(work, found, plan, backing)


def _sealed(unit: int, there: Iterable[Mapping]) -> Refused | None:
    """None is sealed; the refusal says from where on there is none."""
    ends = [mapping.end for mapping in there if mapping.rights is Rights.READ]
    return refused(Refusal.SHARED, first_offset_bytes=ends[-1] * unit) if ends else None


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


def _back(work: Work, found: Reservation, plan: Sequence[Chunk], backing: Backing) -> Outcome:
    """The steps of a commit that was admitted, and their unwinding."""
    try:
        # STEPS
        # LEDGER: each step books what it confirmed.
        done = (
            backing.give_up_victims()
            and backing.create()
            and work.map_with(
                [
                    (found, chunk.window, handle)
                    for chunk, handle in zip(plan, backing.handles(), strict=True)
                ],
                Rights.RW,
            )
        )
        # UNWIND: strictly newest first, one mapping at a time.
        if not done:
            work.unmake(work.made)
            backing.put_back()
    except DeviceLost:
        work.abandon(work.made, backing.in_hand())
    work.return_grant()
    return work.outcome(sum(size for _, size in plan))
