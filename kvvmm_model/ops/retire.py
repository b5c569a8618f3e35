"""retire: the owner's hold on a prefix ends; its memory lives on where it is mapped."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import give_back
from kvvmm_model.refusals import prefix_named
from kvvmm_model.state import State, Transition
from kvvmm_model.vocabulary import Driver, Refused


def retire(state: State, prefix: object, driver: Driver) -> Transition:
    """End a prefix; ``Done`` carries the granules that this released.

    Whoever leaves last disposes, and what only the prefix still held is released: it may be sealed,
    so it is not kept for reuse.  An unsealed prefix is cancelled by this.  Fault points: 1 release.
    """
    # REFUSALS
    found = prefix_named(state, prefix)
    if isinstance(found, Refused):
        return Transition(state, found)

    # STEPS
    before, calls = state, Calls(driver)
    state = state.ended(found)
    for handle in found.handles:
        # LEDGER: released, or quarantined and still charged.
        if not state.handles[handle].references:
            state = give_back(state, handle, calls)

    # UNWIND: nothing to undo.
    return calls.conclude(before, state, before.ledger.owned - state.ledger.owned)
