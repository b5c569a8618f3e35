"""One operation under way: its driver calls, each with the booking of what it confirmed.

What a call is about to put at risk is booked before it, what it confirmed after it.  A sticky code
raises ``DeviceLost`` out of the call, once its own consequences are booked: there is no further
driver call, and the operation quarantines what it still has in hand (``abandon``).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kvvmm_cuda.handle import Handle
from kvvmm_cuda.records import Mapping, Prefix, Records, Reservation
from kvvmm_cuda.runs import contiguous
from kvvmm_cuda.touched import Touched
from kvvmm_model.vocabulary import (
    Done,
    Driver,
    Failed,
    Fault,
    Outcome,
    Rights,
    Standing,
    Step,
)


class DeviceLost(Exception):
    """A driver call answered a sticky code."""


class Unmapped(NamedTuple):
    """What an unmap of a run came to: confirmed gone, confirmed still there, or open."""

    gone: list[Mapping]
    there: list[Mapping]
    open: list[Mapping]


Place = tuple[Reservation, int, Handle]
"""Where a handle is to be mapped: reservation, first window, handle."""


class Work:
    """The calls of one operation, its faults, its grant, and what it touched.

    ``made``: the mappings of this operation that are not confirmed gone, oldest first.
    ``orphans``: handles whose last reference left in this operation, which has to dispose of them.
    """

    __slots__ = ("driver", "faults", "grant", "made", "orphans", "records", "touched")

    def __init__(self, records: Records, driver: Driver) -> None:
        """Nothing is called yet."""
        self.records = records
        self.driver = driver
        self.faults: list[Fault] = []
        self.grant = 0
        self.made: list[Mapping] = []
        self.orphans: dict[Handle, None] = {}
        self.touched = Touched()

    # --- faults and the outcome ------------------------------------------------------------

    def _failed(self, fault: Fault) -> None:
        self.faults.append(fault)
        if fault.sticky:
            self.records.lost = self.records.lost or fault.code
            raise DeviceLost

    def _go(self, step: Step) -> None:
        """No driver call is made on a device that another thread has seen lost."""
        if self.records.lost:
            self._failed(Fault(step, self.records.lost))

    def outcome(self, value: object = None) -> Outcome:
        """``Done(value)`` where no call failed, else ``Failed`` with its residue."""
        if not self.faults:
            return Done(value)
        return Failed(self.faults[0], self.touched.residue(), tuple(self.faults[1:]))

    # --- address ranges ---------------------------------------------------------------------

    def address_reserve(
        self, size: int, alignment_bytes: int, *, locked: bool = False
    ) -> Reservation | None:
        """Take a range; None after a fault.

        ``locked``: nobody else may use it before this operation has released its lock.
        """
        self._go(Step.ADDRESS_RESERVE)
        records = self.records
        size_bytes = size * records.settings.granularity_bytes
        answer = self.driver.address_reserve(size_bytes, alignment_bytes)
        if isinstance(answer, Fault):
            if not answer.rules_out_effect:
                with records.lock:
                    records.unattributed_addresses += size
                self.touched.unattributed_addresses += size
            self._failed(answer)
            return None
        with records.lock:
            self._prove_ranges(answer, size_bytes)
            records.last_reservation += 1
            made = Reservation(records.last_reservation, answer, size)
            if locked:
                _ = made.lock.acquire()
            self.touched.new(made)
            records.reservations[made.serial] = made
        return made

    def _prove_ranges(self, address: int, size_bytes: int) -> None:
        """A range that overlaps one being given back proves that it was given back."""
        records = self.records
        unit = records.settings.granularity_bytes
        for old in list(records.doubtful_ranges.values()):
            if old.address < address + size_bytes and address < old.address + old.size * unit:
                del records.doubtful_ranges[old.address]
                old.proven = True
                if old.standing is Standing.QUARANTINED:
                    self.touched.add(old)
                    old.gone = True
                    del records.reservations[old.serial]

    def set_standing(self, reservation: Reservation, standing: Standing) -> None:
        """The reservation is closed, or its range quarantined."""
        self.touched.add(reservation)
        reservation.standing = standing

    def address_free(self, reservation: Reservation) -> None:
        """Give a range back, once; not confirmed, it is quarantined."""
        records = self.records
        self.touched.add(reservation)
        if records.lost:
            reservation.standing = Standing.QUARANTINED
        self._go(Step.ADDRESS_FREE)
        with records.lock:
            records.doubtful_ranges[reservation.address] = reservation
        size_bytes = reservation.size * records.settings.granularity_bytes
        fault = self.driver.address_free(reservation.address, size_bytes)
        with records.lock:
            if fault is None or reservation.proven:
                if records.doubtful_ranges.get(reservation.address) is reservation:
                    del records.doubtful_ranges[reservation.address]
                reservation.gone = True
                del records.reservations[reservation.serial]
            else:
                reservation.standing = Standing.QUARANTINED
        if fault is not None:
            self._failed(fault)

    # --- handles ----------------------------------------------------------------------------

    def create(self, size: int) -> Handle | Fault:
        """Create a handle out of the grant; its charge begins."""
        self._go(Step.CREATE)
        records = self.records
        answer = self.driver.create(size * records.settings.granularity_bytes)
        if isinstance(answer, Fault):
            if not answer.rules_out_effect:
                self.touched.unattributed += size
                with records.lock:
                    self._spend(size)
                    records.unattributed += size
            self._failed(answer)
            return answer
        with records.lock:
            self._prove_handle(answer)
            self._spend(size)
            records.last_handle += 1
            made = Handle(records.last_handle, answer, size)
            self.touched.new(made)
            records.handles[made.serial] = made
            records.owned += size
        return made

    def _prove_handle(self, value: int) -> None:
        """A value that is handed out again proves that its old handle was released."""
        records = self.records
        old = records.doubtful_handles.pop(value, None)
        if old is None:
            return
        old.proven = True
        if old.quarantined:
            self.touched.add(old)
            self._end(old)
            records.quarantined -= old.size

    def _end(self, handle: Handle) -> None:
        """A release is confirmed: the charge ends.  The caller holds the lock."""
        handle.gone = True
        del self.records.handles[handle.serial]
        self.records.owned -= handle.size

    def release(self, handle: Handle, *, into_grant: bool = False) -> bool:
        """Give back a handle outside the pool that nothing refers to; whether it is confirmed.

        Never repeated: it may have worked, and the value may be someone else's by now.  What it
        frees can pass ``into_grant`` in the same step, so that nobody else takes it.
        """
        records = self.records
        self.touched.add(handle)
        _ = self.orphans.pop(handle, None)
        if records.lost:
            self.quarantine_handle(handle)
        self._go(Step.RELEASE)
        with records.lock:
            records.doubtful_handles[handle.value] = handle
        fault = self.driver.release(handle.value)
        with records.lock:
            if fault is None or handle.proven:
                if records.doubtful_handles.get(handle.value) is handle:
                    del records.doubtful_handles[handle.value]
                self._end(handle)
                if into_grant:  # after set_limit, what is freed first makes up for the excess
                    self.add_grant(min(handle.size, max(0, records.free)))
            else:
                handle.quarantined = True
                records.quarantined += handle.size
        if fault is not None:
            self._failed(fault)
        return fault is None

    def took(self, handle: Handle) -> None:
        """A handle was just taken from the pool."""
        self.touched.taken(handle)

    def put_back(self, handle: Handle) -> None:
        """A handle that was taken goes to its old place in the pool."""
        _ = self.orphans.pop(handle, None)
        with self.records.lock:
            self.records.pool.put_back(handle)

    def quarantine_handle(self, handle: Handle) -> None:
        """A handle in hand that will not be given back."""
        self.touched.add(handle)
        with self.records.lock:
            handle.quarantined = True
            self.records.quarantined += handle.size

    # --- the grant --------------------------------------------------------------------------

    def add_grant(self, size: int) -> None:
        """Set budget aside; the caller holds the lock."""
        self.grant += size
        self.records.granted += size

    def _spend(self, size: int) -> None:
        self.grant -= size
        self.records.granted -= size

    def return_grant(self) -> None:
        """What is left of the grant goes back."""
        if self.grant:
            with self.records.lock:
                self._spend(self.grant)

    # --- mappings ---------------------------------------------------------------------------

    def span_of(self, run: Sequence[Mapping]) -> tuple[int, int]:
        """Address and bytes of a run."""
        unit = self.records.settings.granularity_bytes
        first = run[0].window
        return run[0].reservation.address + first * unit, (run[-1].end - first) * unit

    def map(self, reservation: Reservation, window: int, handle: Handle) -> Mapping | None:
        """Map a handle: the mapping, or None after a fault."""
        self._go(Step.MAP)
        mapping = Mapping(reservation, window, handle)
        self.touched.new(mapping)
        self.made.append(mapping)
        with self.records.lock:
            self.refer(handle, mappings=1)
            reservation.add(mapping)
            self.records.mapped += mapping.size
        address, size_bytes = self.span_of((mapping,))
        fault = self.driver.map(address, size_bytes, handle.value)
        if fault is not None:
            self._failed(fault)
            if self.is_mapped(mapping) is False:
                self._forget(mapping)
                _ = self.made.pop()
            return None
        return mapping

    def set_access(self, run: Sequence[Mapping], rights: Rights) -> bool:
        """Give rights on a run; whether it is confirmed.  If not, they are not known."""
        self._go(Step.SET_ACCESS)
        fault = self.driver.set_access(*self.span_of(run), rights)
        for mapping in run:
            self.touched.add(mapping)
            mapping.rights = rights if fault is None else Rights.UNKNOWN
        if fault is not None:
            self._failed(fault)
        return fault is None

    def map_with(self, wanted: Iterable[Place], rights: Rights) -> bool:
        """Map handles, then give rights a run at a time; whether all of it is confirmed."""
        before = len(self.made)
        for place in wanted:
            if self.map(*place) is None:
                return False
        return all(self.set_access(run, rights) for run in contiguous(self.made[before:]))

    def is_mapped(self, mapping: Mapping) -> bool | None:
        """Ask the driver (D-25); None when the question stays open."""
        self._go(Step.QUERY)
        answer = self.driver.query(self.span_of((mapping,))[0])
        if isinstance(answer, Fault):
            self._failed(answer)
            return None
        return answer is not None

    def unmap(self, run: list[Mapping]) -> Unmapped:
        """Unmap a run; after a fault, ask for each of its mappings, in window order."""
        self._go(Step.UNMAP)
        for mapping in run:
            self.touched.add(mapping)
        fault = self.driver.unmap(*self.span_of(run))
        if fault is None:
            for mapping in run:
                self._forget(mapping)
            return Unmapped(run, [], [])
        self._failed(fault)
        result = Unmapped([], [], [])
        for mapping in run:  # each answer is booked before the next question, which may be the last
            mapped = self.is_mapped(mapping)
            if mapped is None:
                result.open.append(mapping)
            elif mapped:
                result.there.append(mapping)
            else:
                self._forget(mapping)
                result.gone.append(mapping)
        return result

    def unmake(self, made: Sequence[Mapping]) -> None:
        """UNWIND: unmap newest first, one at a time; what is not confirmed gone is quarantined."""
        for mapping in reversed(made):
            result = self.unmap([mapping])
            self.quarantine((*result.there, *result.open))

    def confirm_gone(self, mapping: Mapping) -> bool:
        """Ask about a quarantined mapping, unmap what is there, ask again where that failed."""
        mapped = self.is_mapped(mapping)
        if mapped:
            self._go(Step.UNMAP)
            fault = self.driver.unmap(*self.span_of((mapping,)))
            if fault is None:
                mapped = False
            else:
                self._failed(fault)
                mapped = self.is_mapped(mapping)
        if mapped is not False:
            return False
        self._forget(mapping)
        return True

    def _forget(self, mapping: Mapping) -> None:
        """A mapping is confirmed gone, or never made: its reference ends."""
        self.touched.add(mapping)
        with self.records.lock:
            mapping.gone = True
            mapping.reservation.remove(mapping)
            self.refer(mapping.handle, mappings=-1)
            self.records.mapped -= mapping.size

    def quarantine(self, mappings: Iterable[Mapping]) -> None:
        """Mappings that the driver would not confirm gone."""
        for mapping in mappings:
            self.touched.add(mapping)
            mapping.quarantined = True

    # --- references -------------------------------------------------------------------------

    def refer(self, handle: Handle, *, mappings: int = 0, others: int = 0) -> None:
        """Change what refers to a handle: mappings, or prefixes and operations under way.

        The caller holds the lock.  Whoever takes the last reference has to dispose of the handle.
        """
        held = handle.held
        handle.mappings += mappings
        handle.references += mappings + others
        change = handle.held - held
        self.records.held += change
        self.touched.held += change
        if not handle.references:
            self.touched.add(handle)
            self.orphans[handle] = None

    def end_prefix(self, prefix: Prefix) -> None:
        """A prefix is retired or cancelled: its references end.  The caller holds the lock."""
        self.touched.add(prefix)
        prefix.gone = True
        del self.records.prefixes[prefix.serial]
        if not prefix.sealed:
            prefix.reservation.unsealed.remove(prefix)
        for handle in prefix.handles:
            self.refer(handle, others=-1)

    def give_back_orphans(self, handles: Iterable[Handle]) -> None:
        """Release those of the handles whose last reference this operation has ended."""
        for handle in handles:
            if handle in self.orphans:
                _ = self.release(handle)  # not confirmed, it is quarantined and listed

    # --- the device -------------------------------------------------------------------------

    def fence(self) -> bool:
        """Wait for the device; whether it is done."""
        self._go(Step.FENCE)
        fault = self.driver.fence()
        if fault is not None:
            self._failed(fault)
        return fault is None

    def clear(self, run: Sequence[Mapping]) -> bool:
        """Start clearing a run; whether it is under way."""
        self._go(Step.CLEAR)
        fault = self.driver.clear(*self.span_of(run))
        if fault is not None:
            self._failed(fault)
        return fault is None

    def copy(self, target: Sequence[Mapping], source: int, size_bytes: int) -> bool:
        """Start copying from an address to the begin of a run; whether it is under way."""
        self._go(Step.COPY)
        fault = self.driver.copy(self.span_of(target)[0], source, size_bytes)
        if fault is not None:
            self._failed(fault)
        return fault is None

    def abandon(self, mappings: Iterable[Mapping], handles: Iterable[Handle]) -> None:
        """The device is lost: what is in hand is quarantined, without any call."""
        self.quarantine(mapping for mapping in mappings if not mapping.gone)
        for handle in (*handles, *self.orphans):
            idle = not (handle.references or handle.pooled or handle.gone or handle.quarantined)
            if idle:
                self.quarantine_handle(handle)
