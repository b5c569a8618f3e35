"""A driver that needs no device: answers as one was measured, and counts what is really held.

It knows nothing of managers or of their states, so it can judge them: legality of each call,
physical memory, references, contents.  What a real driver leaves undefined (a stale handle, an
unmap under work that still runs) raises ``DriverMisuse`` here, for no answer would be right.

Nothing in it locks.  Threads go through ``kvvmm_model.yielding.YieldingDriver``.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple, Protocol, runtime_checkable

from attrs import frozen

from kvvmm_model.address_space import AddressSpace
from kvvmm_model.device_memory import Copy, Mapped, Physical, Piece, Store, copies, overlap
from kvvmm_model.granules import WORD_BYTES
from kvvmm_model.vocabulary import Code, Fault, Rights, Step

__all__ = [
    "DOCUMENTED",
    "H200_580",
    "DriverMisuse",
    "DriverModel",
    "LiveHandle",
    "LiveMapping",
    "Memory",
    "Profile",
]

TIB = 1 << 40
GIB = 1 << 30

_TOO_LARGE = 1 << 64
_FIRST_ADDRESS = TIB  # a multiple of any alignment that somebody may reasonably ask for
_FIRST_HANDLE = 0x2E9C_0010
_HANDLE_STRIDE = 0x70


class DriverMisuse(Exception):
    """A call whose effect on a real driver is undefined, or that no real driver could be passed."""


@runtime_checkable
class Memory(Protocol):
    """What a test may do to the bytes behind addresses; 32-bit words."""

    def write(self, address: int, size_bytes: int, word: int) -> Fault | None:
        """Start filling a run with one word; complete only at the next fence or read."""
        ...

    def read(self, address: int) -> int | Fault:
        """The word at an address, once everything started before has finished."""
        ...


@frozen
class Profile:
    """The answers that differ from driver to driver.

    ``address_space_bytes``: what all reservations together may take (D-2).
    ``unmap_of_unmapped_succeeds``: D-21; otherwise every granule of an unmap must be mapped.
    ``set_access_stops_at_hole``: D-15; otherwise a hole refuses the call and changes nothing.
    ``map_may_spill``: D-11; otherwise a mapping ends where its reservation ends.
    """

    name: str
    address_space_bytes: int = 126 * TIB
    unmap_of_unmapped_succeeds: bool = True
    set_access_stops_at_hole: bool = True
    map_may_spill: bool = True


H200_580 = Profile("NVIDIA H200, driver 580.159.04")
DOCUMENTED = Profile(
    "as the documentation reads",
    unmap_of_unmapped_succeeds=False,
    set_access_stops_at_hole=False,
    map_may_spill=False,
)


class LiveHandle(NamedTuple):
    """Physical memory that exists: its bytes, its mappings, and whether it is still referenced."""

    size_bytes: int
    mappings: int
    referenced: bool


class LiveMapping(NamedTuple):
    """A mapping that exists; the handle by its value."""

    handle: int
    size_bytes: int
    rights: Rights


# Answers are made once: building a frozen value would cost more than the call itself.
_RESERVE_INVALID = Fault(Step.ADDRESS_RESERVE, Code.INVALID_VALUE)
_RESERVE_NO_ROOM = Fault(Step.ADDRESS_RESERVE, Code.OUT_OF_MEMORY)
_CREATE_INVALID = Fault(Step.CREATE, Code.INVALID_VALUE)
_CREATE_NO_MEMORY = Fault(Step.CREATE, Code.OUT_OF_MEMORY)
_MAP_INVALID = Fault(Step.MAP, Code.INVALID_VALUE)
_MAP_NOT_WHOLE = Fault(Step.MAP, Code.NOT_SUPPORTED)
_SET_ACCESS_INVALID = Fault(Step.SET_ACCESS, Code.INVALID_VALUE)
_CLEAR_INVALID = Fault(Step.CLEAR, Code.INVALID_VALUE)
_COPY_INVALID = Fault(Step.COPY, Code.INVALID_VALUE)
_UNMAP_INVALID = Fault(Step.UNMAP, Code.INVALID_VALUE)
_FREE_INVALID = Fault(Step.ADDRESS_FREE, Code.INVALID_VALUE)
_READ_INVALID = Fault(Step.QUERY, Code.INVALID_VALUE)

_WRITABLE = (Rights.RW,)
_READABLE = (Rights.RW, Rights.READ)


def _check(a: int, b: int = 0, c: int = 0) -> None:
    """Refuse what could not be passed to a driver: foreign types, negatives, over 64 bits.

    Exactly ``int``: an object that only compares like one is how a handle gets lost (D-9).
    """
    if not (
        type(a) is int
        and type(b) is int
        and type(c) is int
        and 0 <= a < _TOO_LARGE
        and 0 <= b < _TOO_LARGE
        and 0 <= c < _TOO_LARGE
    ):
        message = f"arguments must be plain integers in [0, 2**64): {(a, b, c)!r}"
        raise DriverMisuse(message)


class DriverModel:
    """Implements ``Driver`` and ``Memory``.

    ``granularity_bytes``: a power of two, at least 4.  ``capacity_bytes``: above it, create answers
    OUT_OF_MEMORY (D-5).  ``oddities``: sentences about calls that succeeded and surprise.
    """

    def __init__(
        self,
        *,
        granularity_bytes: int = 2 << 20,
        capacity_bytes: int = 64 * GIB,
        profile: Profile = H200_580,
    ) -> None:
        if granularity_bytes < WORD_BYTES or granularity_bytes & (granularity_bytes - 1):
            message = f"granularity_bytes={granularity_bytes!r}: choose a power of two, 4 or more"
            raise ValueError(message)
        self.capacity_bytes = capacity_bytes
        self.profile = profile
        self.oddities: list[str] = []
        self._granularity = granularity_bytes
        self._mask = granularity_bytes - 1
        self._space = AddressSpace(_FIRST_ADDRESS, _FIRST_ADDRESS + profile.address_space_bytes)
        self._next_value = _FIRST_HANDLE
        self._free_values: list[int] = []
        self._ranges: dict[int, int] = {}
        self._range_starts: list[int] = []
        self._handles: dict[int, Physical] = {}
        self._mappings: dict[int, Mapped] = {}
        self._starts: list[int] = []
        self._pending: list[Store | Copy] = []
        self._physical_bytes = 0

    # --- address ranges ------------------------------------------------------------------------

    @property
    def granularity_bytes(self) -> int:
        """The unit of every size."""
        return self._granularity

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """Take an address range: whole granules, alignment 0 or a power of two (D-1, D-2)."""
        _check(size_bytes, alignment_bytes)
        if size_bytes == 0 or size_bytes & self._mask or alignment_bytes & (alignment_bytes - 1):
            return _RESERVE_INVALID
        address = self._space.take(size_bytes, max(alignment_bytes, self._granularity))
        if address is None:
            return _RESERVE_NO_ROOM
        self._ranges[address] = size_bytes
        self._range_starts.insert(bisect_left(self._range_starts, address), address)
        return address

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """Give back exactly one reservation that no mapping touches (D-4)."""
        _check(address, size_bytes)
        if self._ranges.get(address) != size_bytes:
            return _FREE_INVALID
        end = address + size_bytes
        starts = self._starts
        i = bisect_left(starts, end)
        if i and self._mappings[starts[i - 1]].end > address:
            return _FREE_INVALID
        del self._ranges[address]
        del self._range_starts[bisect_left(self._range_starts, address)]
        self._space.give_back(address, size_bytes)
        return None

    # --- handles -------------------------------------------------------------------------------

    def create(self, size_bytes: int) -> int | Fault:
        """Create physical memory of whole granules that reads as zero (D-5, D-6)."""
        _check(size_bytes)
        if size_bytes == 0 or size_bytes & self._mask:
            return _CREATE_INVALID
        if self._physical_bytes + size_bytes > self.capacity_bytes:
            return _CREATE_NO_MEMORY
        if self._free_values:
            value = self._free_values.pop()
        else:
            value = self._next_value
            self._next_value = value + _HANDLE_STRIDE
        self._handles[value] = Physical(value, size_bytes, self._granularity)
        self._physical_bytes += size_bytes
        return value

    def release(self, handle: int) -> Fault | None:
        """Give the reference of ``create`` back; mapped memory stays until unmapped (D-7).

        Raises ``DriverMisuse`` for a value that is not referenced (D-8).
        """
        _check(handle)
        physical = self._handles.get(handle)
        if physical is None or not physical.referenced:
            message = f"release of handle {handle:#x}, which is not live (D-8)"
            raise DriverMisuse(message)
        physical.referenced = False
        if not physical.mappings:
            self._destroy(physical)
        return None

    def _destroy(self, physical: Physical) -> None:
        del self._handles[physical.value]
        self._physical_bytes -= physical.size
        self._free_values.append(physical.value)

    # --- mappings ------------------------------------------------------------------------------

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """Map a whole handle, without rights (D-10, D-11, D-12, D-13).

        Raises ``DriverMisuse`` for a handle that is not referenced (D-8).
        """
        _check(address, size_bytes, handle)
        physical = self._handles.get(handle)
        if physical is None or not physical.referenced:
            message = f"map of handle {handle:#x}, which is not live (D-8)"
            raise DriverMisuse(message)
        if size_bytes == 0 or address & self._mask:
            return _MAP_INVALID
        if size_bytes != physical.size:
            return _MAP_NOT_WHOLE
        end = address + size_bytes
        starts = self._starts
        i = bisect_right(starts, address)
        if i and self._mappings[starts[i - 1]].end > address:
            return _MAP_INVALID
        if i < len(starts) and starts[i] < end:
            return _MAP_INVALID
        if not self._reserved_for(address, end):
            return _MAP_INVALID
        starts.insert(i, address)
        self._mappings[address] = Mapped(address, end, physical)
        physical.mappings += 1
        return None

    def _reserved_for(self, address: int, end: int) -> bool:
        """Whether a reservation takes a mapping [address, end).

        The measured driver looks at the start, and refuses only what is larger than the whole
        reservation (D-11).
        """
        i = bisect_right(self._range_starts, address)
        if not i:
            return False
        start = self._range_starts[i - 1]
        size = self._ranges[start]
        if address >= start + size:
            return False
        if end <= start + size:
            return True
        if not self.profile.map_may_spill or end - address > size:
            return False
        self.oddities.append(
            f"map at {address:#x} spills over the end of the reservation at {start:#x} (D-11)"
        )
        return True

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """Give rights on a run of whole mappings (D-14, D-15, D-17).

        Raises ``DriverMisuse`` where it would change rights under a store or a copy that has not
        finished (D-34); the same rights again disturb nothing (D-35).
        """
        _check(address, size_bytes)
        if type(rights) is not Rights or rights < 0:
            message = f"set_access with {rights!r}: give NONE, READ or RW"
            raise DriverMisuse(message)
        if size_bytes == 0 or (address | size_bytes) & self._mask:
            return _SET_ACCESS_INVALID
        end = address + size_bytes
        run: list[Mapped] = []
        at = address
        while at < end:
            mapping = self._mappings.get(at)
            if mapping is None:
                break
            run.append(mapping)
            at = mapping.end
        if at > end or not run or (at < end and not self._ends_beyond_hole(end)):
            return _SET_ACCESS_INVALID
        for mapping in run:
            if mapping.pending and mapping.rights is not rights:
                message = f"set_access under unfinished work at {mapping.address:#x} (D-34)"
                raise DriverMisuse(message)
        for mapping in run:
            mapping.rights = rights
        if at < end:
            self.oddities.append(
                f"set_access from {address:#x} stopped at a hole at {at:#x} (D-15)"
            )
        return None

    def _ends_beyond_hole(self, end: int) -> bool:
        """Whether a run with a hole is taken: only where its end is a mapping's end."""
        last = self._at(end - 1)
        return self.profile.set_access_stops_at_hole and last is not None and last.end == end

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """Unmap a run of whole mappings and gaps (D-20, D-21).

        Raises ``DriverMisuse`` under a store or a copy that has not finished (D-22).
        """
        _check(address, size_bytes)
        if size_bytes == 0 or (address | size_bytes) & self._mask:
            return _UNMAP_INVALID
        end = address + size_bytes
        starts, mappings = self._starts, self._mappings
        first = bisect_left(starts, address)
        last = bisect_left(starts, end, first)
        if first and mappings[starts[first - 1]].end > address:
            return _UNMAP_INVALID
        if last > first and mappings[starts[last - 1]].end > end:
            return _UNMAP_INVALID
        run = [mappings[start] for start in starts[first:last]]
        if not self._may_unmap(address, size_bytes, run):
            return _UNMAP_INVALID
        del starts[first:last]
        for mapping in run:
            del mappings[mapping.address]
            physical = mapping.physical
            physical.mappings -= 1
            if not physical.mappings and not physical.referenced:
                self._destroy(physical)
        return None

    def _may_unmap(self, address: int, size: int, run: list[Mapped]) -> bool:
        if not self.profile.unmap_of_unmapped_succeeds:
            if sum(mapping.end - mapping.address for mapping in run) != size:
                return False
        elif not run:
            self.oddities.append(f"unmap at {address:#x} touched nothing that is mapped (D-21)")
        for mapping in run:
            if mapping.pending:
                message = f"unmap under unfinished work at {mapping.address:#x} (D-22)"
                raise DriverMisuse(message)
        return True

    def query(self, address: int) -> Rights | Fault | None:
        """The rights of the mapping at an address; None where nothing is mapped (D-25)."""
        _check(address)
        mapping = self._at(address)
        return None if mapping is None else mapping.rights

    def _at(self, address: int) -> Mapped | None:
        mapping = self._mappings.get(address)
        if mapping is None:
            i = bisect_right(self._starts, address)
            if i:
                before = self._mappings[self._starts[i - 1]]
                if before.end > address:
                    return before
        return mapping

    # --- contents ------------------------------------------------------------------------------

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """Start writing zeros; see ``write``."""
        return self.write(address, size_bytes, 0)

    def write(self, address: int, size_bytes: int, word: int) -> Fault | None:
        """Start filling whole granules with a word; lands at the next fence or read.

        INVALID_VALUE, and nothing is written, unless all of it is mapped RW (D-18).  Raises
        ``DriverMisuse`` for parts of a granule, whose contents are not modelled.
        """
        _check(address, size_bytes, word)
        if size_bytes == 0 or (address | size_bytes) & self._mask or word >> 32:
            message = f"write {word:#x} at {address:#x}+{size_bytes:#x}: 32 bits, whole granules"
            raise DriverMisuse(message)
        pieces = self._pieces(address, size_bytes, _WRITABLE)
        if pieces is None:
            return _CLEAR_INVALID
        for mapping, start, end in pieces:
            mapping.pending = True
            self._pending.append(Store(mapping, start, end, word))
        return None

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """Start copying bytes; they are read and written at the next fence or read.

        INVALID_VALUE, and nothing is copied, unless all of the target is mapped RW and all of the
        source so that it can be read (D-18).  Raises ``DriverMisuse`` for no bytes at all, and for
        a source that shares a byte with the target, also by an alias (D-12).
        """
        _check(target, source, size_bytes)
        if size_bytes == 0:
            message = f"copy of nothing from {source:#x} to {target:#x}: give 1 byte or more"
            raise DriverMisuse(message)
        to = self._pieces(target, size_bytes, _WRITABLE)
        whence = self._pieces(source, size_bytes, _READABLE)
        if to is None or whence is None:
            return _COPY_INVALID
        if overlap(to, whence):
            message = f"copy from {source:#x} to {target:#x} overlaps itself: what it does is open"
            raise DriverMisuse(message)
        for copy in copies(to, whence):
            copy.target.pending = copy.source.pending = True
            self._pending.append(copy)
        return None

    def _pieces(self, address: int, size: int, rights: tuple[Rights, ...]) -> list[Piece] | None:
        """A range, mapping by mapping; None unless all of it is mapped with one of the rights."""
        pieces: list[Piece] = []
        end = address + size
        while address < end:
            mapping = self._at(address)
            if mapping is None or mapping.rights not in rights:
                return None
            until = min(end, mapping.end)
            pieces.append(Piece(mapping, address - mapping.address, until - mapping.address))
            address = until
        return pieces

    def read(self, address: int) -> int | Fault:
        """The word at an address, after all that was started; INVALID_VALUE without rights.

        Contents belong to the handle: every alias reads the same (D-12).  Raises ``DriverMisuse``
        for an address that is no multiple of 4, where no word begins.
        """
        if type(address) is not int or address % WORD_BYTES or not 0 <= address < _TOO_LARGE:
            _check(address)
            message = f"read at {address:#x}: words begin at multiples of {WORD_BYTES}"
            raise DriverMisuse(message)
        if self._pending:
            self._finish()
        mapping = self._at(address)
        if mapping is None or mapping.rights is Rights.NONE:
            return _READ_INVALID
        return mapping.physical.contents.word(address - mapping.address)

    def fence(self) -> Fault | None:
        """Finish every store and copy, in the order they were started."""
        if self._pending:
            self._finish()
        return None

    def _finish(self) -> None:
        for work in self._pending:
            work.land()
        self._pending.clear()

    # --- the truth, for checkers ---------------------------------------------------------------

    def physical_bytes(self) -> int:
        """Bytes of physical memory that exist, each handle's once."""
        return self._physical_bytes

    def live_handles(self) -> dict[int, LiveHandle]:
        """Handles whose memory exists, by value; a released one stays while it is mapped."""
        return {
            value: LiveHandle(physical.size, physical.mappings, physical.referenced)
            for value, physical in self._handles.items()
        }

    def live_ranges(self) -> dict[int, int]:
        """Reserved ranges: bytes by address."""
        return dict(self._ranges)

    def live_mappings(self) -> dict[int, LiveMapping]:
        """Mappings by address, in address order."""
        return {
            start: LiveMapping(mapping.physical.value, mapping.end - start, mapping.rights)
            for start, mapping in ((start, self._mappings[start]) for start in self._starts)
        }
