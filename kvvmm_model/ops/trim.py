"""trim: give pooled memory back to the driver."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import give_back
from kvvmm_model.refusals import amount, device_lost
from kvvmm_model.state import State, Transition
from kvvmm_model.vocabulary import Driver, Refused


def trim(state: State, size_bytes: object, driver: Driver) -> Transition:
    """Release pooled handles, oldest first, until that many bytes are confirmed released.

    Goes on after one that fails.  ``Done`` carries the granules released.  Fault points: 1 release.
    """
    # REFUSALS
    wanted = device_lost(state) or amount(size_bytes)
    if isinstance(wanted, Refused):
        return Transition(state, wanted)
    before, calls = state, Calls(driver)

    # STEPS
    def done() -> int:
        return before.ledger.owned - state.ledger.owned

    while state.pool and state.bytes(done()) < wanted and not calls.lost:
        entry = state.pool[0]
        # LEDGER: no longer pooled; released, or quarantined and still charged.
        state = give_back(state.left_pool(entry), entry.handle, calls)

    # UNWIND: nothing to undo.
    return calls.conclude(before, state, done())
