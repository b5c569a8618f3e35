"""close: end a reservation, address and all."""

from kvvmm_cuda.checks import named, stale
from kvvmm_cuda.departure import Departure
from kvvmm_cuda.records import Records, Reservation
from kvvmm_cuda.runs import contiguous
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refused, Standing


def close(records: Records, driver: Driver, reservation: object) -> Outcome:
    """Unmap everything and give the range back; the serial is stale afterwards either way."""
    # REFUSALS
    found = named(records, reservation)
    if isinstance(found, Refused):
        return found
    with found.lock:
        if found.standing is not Standing.OPEN:
            return stale(reservation)
        work = Work(records, driver)
        work.set_standing(found, Standing.CLOSED)
        departure = Departure(work, [m for m in found.mappings() if not m.quarantined])
        stays = tuple(m.window for m in found.mappings() if m.quarantined)

        # STEPS, LEDGER and UNWIND: what is in doubt is quarantined; nobody can call close again.
        try:
            _depart(departure, found)
        except DeviceLost:
            departure.abandon()
            if not len(found) and not found.gone:
                work.set_standing(found, Standing.QUARANTINED)
        departure.return_room()
        return work.outcome(stays)


def _depart(departure: Departure, found: Reservation) -> None:
    work, leaving = departure.work, departure.leaving
    departure.cancel(found.unsealed)
    if leaving and not work.fence():
        work.quarantine(leaving)
        return
    departure.choose()
    departure.clear()
    if departure.called and not work.fence():
        work.quarantine(leaving)
        return
    for run in contiguous(leaving):
        work.quarantine(departure.unmap(run))
    departure.dispose()
    if not len(found):
        work.address_free(found)
