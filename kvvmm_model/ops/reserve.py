"""reserve: take an address range.  It costs no memory."""

from kvvmm_model.calls import Calls
from kvvmm_model.refusals import device_lost, request
from kvvmm_model.state import State, Transition
from kvvmm_model.vocabulary import Driver, Fault, Refused


def reserve(
    state: State, size_bytes: object, alignment_bytes: object, driver: Driver
) -> Transition:
    """Reserve ``size_bytes``, rounded up to the granularity; ``Done`` carries the serial.

    Fault points: 1 address_reserve.
    """
    # REFUSALS
    wanted = device_lost(state) or request(size_bytes, alignment_bytes)
    if isinstance(wanted, Refused):
        return Transition(state, wanted)
    before, calls = state, Calls(driver)
    size = -(-wanted[0] // state.settings.granularity_bytes)

    # STEPS
    address = calls.address_reserve(state.bytes(size), wanted[1])

    # LEDGER
    if not isinstance(address, Fault):
        return calls.conclude(before, state.reserved(address, size), state.next_reservation)

    # UNWIND: nothing can be given back, since there is no address to name.
    if not address.rules_out_effect:
        state = state.addresses_unattributed(size)
    return calls.conclude(before, state)
