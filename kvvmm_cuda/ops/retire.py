"""retire: the owner's hold on a prefix ends; its memory lives on where it is mapped."""

from kvvmm_cuda.checks import prefix_named
from kvvmm_cuda.records import Records
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refusal, Refused, refused


def retire(records: Records, driver: Driver, prefix: object) -> Outcome:
    """End a prefix; ``Done`` carries the granules that this released."""
    # REFUSALS
    found = prefix_named(records, prefix)
    if isinstance(found, Refused):
        return found
    with found.reservation.lock:
        work = Work(records, driver)
        with records.lock:
            if found.gone:
                return refused(Refusal.STALE, prefix=prefix)
            work.end_prefix(found)
        # STEPS and LEDGER: each is released, or quarantined and still charged.
        freed = sum(handle.size for handle in work.orphans)
        try:
            work.give_back_orphans(found.handles)
        except DeviceLost:
            work.abandon((), ())
        # UNWIND: nothing to undo.
        return work.outcome(freed)
