"""What a granule of simulated memory holds, byte for byte, at the price of one word.

Nearly all granules were filled with one 32-bit word; those that a copy ended in are a few segments
of such words.  A word repeats from the granule's begin on, little-endian.
"""

from collections.abc import Iterable

Segments = tuple[tuple[int, int], ...]
"""End in bytes and word of each stretch, in order."""

Contents = int | Segments
"""One word all over, or segments."""

WORD_BYTES = 4


def segments(contents: Contents, size_bytes: int) -> Segments:
    """The contents of a granule of that size, as segments."""
    return ((size_bytes, contents),) if isinstance(contents, int) else contents


def cut(contents: Contents, size_bytes: int, first: int, end: int) -> Segments:
    """Those of the bytes ``[first, end)``, whose ends count from ``first``."""
    found: list[tuple[int, int]] = []
    for last, word in segments(contents, size_bytes):
        if last > first:
            found.append((min(last, end) - first, word))
        if last >= end:
            break
    return tuple(found)


def paste(contents: Contents, size_bytes: int, first: int, piece: Segments) -> Contents:
    """The contents after a piece was written from byte ``first`` on."""
    end = first + piece[-1][0]
    before = cut(contents, size_bytes, 0, first) if first else ()
    after = cut(contents, size_bytes, end, size_bytes) if end < size_bytes else ()
    return _joined(
        (
            *before,
            *((first + last, word) for last, word in piece),
            *((end + last, word) for last, word in after),
        )
    )


def _joined(parts: Iterable[tuple[int, int]]) -> Contents:
    """Neighbours of the same word as one."""
    joined: list[tuple[int, int]] = []
    for end, word in parts:
        if joined and joined[-1][1] == word:
            joined[-1] = end, word
        else:
            joined.append((end, word))
    return joined[0][1] if len(joined) == 1 else tuple(joined)


def word_at(contents: Contents, size_bytes: int, offset: int) -> int:
    """The four bytes at a multiple of four; across a cut they are of two words."""
    if isinstance(contents, int):
        return contents
    mixed = bytearray()
    for end, word in cut(contents, size_bytes, offset, offset + WORD_BYTES):
        mixed += word.to_bytes(WORD_BYTES, "little")[len(mixed) : end]
    return int.from_bytes(mixed, "little")


def _turned(word: int, by: int) -> int:
    """The word in which a word's byte b is byte b + ``by``: how it looks at another phase."""
    return (word << 8 * by | word >> 8 * (WORD_BYTES - by)) & 0xFFFF_FFFF


class Granules:
    """The contents of a handle; zero at first.  Offsets count bytes from its begin."""

    __slots__ = ("_granularity", "_granules")

    def __init__(self, count: int, granularity_bytes: int) -> None:
        self._granularity = granularity_bytes
        self._granules: list[Contents] = [0] * count

    def fill(self, start: int, end: int, word: int) -> None:
        """Whole granules hold one word."""
        first, last = start // self._granularity, end // self._granularity
        self._granules[first:last] = [word] * (last - first)

    def copy(self, at: int, source: "Granules", start: int, size: int) -> None:
        """Bytes ``[start, start + size)`` of another handle are here from ``at`` on."""
        unit, done, turn = self._granularity, 0, (at - start) % WORD_BYTES
        while done < size:
            here, byte = divmod(at + done, unit)
            there, first = divmod(start + done, unit)
            length = min(size - done, unit - max(byte, first))
            piece = cut(source._granules[there], unit, first, first + length)
            if turn:
                piece = tuple((end, _turned(word, turn)) for end, word in piece)
            self._granules[here] = paste(self._granules[here], unit, byte, piece)
            done += length

    def word(self, offset: int) -> int:
        """The four bytes at a multiple of four."""
        contents = self._granules[offset // self._granularity]
        if isinstance(contents, int):  # as nearly always
            return contents
        return word_at(contents, self._granularity, offset % self._granularity)
