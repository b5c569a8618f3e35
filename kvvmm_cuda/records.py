"""The backend's mutable records: what it knows of ranges, mappings and handles, with indexes.

Two kinds of lock.  A reservation's own is held for the whole of an operation on it.  The records'
lock guards ledger, pool and tables; it is held for a check and a change, never across a driver
call, so that two threads on two reservations do not wait for each other's driver calls.
"""

from bisect import bisect_left, insort
from threading import Lock

from kvvmm_cuda.handle import Handle
from kvvmm_cuda.pool import Pool
from kvvmm_model.vocabulary import (
    Fact,
    HandleView,
    Ledger,
    MappingView,
    Observation,
    PrefixView,
    RangeView,
    Rights,
    Settings,
    Standing,
)


class Mapping:
    """A whole handle in the windows from ``window`` up to ``end``; ``gone`` when confirmed so."""

    __slots__ = ("end", "gone", "handle", "quarantined", "reservation", "rights", "size", "window")

    def __init__(self, reservation: "Reservation", window: int, handle: Handle) -> None:
        """A mapping that is about to be made."""
        self.reservation = reservation
        self.window = window
        self.handle = handle
        self.size = handle.size
        self.end = window + handle.size
        self.rights = Rights.NONE
        self.quarantined = False
        self.gone = False

    def facts(self) -> tuple[Fact, ...]:
        """What can be observed of it."""
        if self.gone:
            return ()
        serial = self.reservation.serial
        return (
            MappingView(
                serial, self.window, self.handle.serial, self.size, self.rights, self.quarantined
            ),
        )


class Reservation:
    """An address range and the mappings in it, indexed by their first window.

    ``unsealed``: the prefixes published of it that nobody can attach yet.
    """

    __slots__ = (
        "_at",
        "_starts",
        "address",
        "gone",
        "lock",
        "proven",
        "serial",
        "size",
        "standing",
        "unsealed",
    )

    def __init__(self, serial: int, address: int, size: int) -> None:
        """A range that was just reserved."""
        self.serial = serial
        self.address = address
        self.size = size
        self.standing = Standing.OPEN
        self.gone = False
        self.proven = False
        self.lock = Lock()
        self.unsealed: list[Prefix] = []
        self._starts: list[int] = []
        self._at: dict[int, Mapping] = {}

    def __len__(self) -> int:
        """How many mappings it holds."""
        return len(self._starts)

    def add(self, mapping: Mapping) -> None:
        """Index a mapping."""
        insort(self._starts, mapping.window)
        self._at[mapping.window] = mapping

    def remove(self, mapping: Mapping) -> None:
        """Forget a mapping."""
        del self._starts[bisect_left(self._starts, mapping.window)]
        del self._at[mapping.window]

    def overlapping(self, first: int, end: int) -> list[Mapping]:
        """The mappings that touch ``[first, end)``, in window order."""
        low = bisect_left(self._starts, first)
        if low and self._at[self._starts[low - 1]].end > first:
            low -= 1
        return [self._at[window] for window in self._starts[low : bisect_left(self._starts, end)]]

    def leading(self, count: int) -> list[Mapping]:
        """The first so many mappings, in window order."""
        return [self._at[window] for window in self._starts[:count]]

    def mappings(self) -> list[Mapping]:
        """All of its mappings, in window order."""
        return [self._at[window] for window in self._starts]

    def facts(self) -> tuple[Fact, ...]:
        """What can be observed of the range."""
        if self.gone:
            return ()
        return (RangeView(self.serial, self.address, self.size, self.standing),)


class Prefix:
    """What was published of ``reservation``: whole handles, in the order of its leading windows."""

    __slots__ = ("_serials", "gone", "handles", "reservation", "sealed", "serial", "size")

    def __init__(self, serial: int, reservation: Reservation, handles: tuple[Handle, ...]) -> None:
        """A prefix that was just published."""
        self.serial = serial
        self.reservation = reservation
        self.handles = handles
        self.size = sum(handle.size for handle in handles)
        self._serials = tuple(handle.serial for handle in handles)
        self.sealed = False
        self.gone = False

    def view(self) -> PrefixView:
        """What can be observed of it while it lives."""
        return PrefixView(self.serial, self.reservation.serial, self._serials, self.sealed)

    def facts(self) -> tuple[Fact, ...]:
        """What can be observed of it."""
        return () if self.gone else (self.view(),)


class Records:
    """Everything that one manager knows.

    ``doubtful_handles`` (by value) and ``doubtful_ranges`` (by address) are those whose giving
    back is under way or was not confirmed: when the driver hands out the same value again, that
    proves that it worked.
    """

    def __init__(self, settings: Settings, limit: int) -> None:
        """Nothing is held; ``limit`` in granules."""
        self.settings = settings
        self.lock = Lock()
        self.reservations: dict[int, Reservation] = {}
        self.handles: dict[int, Handle] = {}
        self.prefixes: dict[int, Prefix] = {}
        self.pool = Pool()
        self.doubtful_handles: dict[int, Handle] = {}
        self.doubtful_ranges: dict[int, Reservation] = {}
        self.lost = 0
        self.last_reservation = 0
        self.last_handle = 0
        self.last_prefix = 0
        self.limit = limit
        self.granted = 0
        self.owned = 0
        self.mapped = 0
        self.held = 0
        self.quarantined = 0
        self.unattributed = 0
        self.unattributed_addresses = 0

    @property
    def charged(self) -> int:
        """Handles not confirmed released, and memory that nobody can name (L-2)."""
        return self.owned + self.unattributed

    @property
    def free(self) -> int:
        """What may still be granted."""
        return self.limit - self.owned - self.unattributed - self.granted

    def ledger(self) -> Ledger:
        """The ledger as it stands; the caller holds the lock."""
        return Ledger(
            limit=self.limit,
            charged=self.charged,
            granted=self.granted,
            owned=self.owned,
            mapped=self.mapped,
            held=self.held,
            pooled=self.pool.size,
            quarantined=self.quarantined,
            unattributed=self.unattributed,
            unattributed_addresses=self.unattributed_addresses,
        )


def observe(records: Records) -> Observation:
    """All that can be observed at rest, by serial."""
    with records.lock:
        reservations = list(records.reservations.values())
        return Observation(
            ranges={
                r.serial: RangeView(r.serial, r.address, r.size, r.standing) for r in reservations
            },
            mappings={
                (r.serial, m.window): MappingView(
                    r.serial, m.window, m.handle.serial, m.size, m.rights, m.quarantined
                )
                for r in reservations
                for m in r.mappings()
            },
            handles={
                h.serial: HandleView(h.serial, h.size, h.quarantined)
                for h in records.handles.values()
            },
            prefixes={p.serial: p.view() for p in records.prefixes.values()},
            pool=tuple(handle.serial for handle in records.pool),
            ledger=records.ledger(),
            lost=bool(records.lost),
        )
