"""seal: a prefix becomes readable for all and writable for nobody."""

from collections.abc import Sequence

from kvvmm_cuda.checks import prefix_named
from kvvmm_cuda.records import Mapping, Prefix, Records
from kvvmm_cuda.runs import contiguous
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Done, Driver, Outcome, Refusal, Refused, Rights, refused


def seal(records: Records, driver: Driver, prefix: object) -> Outcome:
    """Take the owner's right to write; ``Done`` carries the granules whose rights were changed."""
    # REFUSALS
    found = prefix_named(records, prefix)
    if isinstance(found, Refused):
        return found
    with found.reservation.lock:
        if found.gone:
            return refused(Refusal.STALE, prefix=prefix)
        if found.sealed:
            return Done(0)
        leading = found.reservation.leading(len(found.handles))
        unsealed = [mapping for mapping in leading if mapping.rights is not Rights.READ]

        # STEPS
        work = Work(records, driver)
        tried: list[Mapping] = []
        try:
            if work.fence():
                _seal(work, found, unsealed, tried)
        except DeviceLost:
            for mapping in tried:
                work.touched.add(mapping)
                mapping.rights = Rights.UNKNOWN
        return work.outcome(sum(mapping.size for mapping in unsealed))


def _seal(work: Work, found: Prefix, unsealed: Sequence[Mapping], tried: list[Mapping]) -> None:
    for run in contiguous(unsealed):
        tried += run
        if not work.set_access(run, Rights.READ):
            break
    else:
        # LEDGER: nothing is charged or mapped; the prefix can be attached from now on.
        with work.records.lock:
            found.sealed = True
            found.reservation.unsealed.remove(found)
        return
    # UNWIND: the right to write is given back, never where it was taken by an earlier seal.
    while tried:
        mapping = tried[-1]
        _ = work.set_access([mapping], Rights.RW)  # not confirmed, its rights are not known
        _ = tried.pop()
