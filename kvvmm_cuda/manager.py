"""The manager, as its user holds it.

Operations are carried out by ``ops/``, whose outcomes are values; here they become results and
exceptions.  Safe to use from several threads.
"""

from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self, cast
from weakref import finalize

from kvvmm_cuda.core import Core
from kvvmm_cuda.drivers.selection import open_driver
from kvvmm_cuda.edge import is_open, leave, left_open, limit_of
from kvvmm_cuda.errors import KvvmmError
from kvvmm_cuda.groups import attach_all, fork_all
from kvvmm_cuda.ops.close import close
from kvvmm_cuda.ops.reclaim import reclaim
from kvvmm_cuda.ops.reserve import reserve
from kvvmm_cuda.ops.retire import retire
from kvvmm_cuda.ops.set_limit import set_limit
from kvvmm_cuda.ops.trim import trim
from kvvmm_cuda.prefix import Prefix
from kvvmm_cuda.records import Records, observe
from kvvmm_cuda.reservation import Reservation
from kvvmm_model.vocabulary import (
    MAX_BYTES,
    Driver,
    Ledger,
    Observation,
    Policy,
    Settings,
)


class VirtualMemory:
    """Manages address ranges and the physical memory behind them, on one device.

    Use ``open`` and a ``with`` statement, or call ``close``.
    """

    def __init__(self, driver: Driver, settings: Settings, limit_bytes: int) -> None:
        """Over a driver that the caller owns; ``open`` is the usual way in."""
        self._core = Core(Records(settings, limit_bytes // settings.granularity_bytes), driver)
        self._close_driver: Callable[[], None] | None = None
        self._finalizer = finalize(self, left_open, self._core.records)

    @classmethod
    def open(
        cls,
        driver: str | Driver = "auto",
        device: int = 0,
        limit_bytes: int | None = None,
        *,
        policy: str | Policy = Policy.GRANULE,
        longest_run_bytes: int | None = None,
        retention_bytes: int = 0,
        clear_pooled: bool = True,
    ) -> Self:
        """Open a manager.

        Args:
            driver: ``"auto"`` (CUDA where it answers, else simulated), ``"cuda"``, ``"sim"``, or
                a driver of the caller's.
            device: which GPU, as CUDA counts them.
            limit_bytes: what may be charged; the device's memory where None is given.
            policy: ``"granule"`` makes one handle a window, ``"run"`` as few as it can, in powers
                of two: cheaper to map, coarser to release.
            longest_run_bytes: the largest handle of policy ``run``; 64 granules by default.
            retention_bytes: how much unmapped memory is kept for reuse; above it, memory goes
                back to the driver.
            clear_pooled: clear memory on its way into the pool.  Without it, memory that comes
                out of the pool holds what its last user left: for engines that overwrite all
                they read.

        Raises:
            DriverUnavailable: there is no such driver or device here.
            ValueError: a setting that cannot be meant.
        """
        policy = Policy(policy)
        made = open_driver(driver, device) if isinstance(driver, str) else driver
        unit = made.granularity_bytes
        longest = 64 * unit if longest_run_bytes is None else longest_run_bytes
        limit = limit_of(made) if limit_bytes is None else limit_bytes
        for name, value, least in (
            ("longest_run_bytes", longest, unit),
            ("retention_bytes", retention_bytes, 0),
            ("limit_bytes", limit, 0),
        ):
            if isinstance(value, bool) or value < least:
                raise ValueError(f"{name}={value!r}: give a whole number of bytes from {least} on")
        settings = Settings(
            granularity_bytes=unit,
            policy=policy,
            longest_run=longest // unit,
            retention=retention_bytes // unit,
            clear_pooled=clear_pooled,
        )
        memory = cls(made, settings, limit)
        if isinstance(driver, str):
            memory._close_driver = getattr(made, "close", None)
        return memory

    # --- what it holds ----------------------------------------------------------------------

    @property
    def granularity_bytes(self) -> int:
        """The unit in which memory is committed, asked of the driver."""
        return self._core.records.settings.granularity_bytes

    @property
    def ledger(self) -> Ledger:
        """What is charged, owned, mapped, pooled and in doubt, in granules."""
        with self._core.records.lock:
            return self._core.records.ledger()

    def observe(self) -> Observation:
        """Everything held, by serial; consistent when no operation is under way."""
        return observe(self._core.records)

    # --- operations -------------------------------------------------------------------------

    def reserve(self, size_bytes: int, alignment_bytes: int = 0) -> Reservation:
        """Reserve an address range, rounded up to the granularity.  It costs no memory.

        Raises:
            RangeError: a size below 1, an alignment that is no power of two.
            DriverError: the driver failed; address space that it may have taken is listed.
            DeviceLostError: the device is lost.
        """
        serial = self._core.run("reserve", reserve, size_bytes, alignment_bytes)
        return Reservation(self._core, cast("int", serial))

    def attach(self, targets: Iterable[tuple[Reservation, Prefix, int]]) -> int:
        """Map sealed prefixes at offsets of reservations, to be read; the bytes mapped.

        One transaction, for example for the keys and the values of every layer: all or none.
        Nothing is charged: the memory is charged already, once.

        Raises:
            UnsealedError: a prefix can still be written.
            OccupiedError, MisalignedError, TooLongError: a prefix does not go where it was to.
            ForeignError: a prefix or a reservation of another manager.
            DriverError: a call failed, and all that was mapped is undone, or quarantined.  Only
                where the error is ``undone`` may the caller do with private memory instead.
            RangeError, QuarantinedError, RightsUnknownError, StaleError, DeviceLostError: as for
                commit.
        """
        return attach_all(self._core, targets) * self.granularity_bytes

    def fork(self, parents: Iterable[tuple[Reservation, int]]) -> tuple[Reservation, ...]:
        """New reservations that read as their parents do up to a length in bytes, of any number.

        Sealed handles below the length are shared; the bytes behind them are copied, on the device,
        into memory of the child's own.  The parents stay as they are, whatever fails.  One
        transaction, as for ``attach``.

        Raises:
            UnsealedError: a whole handle below a length is not sealed.
            NotCommittedError: there is a hole below a length.
            BudgetError: the limit leaves no room for what is copied.
            DriverError: a call failed, and all that was made is undone, or quarantined.
            ForeignError, RangeError, QuarantinedError, RightsUnknownError, StaleError,
                DeviceLostError: as for ``attach``.
        """
        serials = fork_all(self._core, parents)
        return tuple(Reservation(self._core, serial) for serial in serials)

    def trim(self, size_bytes: int = MAX_BYTES) -> int:
        """Give pooled memory back, oldest first, until that much is; the bytes given back.

        Raises:
            RangeError: a negative size.
            DriverError: a release failed; what it concerned is quarantined, the others went on.
            DeviceLostError: the device is lost.
        """
        return cast("int", self._core.run("trim", trim, size_bytes)) * self.granularity_bytes

    def reclaim(self) -> int:
        """Try to end every quarantine, with proof; how many mappings are confirmed gone.

        Raises:
            DriverError: a call failed; what could not be confirmed stays quarantined.
            DeviceLostError: the device is lost.
        """
        return cast("int", self._core.run("reclaim", reclaim, None))

    def set_limit(self, limit_bytes: int) -> None:
        """Change what may be charged; below what is charged, nothing is taken back.

        Raises:
            RangeError: a negative limit.
            DeviceLostError: the device is lost.
        """
        _ = self._core.run("set_limit", lambda records, _: set_limit(records, limit_bytes))

    def close(self) -> None:
        """Close every reservation, retire every prefix, give the pool back, end with the driver.

        A second call does nothing; any other use afterwards raises ``ClosedError``.  Goes on after
        what fails, and then raises the first failure; the others are its notes.
        What could not be confirmed stays listed in ``observe``.  A lost device is left alone.
        """
        if self._core.closed:
            return
        failures = self._close_everything()
        self._core.closed = True
        _ = self._finalizer.detach()
        if self._close_driver is not None and not self._core.records.lost:
            self._close_driver()
        self._close_driver = None
        if failures:
            for other in failures[1:]:
                failures[0].add_note(f"then: {other}")
            raise failures[0]

    def _close_everything(self) -> list[KvvmmError]:
        core, records = self._core, self._core.records
        with records.lock:
            serials = [r.serial for r in records.reservations.values() if is_open(r.standing)]
            prefixes = list(records.prefixes)

        def closing(serial: int) -> object:
            return core.run("close", close, serial)

        def retiring(prefix: int) -> object:
            return core.run("retire", retire, prefix) if prefix in records.prefixes else None

        tries: list[Callable[[], object]] = [
            *(partial(closing, serial) for serial in serials),
            *(partial(retiring, prefix) for prefix in prefixes),
            lambda: core.run("reclaim", reclaim, None),
            lambda: core.run("trim", trim, MAX_BYTES),
        ]
        failures: list[KvvmmError] = []
        for attempt in tries:
            if records.lost:
                break
            try:
                _ = attempt()
            except KvvmmError as failure:
                failures.append(failure)
        return [] if records.lost else failures

    def __enter__(self) -> Self:
        """The manager itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close; while another exception is on its way, failures are logged, not raised."""
        leave(self.close, error)
