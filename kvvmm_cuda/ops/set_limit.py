"""set_limit: how much may be charged.  Makes no driver call."""

from kvvmm_cuda.checks import amount, device_lost
from kvvmm_cuda.records import Records
from kvvmm_model.vocabulary import Done, Outcome, Refused


def set_limit(records: Records, size_bytes: object) -> Outcome:
    """Set the limit, rounded down to the granularity; nothing is taken back."""
    # REFUSALS
    wanted = device_lost(records) or amount(size_bytes)
    if isinstance(wanted, Refused):
        return wanted
    # STEPS: none.
    # LEDGER
    with records.lock:
        records.limit = wanted // records.settings.granularity_bytes
    # UNWIND: nothing to undo.
    return Done()
