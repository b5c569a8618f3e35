"""How mappings leave: what release and close have in common."""

from collections.abc import Sequence

from kvvmm_cuda.handle import Handle
from kvvmm_cuda.records import Mapping, Prefix
from kvvmm_cuda.runs import contiguous
from kvvmm_cuda.work import Work
from kvvmm_model.vocabulary import Rights


class Departure:
    """Mappings of one reservation on their way out.

    ``leaving``: all of them.  ``called``: those that a clear was called on.  ``gone``: those that
    are confirmed unmapped, in window order.
    """

    def __init__(self, work: Work, leaving: Sequence[Mapping]) -> None:
        """Nothing is done yet."""
        self.work = work
        self.leaving = leaving
        self.called: list[Mapping] = []
        self.gone: list[Mapping] = []
        self._fit: dict[Handle, bool] = {}  # chosen for the pool, and whether fit for it by now

    def cancel(self, prefixes: Sequence[Prefix]) -> None:
        """End unsealed prefixes of what leaves; its memory is still mapped."""
        with self.work.records.lock:
            for prefix in tuple(prefixes):
                self.work.end_prefix(prefix)

    def choose(self) -> None:
        """Choose what will be pooled, in window order, and set its room aside in one step."""
        records = self.work.records
        with records.lock:
            pool, retention = records.pool, records.settings.retention
            for mapping in self.leaving:
                writable = mapping.rights is Rights.RW and mapping.handle.references == 1
                if writable and pool.size + pool.set_aside + mapping.size <= retention:
                    pool.set_aside += mapping.size
                    self._fit[mapping.handle] = not records.settings.clear_pooled

    def return_room(self) -> None:
        """The room set aside and not used is free again."""
        if self._fit:
            with self.work.records.lock:
                self.work.records.pool.set_aside -= sum(handle.size for handle in self._fit)
            self._fit.clear()

    def clear(self) -> None:
        """Start clearing what will be pooled, one call a run; a run that faults is unfit."""
        chosen = [m for m in self.leaving if self._fit.get(m.handle) is False]
        for run in contiguous(chosen):
            self.called += run
            fit = self.work.clear(run)
            for mapping in run:
                self._fit[mapping.handle] = fit

    def unmap(self, run: list[Mapping]) -> list[Mapping]:
        """Unmap a run; those confirmed still there are returned, those in doubt quarantined."""
        result = self.work.unmap(run)
        self.work.quarantine(result.open)
        self.gone += result.gone
        return result.there

    def dispose(self) -> None:
        """Pool or release what nothing refers to any more, in window order.

        Where two operations at once took a handle's last two references, it is with the later one.
        """
        for mapping in self.gone:
            if mapping.handle not in self.work.orphans:
                continue
            if self._fit.get(mapping.handle, False):
                self._pool(mapping.handle)
            else:
                _ = self.work.release(mapping.handle)  # not confirmed, quarantined and listed

    def _pool(self, handle: Handle) -> None:
        records = self.work.records
        del self.work.orphans[handle]
        with records.lock:
            del self._fit[handle]
            records.pool.set_aside -= handle.size
            records.pool.put(handle)

    def abandon(self) -> None:
        """The device is lost."""
        self.work.abandon(self.leaving, ())
