"""reclaim: end a quarantine, with proof."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import give_back, span_of
from kvvmm_model.refusals import device_lost
from kvvmm_model.state import Mapping, Reservation, State, Transition
from kvvmm_model.vocabulary import Driver, Refusal, Standing, refused


def reclaim(state: State, reservation: object, driver: Driver) -> Transition:
    """Try to end the quarantine of one reservation's mappings, or of all where None is given.

    ``Done`` carries how many mappings are confirmed gone.  What cannot be asked is not repeated:
    a release or an address_free that failed may have worked, and a second one could hit someone
    else's memory.  Fault points: 1 fence; 2 query; 3 unmap, then query; 4 release; 5 address_free.
    """
    # REFUSALS
    refusal = device_lost(state)
    if refusal is None and reservation is not None and not _ever_ours(state, reservation):
        refusal = refused(Refusal.STALE, reservation=reservation)
    if refusal is not None:
        return Transition(state, refusal)
    before, calls = state, Calls(driver)
    work = [
        (found, [mapping for mapping in found.mappings if mapping.quarantined])
        for serial, found in sorted(state.reservations.items())
        if reservation is None or serial == reservation
    ]

    # STEPS
    if not any(quarantined for _, quarantined in work) or calls.fence() is not None:
        return calls.conclude(before, state, 0)
    gone = 0
    for found, quarantined in work:
        for mapping in quarantined:
            if not _confirm_gone(state, mapping, calls):
                continue
            # LEDGER: each step is booked before the next is tried.
            gone += 1
            state = state.unmapped(mapping)
            if not state.handles[mapping.handle].references:
                state = give_back(state, mapping.handle, calls)
        state = _free_if_over(state, state.reservations[found.serial], calls)

    # UNWIND: nothing is undone; what could not be confirmed stays as it was.
    return calls.conclude(before, state, gone)


def _ever_ours(state: State, reservation: object) -> bool:
    """A reservation that is over has nothing to reclaim, which is no mistake."""
    return type(reservation) is int and 0 < reservation < state.next_reservation


def _confirm_gone(state: State, mapping: Mapping, calls: Calls) -> bool:
    """Ask, unmap what is there, and ask again where that failed."""
    address, size_bytes = span_of(state, (mapping,))
    mapped = calls.is_mapped(address)
    if mapped is True:
        mapped = calls.unmap(address, size_bytes) is not None and calls.is_mapped(address)
    return mapped is False


def _free_if_over(state: State, found: Reservation, calls: Calls) -> State:
    """A closed range without mappings goes back to the driver, once."""
    if found.standing is not Standing.CLOSED or found.mappings:
        return state
    if calls.address_free(found.address, state.bytes(found.size)) is None:
        return state.range_freed(found.serial)
    return state.standing(found.serial, Standing.QUARANTINED)
