"""trim: give pooled memory back to the driver."""

from kvvmm_cuda.checks import amount, device_lost
from kvvmm_cuda.records import Records
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refused


def trim(records: Records, driver: Driver, size_bytes: object) -> Outcome:
    """Release pooled handles, oldest first, until that many bytes are confirmed released."""
    # REFUSALS
    wanted = device_lost(records) or amount(size_bytes)
    if isinstance(wanted, Refused):
        return wanted
    work = Work(records, driver)
    done = 0

    # STEPS and LEDGER: each is released and no longer charged, or quarantined and still charged.
    try:
        while done * records.settings.granularity_bytes < wanted:
            with records.lock:
                oldest = records.pool.take_oldest(1)
            if not oldest:
                break
            work.took(oldest[0])
            if work.release(oldest[0]):
                done += oldest[0].size
    except DeviceLost:
        pass  # the release has booked what became of its handle
    # UNWIND: nothing to undo.
    return work.outcome(done)
