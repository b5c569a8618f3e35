"""A prefix as its owner holds it."""

from types import TracebackType
from typing import Self, cast
from weakref import finalize

from kvvmm_cuda.core import Core
from kvvmm_cuda.edge import leave, prefix_dropped
from kvvmm_cuda.ops.retire import retire
from kvvmm_cuda.ops.seal import seal


class Prefix:
    """Memory at the begin of a reservation that others are to read.

    Made by ``Reservation.publish``.  Seal it, attach it as often as you like, and retire it when no
    more is to be attached: the memory lives on where it is mapped.  Use it in a ``with`` statement,
    or call ``retire``.
    """

    def __init__(self, core: Core, serial: int) -> None:
        """Of a manager, by its serial there."""
        record = core.records.prefixes[serial]
        self._core = core
        self._serial = serial
        self._record = record
        self._unit = core.records.settings.granularity_bytes
        self._finalizer = finalize(self, prefix_dropped, core.records, serial)
        self._finalizer.atexit = False  # at exit the manager speaks for all of them

    @property
    def serial(self) -> int:
        """Its number in observations, never used twice."""
        return self._serial

    @property
    def size_bytes(self) -> int:
        """What it covers: whole windows, and whole handles."""
        return self._record.size * self._unit

    @property
    def sealed(self) -> bool:
        """Whether it can be attached."""
        return self._record.sealed

    @property
    def live(self) -> bool:
        """Whether it is neither retired nor cancelled."""
        return not self._record.gone

    def seal(self) -> int:
        """Make its memory readable for all and writable for nobody, its owner included.

        Waits until the device is done.  Nothing that uses this memory, not even a reader, may be
        launched before it returns: a change of rights under a running kernel can lose the device.
        The bytes whose rights were changed; 0 where it was sealed already.

        Raises:
            StaleError: it was retired, or cancelled when its memory was released.
            DriverError: a call failed.  It is not sealed, and the memory is writable as before;
                where that could not be restored, the residue names windows of unknown rights.
                It may be called again.
            DeviceLostError: the device is lost.
        """
        return cast("int", self._core.run("seal", seal, self._serial)) * self._unit

    def retire(self) -> int:
        """Give up its hold on the memory; the bytes that this gave back to the driver.

        Unsealed, it is cancelled: its owner's memory is as before.

        Raises:
            StaleError: it was retired or cancelled already.
            DriverError: a release failed.  It is retired all the same.
            DeviceLostError: the device is lost.
        """
        try:
            return cast("int", self._core.run("retire", retire, self._serial)) * self._unit
        finally:
            if not self.live:
                _ = self._finalizer.detach()

    def __enter__(self) -> Self:
        """The prefix itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Retire it, unless it is over already."""
        if self.live and not self._core.closed:
            leave(self.retire, error)

    def __repr__(self) -> str:
        """Its serial and what it covers."""
        return f"Prefix({self._serial}, {self.size_bytes} bytes{', sealed' * self.sealed})"
