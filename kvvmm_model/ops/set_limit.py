"""set_limit: how much may be charged.  Makes no driver call."""

from kvvmm_model.refusals import amount, device_lost
from kvvmm_model.state import State, Transition
from kvvmm_model.vocabulary import Done, Refused


def set_limit(state: State, size_bytes: object) -> Transition:
    """Set the limit, rounded down to the granularity.

    Below what is charged, nothing is taken back: the excess shows as negative ``free``.
    """
    # REFUSALS
    wanted = device_lost(state) or amount(size_bytes)
    if isinstance(wanted, Refused):
        return Transition(state, wanted)
    # STEPS: none.
    # LEDGER
    limit = wanted // state.settings.granularity_bytes
    # UNWIND: nothing to undo.
    return Transition(state.limited(limit), Done())
