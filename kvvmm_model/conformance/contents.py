"""What the bytes must be (L-9): patterns written through mappings, and read back through all.

Memory reads what was last written to it through any of its mappings, and zero if nothing was since
it was handed out.  After a release that failed, each word of memory that stays committed may be
what it was, or zero.  What a fork copied reads as the parent did, and the rest as zero.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kvvmm_model.codes import Step
from kvvmm_model.driver_model import Memory
from kvvmm_model.machine import Operation, Release
from kvvmm_model.recording import Call
from kvvmm_model.state import Mapping, State
from kvvmm_model.vocabulary import Done, Failed, Fault, Outcome, Standing

Place = tuple[int, int]
"""A granule of memory: the handle's serial, and which of its granules."""

Words = tuple[int, ...]
"""What is allowed; empty for anything, as where pooled memory is not cleared."""

Segments = tuple[tuple[int, Words], ...]
"""Of a granule: where each stretch ends, in bytes, and the words allowed in it."""

WORD = 4
ZERO: Words = (0,)
ANYTHING: Words = ()


class Seen(NamedTuple):
    """A window through which a granule can be seen."""

    reservation: int
    window: int
    address: int
    place: Place
    mapping: Mapping


class Contents:
    """What every granule of memory that is not pooled must hold, kept beside the state."""

    def __init__(self, memory: Memory, granularity_bytes: int) -> None:
        self._memory = memory
        self._granule = granularity_bytes
        self._expected: dict[Place, Segments] = {}
        self._pooled: set[int] = set()
        self._handles: object = None
        self._pool: object = None
        self._state: State | None = None
        self._windows: list[Seen] = []
        self._words = 0

    def follow(
        self, state: State, operation: Operation, outcome: Outcome, calls: Sequence[Call]
    ) -> None:
        """Take up new memory, forget what is pooled or gone, follow what was copied."""
        if state.handles is not self._handles or state.pool is not self._pool:
            self._take_up(state)
        if state is not self._state:
            self._state, self._windows = state, list(_windows(state))
        if isinstance(operation, Release) and isinstance(outcome, Failed):
            self._may_be_cleared(operation.reservation)
        if isinstance(outcome, Done):
            self._copied(calls)

    def _take_up(self, state: State) -> None:
        pool = {entry.handle for entry in state.pool}
        expected: dict[Place, Segments] = {}
        for handle in state.handles.values():
            if handle.serial in pool:
                continue
            fresh = ZERO
            if handle.serial in self._pooled and not state.settings.clear_pooled:
                fresh = ANYTHING
            for granule in range(handle.size):
                place = handle.serial, granule
                expected[place] = self._expected.get(place) or ((self._granule, fresh),)
        self._expected = expected
        self._pooled = pool
        self._handles, self._pool = state.handles, state.pool

    def _may_be_cleared(self, reservation: object) -> None:
        for seen in self._windows:
            if seen.reservation == reservation and seen.mapping.writable:
                self._expected[seen.place] = tuple(
                    (end, tuple({*words, 0}) if words else ANYTHING)
                    for end, words in self._expected[seen.place]
                )

    def _copied(self, calls: Sequence[Call]) -> None:
        """Copies begin and end at the same place in their granules on both sides."""
        copies = [call.arguments for call in calls if call.step is Step.COPY]
        if not copies:
            return
        places = {seen.address: seen.place for seen in self._windows}
        for target, source, size in copies:
            for done in range(0, size, self._granule):
                end = min(size - done, self._granule)
                theirs = self._expected[places[source + done]]
                ours = self._expected[places[target + done]]
                self._expected[places[target + done]] = _pasted(ours, theirs, end)

    # --- reading ------------------------------------------------------------------------------

    def wrong(self) -> Iterator[str]:
        """Read every window that can be read, at both ends of each stretch and across each cut."""
        read, expected = self._memory.read, self._expected
        for seen in self._windows:
            for offset, allowed in _readable(expected[seen.place]):
                word = read(seen.address + offset)
                if word in allowed or (not allowed and type(word) is int):
                    continue
                where = f"window {(seen.reservation, seen.window)} at byte {offset}"
                if isinstance(word, Fault):
                    yield f"{where} cannot be read: {word}"
                else:
                    yield f"{where} reads {word:#x}, not {' or '.join(map(hex, allowed))}"

    # --- writing ------------------------------------------------------------------------------

    def write(self) -> Iterator[str]:
        """Start writing a new word to one writable window, and to one where nothing may be."""
        self._words += 1
        writable = [seen for seen in self._windows if seen.mapping.writable]
        if writable:
            seen = writable[self._words % len(writable)]
            word = _pattern(self._words)
            self._expected[seen.place] = ((self._granule, (word,)),)
            fault = self._memory.write(seen.address, self._granule, word)
            if fault is not None:
                yield f"window {(seen.reservation, seen.window)} cannot be written: {fault}"
        assert self._state is not None
        for what, address in _forbidden(self._state, self._windows, self._words):
            if self._memory.write(address, self._granule, 0xBAD) is None:
                yield f"the {what} window at {address:#x} took a write"


def _windows(state: State) -> Iterator[Seen]:
    """Every window that can be read."""
    for found in state.reservations.values():
        if found.standing is not Standing.OPEN:
            continue
        for mapping in found.mappings:
            if mapping.quarantined or not (mapping.writable or mapping.sealed):
                continue
            for granule in range(mapping.size):
                window = mapping.window + granule
                address = found.address + window * state.settings.granularity_bytes
                yield Seen(found.serial, window, address, (mapping.handle, granule), mapping)


def _pattern(number: int) -> int:
    """A word for each number, whose four bytes differ nearly always: a byte off its place shows."""
    return number * 0x9E37_79B1 % (1 << 32)


def _readable(segments: Segments) -> Iterator[tuple[int, Words]]:
    """Where to read in a granule, and what is allowed there."""
    if len(segments) == 1:  # as nearly always
        end, allowed = segments[0]
        yield 0, allowed
        yield end - WORD, allowed
        return
    first = begin = 0
    before = ANYTHING
    for end, allowed in segments:
        mixed = begin // WORD * WORD
        if begin > mixed >= first and mixed + WORD <= end:
            yield mixed, _across(before, allowed, begin - mixed)
        for offset in _ends(begin, end):
            yield offset, allowed
        first, begin, before = begin, end, allowed


def _across(before: Words, after: Words, cut: int) -> Words:
    """The words whose first ``cut`` bytes are of one stretch, and the rest of the next."""
    low = (1 << 8 * cut) - 1
    return tuple({one & low | other & ~low for one in before for other in after})


def _ends(begin: int, end: int) -> Iterable[int]:
    """The first and the last whole word of a stretch."""
    first, last = -(-begin // WORD) * WORD, (end - WORD) // WORD * WORD
    return () if last < first else (first,) if last == first else (first, last)


def _pasted(ours: Segments, theirs: Segments, end: int) -> Segments:
    """Their first ``end`` bytes, then ours."""
    pasted = [(min(last, end), words) for last, words in theirs]
    cut = next(number for number, (last, _) in enumerate(pasted) if last == end)
    return (*pasted[: cut + 1], *((last, words) for last, words in ours if last > end))


def _forbidden(state: State, windows: Sequence[Seen], number: int) -> Iterator[tuple[str, int]]:
    """Now and then, the last window of a reservation where nothing lies, and a sealed window."""
    if number % 8 == 0:
        reservations = [r for r in state.reservations.values() if r.standing is Standing.OPEN]
        if reservations:
            found = reservations[number % len(reservations)]
            if not found.mappings or found.mappings[-1].end < found.size:
                unit = state.settings.granularity_bytes
                yield "reserved", found.address + (found.size - 1) * unit
    if number % 4 == 0:
        sealed = [seen.address for seen in windows if seen.mapping.sealed]
        if sealed:
            yield "sealed", sealed[number % len(sealed)]
