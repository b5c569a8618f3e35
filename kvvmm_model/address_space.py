"""Which addresses are free: those never given, and those given back."""

__all__ = ["AddressSpace"]


class AddressSpace:
    """Hands out ranges in [start, end), and hands them out again as early as it can (D-2, D-3)."""

    def __init__(self, start: int, end: int) -> None:
        self._next = start
        self._end = end
        self._free: list[tuple[int, int]] = []  # (address, end), last freed last

    def take(self, size_bytes: int, alignment_bytes: int) -> int | None:
        """The address of a range that is free until it is given back; None where there is none."""
        address = self._found(size_bytes, alignment_bytes)
        if address is None and self._join():
            address = self._found(size_bytes, alignment_bytes)
        return address

    def give_back(self, address: int, size_bytes: int) -> None:
        """A range is free again."""
        self._free.append((address, address + size_bytes))

    def _found(self, size: int, step: int) -> int | None:
        address = self._recycled(size, step)
        return self._fresh(size, step) if address is None else address

    def _recycled(self, size: int, step: int) -> int | None:
        """A place in the range freed last that has room, so that stale addresses are met (D-3)."""
        free = self._free
        for i in range(len(free) - 1, -1, -1):
            start, end = free[i]
            address = -(-start // step) * step
            if address + size <= end:
                rest = ((address + size, end), (start, address))
                free[i : i + 1] = [(a, b) for a, b in rest if a < b]
                return address
        return None

    def _fresh(self, size: int, step: int) -> int | None:
        """The next addresses never used: neighbours touch, so that a spill can hit one (D-11)."""
        start = self._next
        address = -(-start // step) * step
        if address + size > self._end:
            return None
        self._next = address + size
        if start < address:
            self._free.insert(0, (start, address))
        return address

    def _join(self) -> bool:
        """Join free neighbours, and give the topmost back to what was never used."""
        joined: list[tuple[int, int]] = []
        for start, end in sorted(self._free):
            if joined and joined[-1][1] == start:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((start, end))
        if joined and joined[-1][1] == self._next:
            self._next = joined.pop()[0]
        changed = len(joined) < len(self._free)
        if changed:
            self._free = joined
        return changed
