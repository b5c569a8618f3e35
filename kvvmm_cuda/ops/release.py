"""release: windows lose their memory; the address stays reserved."""

from kvvmm_cuda.checks import byte_range, named, quarantined, stale
from kvvmm_cuda.departure import Departure
from kvvmm_cuda.records import Records
from kvvmm_cuda.runs import contiguous
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refusal, Refused, Released, Standing, refused


def release(
    records: Records, driver: Driver, reservation: object, offset_bytes: object, size_bytes: object
) -> Outcome:
    """Release the mappings that lie wholly in ``[offset, offset + size)``; holes are skipped."""
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
        (offset, size), unit = wanted, records.settings.granularity_bytes
        first, end = -(-offset // unit), (offset + size) // unit
        touched = found.overlapping(first, end)
        leaving = [m for m in touched if first <= m.window and m.end <= end]
        barred = quarantined(records, leaving)
        if barred is not None:
            return barred
        if not leaving:
            return refused(Refusal.NOT_COMMITTED, offset_bytes=offset, size_bytes=size)

        # STEPS, LEDGER and UNWIND: nothing is mapped again; the residue says what is gone.
        departure = Departure(Work(records, driver), leaving)
        try:
            _depart(departure)
        except DeviceLost:
            departure.abandon()
        departure.return_room()
        kept = tuple(
            window
            for mapping in touched
            if mapping.window < first or mapping.end > end
            for window in range(max(first, mapping.window), min(end, mapping.end))
        )
        return departure.work.outcome(Released(sum(m.size for m in leaving), kept))


def _depart(departure: Departure) -> None:
    work = departure.work
    if not work.fence():
        return
    first = departure.leaving[0]
    departure.cancel([p for p in first.reservation.unsealed if first.window < p.size])
    departure.choose()
    departure.clear()
    if departure.called and not work.fence():
        # The clear may still land: unmapped under it, it would hit the next owner.
        work.quarantine(departure.called)
        return
    for run in contiguous(departure.leaving):
        _ = departure.unmap(run)  # what is confirmed still there stays committed
    departure.dispose()
