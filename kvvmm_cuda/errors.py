"""Exceptions of the public classes: one for each kind of "no", carrying what the value carried.

Each also derives from the builtin that it resembles, so that ``except MemoryError`` and the like do
what a reader expects.
"""

from typing import NoReturn

from kvvmm_model.vocabulary import Code, Failed, Fault, Refusal, Refused, Residue

__all__ = [
    "BudgetError",
    "ClosedError",
    "DeviceLostError",
    "DriverError",
    "DriverOutOfMemoryError",
    "KvvmmError",
    "NotCommittedError",
    "QuarantinedError",
    "RangeError",
    "RefusedError",
    "StaleError",
]


class KvvmmError(Exception):
    """Whatever this package raises on purpose."""


class RefusedError(KvvmmError):
    """The caller's mistake or bad luck: no driver call was made and nothing changed.

    ``reason`` says why, ``numbers`` has the values that a program needs, by name.
    """

    def __init__(self, operation: str, refused: Refused) -> None:
        super().__init__(f"{operation} refused: {refused}")
        self.operation = operation
        self.reason: Refusal = refused.reason
        self.numbers: dict[str, object] = dict(refused.numbers)


class ClosedError(KvvmmError, ValueError):
    """The manager was closed."""


class DeviceLostError(RefusedError, RuntimeError):
    """An earlier error lost the device; nothing works until the process is replaced."""


class StaleError(RefusedError, LookupError):
    """The reservation is closed."""


class RangeError(RefusedError, ValueError):
    """An offset, a size or an alignment that cannot be meant."""


class QuarantinedError(RefusedError, RuntimeError):
    """Windows in the range are quarantined; ``numbers["offsets_bytes"]`` says which."""


class NotCommittedError(RefusedError, LookupError):
    """Nothing lies wholly inside the range."""


class BudgetError(RefusedError, MemoryError):
    """The limit leaves no room: backpressure, not a crash.

    ``numbers`` has ``needed_bytes``, ``free_bytes`` and ``reclaimable_bytes``.
    """


class DriverError(KvvmmError, RuntimeError):
    """A driver call failed.  An error is not a no-op: ``residue`` says what is different now.

    ``fault`` is the first that happened, ``cleanup_faults`` those that came after it.
    """

    def __init__(self, operation: str, failed: Failed) -> None:
        changed = "something changed, see residue" if failed.residue else "nothing changed"
        also = "".join(f"; then {fault}" for fault in failed.cleanup_faults)
        super().__init__(f"{operation} failed: {failed.fault}{also} ({changed})")
        self.operation = operation
        self.fault: Fault = failed.fault
        self.residue: Residue = failed.residue
        self.cleanup_faults: tuple[Fault, ...] = failed.cleanup_faults


class DriverOutOfMemoryError(DriverError, MemoryError):
    """The driver had no memory, or no addresses, left."""


_REFUSALS: dict[Refusal, type[RefusedError]] = {
    Refusal.DEVICE_LOST: DeviceLostError,
    Refusal.STALE: StaleError,
    Refusal.RANGE: RangeError,
    Refusal.QUARANTINED: QuarantinedError,
    Refusal.NOT_COMMITTED: NotCommittedError,
    Refusal.BUDGET: BudgetError,
}


def raise_for(operation: str, outcome: Refused | Failed) -> NoReturn:
    """Raise what an outcome that is not ``Done`` means."""
    if isinstance(outcome, Refused):
        raise _REFUSALS[outcome.reason](operation, outcome)
    out_of_memory = outcome.fault.code == Code.OUT_OF_MEMORY
    raise (DriverOutOfMemoryError if out_of_memory else DriverError)(operation, outcome)
