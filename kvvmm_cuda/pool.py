"""Unmapped handles kept for reuse: exact size, last in first out, given up oldest first."""

from collections import deque
from collections.abc import Iterator

from kvvmm_cuda.handle import Handle


class Pool:
    """Not locked by itself: every use holds the records' lock.

    ``size`` counts what is in it, ``set_aside`` what a release has chosen to put in; both granules.
    """

    def __init__(self) -> None:
        """Nothing in it."""
        self.size = 0
        self.set_aside = 0
        self._last_place = 0
        self._by_size: dict[int, deque[Handle]] = {}

    def take(self, size: int) -> Handle | None:
        """The newest handle of exactly that size leaves the pool."""
        line = self._by_size.get(size)
        if not line:
            return None
        handle = line.pop()
        self._left(handle)
        return handle

    def take_oldest(self, amount: int) -> list[Handle]:
        """As few of the oldest as amount to that many granules leave the pool, or all."""
        taken: list[Handle] = []
        while amount > 0 and self.size:
            # Few sizes exist (powers of two up to a bound), so this looks at a few fronts.
            line = min((line for line in self._by_size.values() if line), key=_front_place)
            handle = line.popleft()
            self._left(handle)
            taken.append(handle)
            amount -= handle.size
        return taken

    def put(self, handle: Handle) -> None:
        """A handle enters, as the newest."""
        self._last_place += 1
        handle.place = self._last_place
        self.put_back(handle)

    def put_back(self, handle: Handle) -> None:
        """A handle that was taken is in its old place again."""
        line = self._by_size.setdefault(handle.size, deque())
        at = len(line)
        while at and line[at - 1].place > handle.place:
            at -= 1
        line.insert(at, handle)
        handle.pooled = True
        self.size += handle.size

    def __iter__(self) -> Iterator[Handle]:
        """Oldest first."""
        everything = (handle for line in self._by_size.values() for handle in line)
        return iter(sorted(everything, key=lambda handle: handle.place))

    def _left(self, handle: Handle) -> None:
        handle.pooled = False
        self.size -= handle.size


def _front_place(line: deque[Handle]) -> int:
    return line[0].place
