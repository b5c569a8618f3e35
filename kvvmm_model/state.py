"""The state of a virtual-memory manager, and every change that can be booked in it.

The theory, in one place.  A *reservation* is an address range of windows, one granule each.
A *handle* is physical memory of n granules.  A *mapping* puts a whole handle into n consecutive
windows of one reservation.  A window that no mapping covers is *reserved*; one that is covered is
*committed*, or *quarantined* when the driver would not confirm what became of the mapping.

Memory is counted on two axes, each settled once.  *Owned*: a handle is charged from its create
until its release is confirmed, whatever happens between.  *Mapped*: a mapping counts from before
the driver is asked to make it until the driver confirmed that it is gone.  A handle counts its
references; at zero it is disposed of, once: into the pool, or back to the driver.

What the driver would not confirm stays counted.  A mapping in doubt is quarantined with its
reference; a handle whose release failed is quarantined with its charge; an address range whose
freeing failed is listed.  Nothing in quarantine is used again.  When the driver hands out the
same value anew, that proves that the old call worked, and the entry ends.

Every method of ``State`` books one event, which is one row of the ledger's table in
``spec/operations.md``, and gives the state after it.  Operations (``ops/``) decide which event
happens; this file only says what it changes.
"""

from collections.abc import Callable

from attrs import evolve, field, frozen

from kvvmm_model.table import Table
from kvvmm_model.vocabulary import (
    HandleView,
    Ledger,
    MappingView,
    Observation,
    Outcome,
    RangeView,
    Rights,
    Settings,
    Standing,
)


@frozen
class Mapping:
    """A whole handle in the windows from ``window`` on; ``rights`` as far as they are known."""

    reservation: int
    window: int
    handle: int
    size: int
    rights: Rights = Rights.NONE
    quarantined: bool = False

    @property
    def end(self) -> int:
        """The window after its last."""
        return self.window + self.size

    @property
    def writable(self) -> bool:
        """Whether the rights are known to be RW."""
        return self.rights is Rights.RW


@frozen
class Reservation:
    """An address range; ``mappings`` in window order."""

    serial: int
    address: int
    size: int
    standing: Standing = Standing.OPEN
    mappings: tuple[Mapping, ...] = ()

    def address_of(self, window: int, granularity_bytes: int) -> int:
        """Where a window lies."""
        return self.address + window * granularity_bytes


@frozen
class Handle:
    """Physical memory; ``value`` is the driver's name for it, which the driver recycles."""

    serial: int
    value: int
    size: int
    references: int = 0
    quarantined: bool = False


@frozen
class Pooled:
    """A handle in the pool; a larger place entered later.  A hit put back has its old place."""

    place: int
    handle: int


@frozen
class State:
    """Everything that a manager knows, as one value."""

    settings: Settings
    ledger: Ledger
    reservations: Table[int, Reservation] = field(factory=Table[int, Reservation])
    handles: Table[int, Handle] = field(factory=Table[int, Handle])
    pool: tuple[Pooled, ...] = ()
    lost: int = 0  # the sticky code that lost the device; 0 while it is there
    next_reservation: int = 1
    next_handle: int = 1
    next_place: int = 1

    # --- reading --------------------------------------------------------------------------

    def bytes(self, granules: int) -> int:
        """Granules as bytes."""
        return granules * self.settings.granularity_bytes

    def open_reservation(self, serial: object) -> Reservation | None:
        """The reservation that an operation may name, or None for anything else."""
        found = self.reservations.get(serial) if type(serial) is int else None
        return found if found is not None and found.standing is Standing.OPEN else None

    def _count(self, **changes: int) -> Ledger:
        """The ledger with fields raised or lowered."""
        return self.ledger._replace(
            **{name: getattr(self.ledger, name) + by for name, by in changes.items()}
        )

    def _with_mappings(
        self, reservation: int, mappings: tuple[Mapping, ...]
    ) -> Table[int, Reservation]:
        return self.reservations.put(
            reservation, evolve(self.reservations[reservation], mappings=mappings)
        )

    # --- address ranges -------------------------------------------------------------------

    def reserved(self, address: int, size: int) -> "State":
        """address_reserve gave a range.  A range in quarantine that it overlaps was freed."""
        kept = {
            serial: old
            for serial, old in self.reservations.items()
            if old.standing is not Standing.QUARANTINED or not self._overlap(old, address, size)
        }
        serial = self.next_reservation
        kept[serial] = Reservation(serial, address, size)
        return evolve(self, reservations=Table(kept), next_reservation=serial + 1)

    def _overlap(self, old: Reservation, address: int, size: int) -> bool:
        return old.address < address + self.bytes(size) and address < old.address + self.bytes(
            old.size
        )

    def addresses_unattributed(self, size: int) -> "State":
        """address_reserve failed and may have worked: a range that nobody can name."""
        return evolve(self, ledger=self._count(unattributed_addresses=size))

    def standing(self, reservation: int, standing: Standing) -> "State":
        """A reservation is closed, or its range quarantined."""
        changed = evolve(self.reservations[reservation], standing=standing)
        return evolve(self, reservations=self.reservations.put(reservation, changed))

    def range_freed(self, reservation: int) -> "State":
        """address_free was confirmed."""
        return evolve(self, reservations=self.reservations.without(reservation))

    # --- handles --------------------------------------------------------------------------

    def granted(self, size: int) -> "State":
        """Budget is set aside for what a commit will create; negative gives it back."""
        return evolve(self, ledger=self._count(granted=size))

    def created(self, value: int, size: int) -> "State":
        """A create was confirmed: its grant becomes a charge.

        A handle in quarantine that had the same value was released: its charge ends.
        """
        proven = [old for old in self.handles.values() if old.quarantined and old.value == value]
        state = self
        for old in proven:
            state = evolve(
                state,
                handles=state.handles.without(old.serial),
                ledger=state._count(charged=-old.size, owned=-old.size, quarantined=-old.size),
            )
        serial = state.next_handle
        return evolve(
            state,
            handles=state.handles.put(serial, Handle(serial, value, size)),
            ledger=state._count(granted=-size, charged=size, owned=size),
            next_handle=serial + 1,
        )

    def memory_unattributed(self, size: int) -> "State":
        """A create failed and may have worked: charged, without a handle we could name."""
        return evolve(self, ledger=self._count(granted=-size, charged=size, unattributed=size))

    def released(self, handle: int) -> "State":
        """A release was confirmed."""
        size = self.handles[handle].size
        return evolve(
            self,
            handles=self.handles.without(handle),
            ledger=self._count(charged=-size, owned=-size),
        )

    def handle_quarantined(self, handle: int) -> "State":
        """A handle that nothing refers to, and whose release was not confirmed."""
        old = self.handles[handle]
        return evolve(
            self,
            handles=self.handles.put(handle, evolve(old, quarantined=True)),
            ledger=self._count(quarantined=old.size),
        )

    # --- the pool -------------------------------------------------------------------------

    def pooled(self, handle: int) -> "State":
        """The last reference left and the handle is kept for reuse, as the newest."""
        return evolve(
            self,
            pool=(*self.pool, Pooled(self.next_place, handle)),
            next_place=self.next_place + 1,
            ledger=self._count(pooled=self.handles[handle].size),
        )

    def left_pool(self, entry: Pooled) -> "State":
        """A handle leaves the pool: a hit, given up or trimmed."""
        return evolve(
            self,
            pool=tuple(other for other in self.pool if other != entry),
            ledger=self._count(pooled=-self.handles[entry.handle].size),
        )

    def put_back(self, entry: Pooled) -> "State":
        """A hit that was not used is in its old place again."""
        pool = tuple(sorted((*self.pool, entry), key=lambda each: each.place))
        return evolve(self, pool=pool, ledger=self._count(pooled=self.handles[entry.handle].size))

    # --- mappings -------------------------------------------------------------------------

    def mapped(self, mapping: Mapping) -> "State":
        """A mapping is about to be made: it holds a reference from now on."""
        there = self.reservations[mapping.reservation].mappings
        handle = self.handles[mapping.handle]
        return evolve(
            self,
            reservations=self._with_mappings(
                mapping.reservation, tuple(sorted((*there, mapping), key=lambda each: each.window))
            ),
            handles=self.handles.put(
                handle.serial, evolve(handle, references=handle.references + 1)
            ),
            ledger=self._count(mapped=mapping.size),
        )

    def unmapped(self, mapping: Mapping) -> "State":
        """A mapping is confirmed gone, or confirmed never made: its reference ends."""
        there = self.reservations[mapping.reservation].mappings
        handle = self.handles[mapping.handle]
        return evolve(
            self,
            reservations=self._with_mappings(
                mapping.reservation, tuple(each for each in there if each.window != mapping.window)
            ),
            handles=self.handles.put(
                handle.serial, evolve(handle, references=handle.references - 1)
            ),
            ledger=self._count(mapped=-mapping.size),
        )

    def rights(self, run: tuple[Mapping, ...], rights: Rights) -> "State":
        """The rights on a run of mappings of one reservation, as far as they are known."""
        return self._changed(run, lambda mapping: evolve(mapping, rights=rights))

    def quarantined(self, mappings: tuple[Mapping, ...]) -> "State":
        """Mappings of one reservation that the driver would not confirm gone."""
        return self._changed(mappings, lambda mapping: evolve(mapping, quarantined=True))

    def _changed(
        self, mappings: tuple[Mapping, ...], change: Callable[[Mapping], Mapping]
    ) -> "State":
        if not mappings:
            return self
        windows = {mapping.window for mapping in mappings}
        reservation = mappings[0].reservation
        return evolve(
            self,
            reservations=self._with_mappings(
                reservation,
                tuple(
                    change(each) if each.window in windows else each
                    for each in self.reservations[reservation].mappings
                ),
            ),
        )

    # --- the limit and the device -----------------------------------------------------------

    def limited(self, limit: int) -> "State":
        """The limit is another; nothing is taken back."""
        return evolve(self, ledger=self.ledger._replace(limit=limit))

    def device_lost(self, code: int) -> "State":
        """A sticky code: from now on every operation is refused (D-19)."""
        return evolve(self, lost=code)


@frozen
class Transition:
    """What an operation gives: the state after it, and its outcome."""

    state: State
    outcome: Outcome


def initial(settings: Settings, limit: int) -> State:
    """Nothing reserved, nothing charged; ``limit`` in granules."""
    return State(settings, Ledger(limit=limit))


def observe(state: State) -> Observation:
    """What can be seen of a state from outside, by serial."""
    reservations = state.reservations.values()
    return Observation(
        ranges={r.serial: RangeView(r.serial, r.address, r.size, r.standing) for r in reservations},
        mappings={
            (m.reservation, m.window): MappingView(
                m.reservation, m.window, m.handle, m.size, m.rights, m.quarantined
            )
            for r in reservations
            for m in r.mappings
        },
        handles={
            h.serial: HandleView(h.serial, h.size, h.quarantined) for h in state.handles.values()
        },
        pool=tuple(entry.handle for entry in state.pool),
        ledger=state.ledger,
        lost=bool(state.lost),
    )
