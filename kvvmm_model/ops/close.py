"""close: end a reservation, address and all."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import cancel, clear, dispose, unmap
from kvvmm_model.planning import contiguous, fit_for_pool
from kvvmm_model.refusals import named
from kvvmm_model.state import Mapping, State, Transition
from kvvmm_model.vocabulary import Driver, Refused, Standing


def close(state: State, reservation: object, driver: Driver) -> Transition:
    """Unmap everything and give the range back; the serial is stale afterwards either way.

    Closes around what is quarantined; ``Done`` carries the windows where that begins.  Unsealed
    prefixes of it are cancelled; sealed ones live on, with the memory that they hold.  Fault
    points: 1 fence, if something is mapped; 2 clear; 3 fence, if a clear was called; 4 unmap, one
    a run, then query; 5 release; 6 address_free, if nothing stays mapped.
    """
    # REFUSALS
    found = named(state, reservation)
    if isinstance(found, Refused):
        return Transition(state, found)

    # STEPS: what is in doubt here is quarantined, since nobody can call close again.
    before, calls = state, Calls(driver)
    state = state.standing(found.serial, Standing.CLOSED)
    state = cancel(state, state.unsealed_of(found.serial))
    leaving = tuple(mapping for mapping in found.mappings if not mapping.quarantined)
    if leaving and calls.fence() is not None:
        return calls.conclude(before, state.quarantined(leaving))
    called, clean = clear(state, fit_for_pool(state, leaving), calls)
    if called and calls.fence() is not None:
        return calls.conclude(before, state.quarantined(leaving))
    gone: list[Mapping] = []
    for run in contiguous(leaving):
        state, result = unmap(state, run, calls)
        state = state.quarantined((*result.there, *result.open))
        gone += result.gone
    state = dispose(state, gone, clean, calls)
    stays = state.reservations[found.serial].mappings

    # LEDGER
    if not stays and calls.address_free(found.address, state.bytes(found.size)) is None:
        state = state.range_freed(found.serial)
    elif not stays:
        # UNWIND: never repeated; the range is listed until the driver hands it out again.
        state = state.standing(found.serial, Standing.QUARANTINED)
    return calls.conclude(before, state, tuple(mapping.window for mapping in stays))
