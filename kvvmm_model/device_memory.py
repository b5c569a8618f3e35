"""The simulated device's memory: what a handle is, where it is mapped, what is under way in it.

A store or a copy that was started lands later.  Until then the mappings that it goes through are
*pending*: taking them away, or changing their rights, would be undefined (D-22, D-34).
"""

from collections.abc import Iterator
from typing import NamedTuple

from kvvmm_model.granules import Granules
from kvvmm_model.vocabulary import Rights

__all__ = ["Copy", "Mapped", "Physical", "Piece", "Store", "copies", "overlap"]


class Physical:
    """Memory behind a handle; sizes in bytes."""

    __slots__ = ("contents", "mappings", "referenced", "size", "value")

    def __init__(self, value: int, size: int, granularity: int) -> None:
        self.value = value
        self.size = size
        self.mappings = 0
        self.referenced = True
        self.contents = Granules(size // granularity, granularity)


class Mapped:
    """A whole handle at an address; ``pending`` while a store or a copy goes through it."""

    __slots__ = ("address", "end", "pending", "physical", "rights")

    def __init__(self, address: int, end: int, physical: Physical) -> None:
        self.address = address
        self.end = end
        self.physical = physical
        self.rights = Rights.NONE
        self.pending = False


class Store(NamedTuple):
    """A word is being written over [start, end) of a handle, whole granules."""

    target: Mapped
    start: int
    end: int
    word: int

    def land(self) -> None:
        """It is finished."""
        self.target.pending = False
        self.target.physical.contents.fill(self.start, self.end, self.word)


class Copy(NamedTuple):
    """Bytes from ``start`` of the source's handle are being written from ``at`` of the target's."""

    target: Mapped
    at: int
    source: Mapped
    start: int
    size: int

    def land(self) -> None:
        """It is finished; what the source holds now is what was copied."""
        self.target.pending = self.source.pending = False
        source = self.source.physical.contents
        self.target.physical.contents.copy(self.at, source, self.start, self.size)


class Piece(NamedTuple):
    """What of an address range lies in one mapping: [start, end) of its handle."""

    mapping: Mapped
    start: int
    end: int


def overlap(targets: list[Piece], sources: list[Piece]) -> bool:
    """Whether two ranges have a byte of memory in common, by whatever addresses (D-12)."""
    return any(
        target.mapping.physical is source.mapping.physical
        and target.start < source.end
        and source.start < target.end
        for target in targets
        for source in sources
    )


def copies(targets: list[Piece], sources: list[Piece]) -> Iterator[Copy]:
    """What has to be copied between two ranges of one size, cut where a mapping ends in either."""
    coming = iter(sources)
    source, start, stop = next(coming)
    for target, begin, end in targets:
        at = begin
        while at < end:
            if start == stop:
                source, start, stop = next(coming)
            size = min(stop - start, end - at)
            yield Copy(target, at, source, start, size)
            at, start = at + size, start + size
