"""What the bytes must be (L-9): patterns written through mappings, and read back.

A window reads what was last written to it, and zero if nothing was since it was committed.  After
a release that failed, each word of a window that stayed committed may be what it was, or zero.
"""

from collections.abc import Iterator

from kvvmm_model.driver_model import Memory
from kvvmm_model.machine import Operation, Release
from kvvmm_model.state import State
from kvvmm_model.vocabulary import Failed, Fault, Outcome, Rights, Standing

Window = tuple[int, int]

ANYTHING: tuple[int, ...] = ()
"""Allowed of a window that nobody wrote to, where pooled memory is not cleared."""


class Contents:
    """The expected word of every committed window, kept beside the state."""

    def __init__(self, memory: Memory, granularity_bytes: int) -> None:
        self._memory = memory
        self._granule = granularity_bytes
        self._allowed: dict[Window, tuple[int, ...]] = {}
        self._words = 0

    def follow(self, state: State, operation: Operation, outcome: Outcome) -> None:
        """Take up new windows as zero, forget those that are gone."""
        there = dict(_committed(state))
        fresh = (0,) if state.settings.clear_pooled else ANYTHING
        allowed = {window: self._allowed.get(window, fresh) for window in there}
        if isinstance(operation, Release) and isinstance(outcome, Failed):
            for window, words in allowed.items():
                if window[0] == operation.reservation and words:
                    allowed[window] = tuple({*words, 0})
        self._allowed = allowed

    def wrong(self, state: State) -> Iterator[str]:
        """Read every committed window at both ends."""
        for window, address in _committed(state):
            allowed = self._allowed[window]
            for place in (address, address + self._granule - 4):
                word = self._memory.read(place)
                if isinstance(word, Fault):
                    yield f"window {window} cannot be read: {word}"
                elif allowed and word not in allowed:
                    yield f"window {window} reads {word:#x}, not {' or '.join(map(hex, allowed))}"

    def write(self, state: State) -> Iterator[str]:
        """Start writing a new word to one committed window, and to one where nothing may be."""
        self._words += 1
        committed = list(_committed(state))
        if committed:
            window, address = committed[self._words % len(committed)]
            self._allowed[window] = (self._words,)
            fault = self._memory.write(address, self._granule, self._words)
            if fault is not None:
                yield f"window {window} cannot be written: {fault}"
        for address in _one_reserved(state, self._words):
            if self._memory.write(address, self._granule, 0xBAD) is None:
                yield f"the reserved window at {address:#x} took a write"


def _committed(state: State) -> Iterator[tuple[Window, int]]:
    for found in state.reservations.values():
        if found.standing is not Standing.OPEN:
            continue
        for mapping in found.mappings:
            if mapping.rights is Rights.RW and not mapping.quarantined:
                for window in range(mapping.window, mapping.end):
                    address = found.address + window * state.settings.granularity_bytes
                    yield (found.serial, window), address


def _one_reserved(state: State, number: int) -> Iterator[int]:
    """The last window of an open reservation, now and then, where no mapping covers it."""
    reservations = [r for r in state.reservations.values() if r.standing is Standing.OPEN]
    if number % 8 == 0 and reservations:
        found = reservations[number % len(reservations)]
        if not found.mappings or found.mappings[-1].end < found.size:
            yield found.address + (found.size - 1) * state.settings.granularity_bytes
