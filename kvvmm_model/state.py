"""The state of a virtual-memory manager, and every change that can be booked in it.

The theory, in one place.  A *reservation* is an address range of windows, one granule each.
A *handle* is physical memory of n granules.  A *mapping* puts a whole handle into n consecutive
windows of one reservation.  A window that no mapping covers is *reserved*; one that is covered is
*committed*, *shared* once its memory is sealed, or *quarantined* when the driver would not confirm
what became of the mapping.

A *prefix* is the run of whole handles at the beginning of a reservation that its owner published.
*Sealed*, its memory can be read by everybody and written by nobody, its owner included, and other
reservations may map the very same handles.  The prefix holds each of its handles, so that the
memory lives until owner, sharers and prefix have all left, in whatever order.

Memory is counted on two axes, each settled once.  *Owned*: a handle is charged from its create
until its release is confirmed, whatever happens between.  *Mapped*: a mapping counts from before
the driver is asked to make it until the driver confirmed that it is gone.  A handle counts its
references, mappings and prefixes alike; at zero it is disposed of, once: into the pool, or back to
the driver.  However many windows show it, it is charged once.

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
    PrefixView,
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

    @property
    def sealed(self) -> bool:
        """Whether it can only be read: a sealed owner's, or a sharer's."""
        return self.rights is Rights.READ


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
    mappings: int = 0
    prefixes: int = 0
    quarantined: bool = False

    @property
    def references(self) -> int:
        """Mappings not confirmed gone, and live prefixes (L-4)."""
        return self.mappings + self.prefixes

    @property
    def held(self) -> int:
        """Its size where prefixes alone keep it, else 0."""
        return self.size if self.prefixes and not self.mappings else 0


@frozen
class Prefix:
    """What an owner published: whole handles, in the order of its leading windows."""

    serial: int
    reservation: int
    handles: tuple[int, ...]
    sealed: bool = False


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
    prefixes: Table[int, Prefix] = field(factory=Table[int, Prefix])
    pool: tuple[Pooled, ...] = ()
    lost: int = 0  # the sticky code that lost the device; 0 while it is there
    next_reservation: int = 1
    next_handle: int = 1
    next_prefix: int = 1
    next_place: int = 1

    # --- reading --------------------------------------------------------------------------

    def bytes(self, granules: int) -> int:
        """Granules as bytes."""
        return granules * self.settings.granularity_bytes

    def open_reservation(self, serial: object) -> Reservation | None:
        """The reservation that an operation may name, or None for anything else."""
        found = self.reservations.get(serial) if type(serial) is int else None
        return found if found is not None and found.standing is Standing.OPEN else None

    def live_prefix(self, serial: object) -> Prefix | None:
        """The prefix that an operation may name, or None for anything else."""
        return self.prefixes.get(serial) if type(serial) is int else None

    def unsealed_of(self, reservation: int) -> list[Prefix]:
        """The prefixes of a reservation that nobody can attach yet."""
        return [
            prefix
            for prefix in self.prefixes.values()
            if prefix.reservation == reservation and not prefix.sealed
        ]

    def size_of(self, prefix: Prefix) -> int:
        """How many windows a prefix fills."""
        return sum(self.handles[serial].size for serial in prefix.handles)

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
        state = evolve(
            self,
            reservations=self._with_mappings(
                mapping.reservation, tuple(sorted((*there, mapping), key=lambda each: each.window))
            ),
            ledger=self._count(mapped=mapping.size),
        )
        return state._referenced(mapping.handle, mappings=1)

    def unmapped(self, mapping: Mapping) -> "State":
        """A mapping is confirmed gone, or confirmed never made: its reference ends."""
        there = self.reservations[mapping.reservation].mappings
        state = evolve(
            self,
            reservations=self._with_mappings(
                mapping.reservation, tuple(each for each in there if each.window != mapping.window)
            ),
            ledger=self._count(mapped=-mapping.size),
        )
        return state._referenced(mapping.handle, mappings=-1)

    def _referenced(self, handle: int, mappings: int = 0, prefixes: int = 0) -> "State":
        """A handle's references change; what only prefixes keep is *held*."""
        old = self.handles[handle]
        new = evolve(old, mappings=old.mappings + mappings, prefixes=old.prefixes + prefixes)
        return evolve(
            self,
            handles=self.handles.put(handle, new),
            ledger=self._count(held=new.held - old.held),
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

    # --- prefixes -------------------------------------------------------------------------

    def published(self, reservation: int, handles: tuple[int, ...]) -> "State":
        """An owner's leading handles become a prefix, which holds each of them."""
        made = Prefix(self.next_prefix, reservation, handles)
        state = evolve(
            self,
            prefixes=self.prefixes.put(made.serial, made),
            next_prefix=made.serial + 1,
        )
        for handle in handles:
            state = state._referenced(handle, prefixes=1)
        return state

    def sealed(self, prefix: Prefix) -> "State":
        """All of a prefix can only be read."""
        return evolve(self, prefixes=self.prefixes.put(prefix.serial, evolve(prefix, sealed=True)))

    def ended(self, prefix: Prefix) -> "State":
        """A prefix is retired or cancelled: its references end."""
        state = evolve(self, prefixes=self.prefixes.without(prefix.serial))
        for handle in prefix.handles:
            state = state._referenced(handle, prefixes=-1)
        return state

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
        prefixes={
            p.serial: PrefixView(p.serial, p.reservation, p.handles, p.sealed)
            for p in state.prefixes.values()
        },
        pool=tuple(entry.handle for entry in state.pool),
        ledger=state.ledger,
        lost=bool(state.lost),
    )
