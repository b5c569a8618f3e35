"""reserve: take an address range.  It costs no memory."""

from kvvmm_cuda.checks import device_lost, request
from kvvmm_cuda.records import Records
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refused


def reserve(
    records: Records, driver: Driver, size_bytes: object, alignment_bytes: object
) -> Outcome:
    """Reserve ``size_bytes``, rounded up to the granularity; ``Done`` carries the serial."""
    # REFUSALS
    wanted = device_lost(records) or request(size_bytes, alignment_bytes)
    if isinstance(wanted, Refused):
        return wanted
    size = -(-wanted[0] // records.settings.granularity_bytes)
    work = Work(records, driver)

    # STEPS, LEDGER and UNWIND: one call, booked where it is made; nothing can be undone.
    try:
        made = work.address_reserve(size, wanted[1])
    except DeviceLost:
        return work.outcome()
    return work.outcome(made.serial if made is not None else None)
