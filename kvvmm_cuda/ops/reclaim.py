"""reclaim: end a quarantine, with proof."""

from kvvmm_cuda.checks import device_lost, stale
from kvvmm_cuda.records import Mapping, Records, Reservation
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Standing


def reclaim(records: Records, driver: Driver, reservation: object) -> Outcome:
    """Try to end the quarantine of one reservation's mappings, or of all where None is given."""
    # REFUSALS
    refusal = device_lost(records)
    if refusal is not None:
        return refusal
    if reservation is None:
        with records.lock:
            serials = sorted(records.reservations)
    elif type(reservation) is int and 0 < reservation <= records.last_reservation:
        serials = [reservation]
    else:
        return stale(reservation)

    # STEPS and LEDGER: each step is booked before the next is tried.
    work = Work(records, driver)
    gone = 0
    try:
        # Listed before the fence: what another thread quarantines after it, it does not cover.
        listed = [each for serial in serials for each in _quarantined_in(records, serial)]
        if listed and work.fence():
            for found, mappings in listed:
                with found.lock:
                    gone += _reclaim_in(work, found, mappings)
    except DeviceLost:
        pass  # what was tried is booked; the rest is quarantined already
    # UNWIND: nothing is undone; what could not be confirmed stays as it was.
    return work.outcome(gone)


def _quarantined_in(records: Records, serial: int) -> list[tuple[Reservation, list[Mapping]]]:
    found = records.reservations.get(serial)
    if found is None:
        return []
    with found.lock:
        mappings = [mapping for mapping in found.mappings() if mapping.quarantined]
    return [(found, mappings)] if mappings else []


def _reclaim_in(work: Work, found: Reservation, quarantined: list[Mapping]) -> int:
    """One reservation's share; how many mappings are confirmed gone."""
    gone = 0
    for mapping in quarantined:
        if mapping.gone:
            continue  # another thread's reclaim was faster
        try:
            if not work.confirm_gone(mapping):
                continue
            gone += 1
            if not mapping.handle.references:
                _ = work.release(mapping.handle)  # not confirmed, it is quarantined and listed
        except DeviceLost:
            if found.standing is Standing.CLOSED and not len(found):
                work.set_standing(found, Standing.QUARANTINED)
            raise
    if found.standing is Standing.CLOSED and not len(found) and not found.gone:
        work.address_free(found)
    return gone
