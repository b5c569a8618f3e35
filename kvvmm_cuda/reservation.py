"""A reservation as its user holds it."""

from types import TracebackType
from typing import NamedTuple, Self, cast
from weakref import finalize

from kvvmm_cuda.core import Core
from kvvmm_cuda.edge import dropped, is_open, leave
from kvvmm_cuda.groups import attach_all, fork_all
from kvvmm_cuda.ops.close import close
from kvvmm_cuda.ops.commit import commit
from kvvmm_cuda.ops.publish import publish
from kvvmm_cuda.ops.reclaim import reclaim
from kvvmm_cuda.ops.release import release
from kvvmm_cuda.prefix import Prefix
from kvvmm_model.vocabulary import Released


class ReleasedBytes(NamedTuple):
    """Bytes unmapped, and the offsets of windows in the range that a straddling handle keeps."""

    size_bytes: int
    kept_offsets_bytes: tuple[int, ...]


class Reservation:
    """An address range; memory comes and goes in it, and the address stays.

    Made by ``VirtualMemory.reserve``, or by a fork.  Use it in a ``with`` statement, or call
    ``close``.
    """

    def __init__(self, core: Core, serial: int) -> None:
        """Of a manager, by its serial there."""
        record = core.records.reservations[serial]
        self._core = core
        self._unit = core.records.settings.granularity_bytes
        self._address = record.address
        self._size_bytes = record.size * self._unit
        self._serial = serial
        self._finalizer = finalize(self, dropped, core.records, serial)
        self._finalizer.atexit = False  # at exit the manager speaks for all of them

    @property
    def address(self) -> int:
        """Where it begins; the same from reserve to close."""
        return self._address

    @property
    def size_bytes(self) -> int:
        """What was reserved, a multiple of the granularity."""
        return self._size_bytes

    @property
    def serial(self) -> int:
        """Its number in observations, never used twice."""
        return self._serial

    def commit(self, offset_bytes: int, size_bytes: int) -> int:
        """Back every window that the range touches; the bytes newly backed.

        Windows that are committed already are left alone.  All or nothing: after an error the
        windows are as before, or quarantined and named in the residue.

        Raises:
            RangeError: not within the reservation, or empty.
            QuarantinedError: windows in the range are quarantined.
            SharedError: windows in the range are sealed, and not written again.
            RightsUnknownError: a seal failed there and was not undone.
            BudgetError: the limit leaves no room.
            DriverOutOfMemoryError: the driver has no memory left.
            DriverError: another driver call failed.
            StaleError: the reservation is closed.
            DeviceLostError: the device is lost.
        """
        done = self._core.run("commit", commit, self._serial, offset_bytes, size_bytes)
        return cast("int", done) * self._unit

    def release(self, offset_bytes: int, size_bytes: int) -> ReleasedBytes:
        """Take the memory from the mappings wholly inside the range, once the device is done.

        Raises:
            NotCommittedError: no whole mapping lies inside.
            RangeError, QuarantinedError, DriverError, StaleError, DeviceLostError: as for commit.
        """
        done = self._core.run("release", release, self._serial, offset_bytes, size_bytes)
        size, kept = cast("Released", done)
        return ReleasedBytes(size * self._unit, tuple(window * self._unit for window in kept))

    def publish(self, size_bytes: int) -> Prefix:
        """Make a prefix of the memory in its first bytes, rounded down to whole windows.

        Nobody can attach it before it is sealed.  No driver call is made.

        Raises:
            StraddlingError: a handle reaches over the end; its numbers say where handles end.
            NotCommittedError, RepeatedError, RightsUnknownError: the memory is not such that it
                can be shared.
            RangeError, QuarantinedError, StaleError, DeviceLostError: as for commit.
        """
        done = self._core.run(
            "publish", lambda records, _: publish(records, self._serial, size_bytes)
        )
        return Prefix(self._core, cast("int", done))

    def attach(self, prefix: Prefix, offset_bytes: int = 0) -> int:
        """Map a sealed prefix, to be read; the bytes mapped.  Nothing is charged for it.

        All or nothing, and several at once: see ``VirtualMemory.attach``.
        """
        return attach_all(self._core, [(self, prefix, offset_bytes)]) * self._unit

    def fork(self, length_bytes: int) -> "Reservation":
        """A new reservation that reads as this one does up to a length.

        See ``VirtualMemory.fork``, which makes several at once.
        """
        (serial,) = fork_all(self._core, [(self, length_bytes)])
        return Reservation(self._core, serial)

    def reclaim(self) -> int:
        """Try to end the quarantine of its windows; also after close.

        Raises:
            DriverError, DeviceLostError: as for ``VirtualMemory.reclaim``.
        """
        return cast("int", self._core.run("reclaim", reclaim, self._serial))

    def close(self) -> tuple[int, ...]:
        """Give everything back, the address too; the offsets of windows that stay quarantined.

        Raises:
            StaleError: it is closed already.
            DriverError: a call failed.  It is closed all the same; ``reclaim`` may finish.
            DeviceLostError: the device is lost.
        """
        try:
            windows = cast("tuple[int, ...]", self._core.run("close", close, self._serial))
        finally:
            if not self._is_open():
                _ = self._finalizer.detach()
        return tuple(window * self._unit for window in windows)

    def __enter__(self) -> Self:
        """The reservation itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it, unless it is closed already."""
        if self._is_open() and not self._core.closed:
            leave(self.close, error)

    def _is_open(self) -> bool:
        found = self._core.records.reservations.get(self._serial)
        return found is not None and is_open(found.standing)

    def __repr__(self) -> str:
        """Its serial and where it lies."""
        return f"Reservation({self._serial}, {self._address:#x}, {self._size_bytes} bytes)"
