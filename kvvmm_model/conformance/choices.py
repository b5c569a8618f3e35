"""Where the choices of a random sequence come from: a seed, or bytes that somebody else chose.

What is made up does not care.  It asks for choices by their meaning, so that a zero byte can stand
for the simplest one each time: the first of several, the usual case, nothing that is rare.
"""

from collections.abc import Sequence as Listed
from enum import IntEnum
from random import Random
from typing import Protocol, TypeVar

Option = TypeVar("Option")


class Part(IntEnum):
    """What the choices that follow are about; a passage is all that its step is about."""

    WORLD = 0
    NAME = 1
    PLACE = 2
    BEFORE = 3
    AMOUNT = 4
    FAULTS = 5
    AFTERMATH = 6
    PASSAGE = 7


WIDTHS: dict[Part, int] = {
    Part.WORLD: 24,
    Part.NAME: 1,
    Part.PLACE: 9,
    Part.BEFORE: 2,
    Part.AMOUNT: 8,
    Part.FAULTS: 14,
    Part.AFTERMATH: 10,
}
"""Bytes of each part: enough for what is usual; what is not there reads as zero."""


class Choices(Protocol):
    """One choice after the other."""

    def turn(self, part: Part, /) -> None:
        """Say what the next choices are about."""
        ...

    def random(self) -> float:
        """A number from 0 to 1; the simplest is 1."""
        ...

    def seldom(self, rate: float, /) -> bool:
        """Whether something happens that does so at this rate; the simplest is that it does not."""
        ...

    def usually(self, rate: float, /) -> bool:
        """The same, and the simplest is that it happens."""
        ...

    def choice(self, options: Listed[Option], /) -> Option:
        """One of them; the simplest is the first."""
        ...

    def randrange(self, stop: int, /) -> int:
        """A number below ``stop``; the simplest is 0."""
        ...

    def randint(self, first: int, last: int, /) -> int:
        """A number, both ends included; the simplest is the first."""
        ...


class FromSeed(Random):
    """Choices that the seed alone decides; their order matters, their parts do not."""

    def turn(self, part: Part, /) -> None:
        """All parts come from the same stream."""

    def seldom(self, rate: float, /) -> bool:
        """Whether it happens this time."""
        return self.random() < rate

    usually = seldom


WORLD_BYTES = WIDTHS[Part.WORLD]
STEP_BYTES = sum(WIDTHS.values()) - WORLD_BYTES
"""Every step has its bytes to itself, so that no change of one moves those of another."""


def _places() -> dict[Part, tuple[int, int]]:
    """Where each part begins and ends: the world at the front, the others from a step's start."""
    places, at = {Part.WORLD: (0, WORLD_BYTES)}, 0
    for part in list(WIDTHS)[1:]:
        places[part] = (at, at + WIDTHS[part])
        at += WIDTHS[part]
    places[Part.PASSAGE] = (WIDTHS[Part.NAME], STEP_BYTES)
    return places


_PLACES = _places()


class FromBytes:
    """Choices that are read from bytes: any bytes will do, and missing ones are zero.

    Within a part they are read one after the other.  Every part has its own place, so that a choice
    too many in one part is zero, and takes nothing from the next.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._start = 0
        self._at = 0
        self._end = 0

    def step(self, number: int) -> int:
        """Go to a step, from 0; the answer is its first byte, which is 0 where there is none."""
        self._start = WORLD_BYTES + number * STEP_BYTES
        self.turn(Part.NAME)
        return self._byte()

    def turn(self, part: Part, /) -> None:
        """Go to the part's place, in the world or in the step."""
        begin, end = _PLACES[part]
        start = 0 if part is Part.WORLD else self._start
        self._at = start + begin
        self._end = min(start + end, len(self._data))

    def _byte(self) -> int:
        at = self._at
        if at >= self._end:
            return 0
        self._at = at + 1
        return self._data[at]

    def random(self) -> float:
        """One byte; above 0, and 1 for a zero."""
        return 1 - self._byte() / 256

    def seldom(self, rate: float, /) -> bool:
        """High bytes say yes."""
        return self._byte() >= 256 * (1 - rate)

    def usually(self, rate: float, /) -> bool:
        """Low bytes say yes."""
        return self._byte() < 256 * rate

    def choice(self, options: Listed[Option], /) -> Option:
        """One byte, or none where there is nothing to choose."""
        return options[self.randrange(len(options))]

    def randrange(self, stop: int, /) -> int:
        """As many bytes as it takes: none, one or two."""
        if stop == 1:
            return 0
        if stop <= 256:
            return self._byte() * stop >> 8
        high = self._byte()
        return (high << 8 | self._byte()) * stop >> 16

    def randint(self, first: int, last: int, /) -> int:
        """As ``randrange``, from the first number on."""
        return first + self.randrange(last + 1 - first)
