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
    "ForeignError",
    "KvvmmError",
    "MisalignedError",
    "NotCommittedError",
    "OccupiedError",
    "QuarantinedError",
    "RangeError",
    "RefusedError",
    "RepeatedError",
    "RightsUnknownError",
    "SharedError",
    "StaleError",
    "StraddlingError",
    "TooLongError",
    "UnsealedError",
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
    """The reservation is closed, or the prefix retired or cancelled."""


class ForeignError(StaleError):
    """The reservation or the prefix is another manager's; its serial means nothing here."""


class RangeError(RefusedError, ValueError):
    """An offset, a size, a length or an alignment that cannot be meant."""


class MisalignedError(RangeError):
    """A prefix is attached at whole windows; ``numbers["nearest_bytes"]`` is one below."""


class TooLongError(RangeError):
    """The prefix would reach beyond the reservation."""


class StraddlingError(RangeError):
    """A handle reaches over the end of what was to be published.

    ``numbers`` has ``fits_bytes`` and ``next_bytes``, where handles end before and behind.
    """


class QuarantinedError(RefusedError, RuntimeError):
    """Windows in the range are quarantined; ``numbers["offsets_bytes"]`` says which."""


class RightsUnknownError(RefusedError, RuntimeError):
    """A seal failed and was not undone; ``numbers["offsets_bytes"]`` says where."""


class SharedError(RefusedError, RuntimeError):
    """Sealed memory is not written again; ``numbers["first_offset_bytes"]`` is behind it."""


class OccupiedError(RefusedError, RuntimeError):
    """Something lies where a prefix was to be attached; ``numbers["offsets_bytes"]``."""


class RepeatedError(RefusedError, ValueError):
    """A handle lies twice in what was to be published; ``numbers["fits_bytes"]`` leaves it out."""


class UnsealedError(RefusedError, RuntimeError):
    """What was to be shared can still be written."""


class NotCommittedError(RefusedError, LookupError):
    """There is no memory where the operation needs some."""


class BudgetError(RefusedError, MemoryError):
    """The limit leaves no room: backpressure, not a crash.

    ``numbers`` has ``needed_bytes``, ``free_bytes`` and ``reclaimable_bytes``.
    """


class DriverError(KvvmmError, RuntimeError):
    """A driver call failed.  An error is not a no-op: ``residue`` says what is different now.

    ``fault`` is the first that happened, ``cleanup_faults`` those that came after it.  ``undone``:
    all that was begun is undone and nothing is in doubt, so that the caller may do without, for
    example with private memory in place of shared.
    """

    def __init__(self, operation: str, failed: Failed) -> None:
        changed = "something changed, see residue" if failed.residue else "nothing changed"
        also = "".join(f"; then {fault}" for fault in failed.cleanup_faults)
        super().__init__(f"{operation} failed: {failed.fault}{also} ({changed})")
        self.operation = operation
        self.fault: Fault = failed.fault
        self.residue: Residue = failed.residue
        self.cleanup_faults: tuple[Fault, ...] = failed.cleanup_faults
        self.undone: bool = failed.undone


class DriverOutOfMemoryError(DriverError, MemoryError):
    """The driver had no memory, or no addresses, left."""


_REFUSALS: dict[Refusal, type[RefusedError]] = {
    Refusal.DEVICE_LOST: DeviceLostError,
    Refusal.STALE: StaleError,
    Refusal.RANGE: RangeError,
    Refusal.MISALIGNED: MisalignedError,
    Refusal.TOO_LONG: TooLongError,
    Refusal.STRADDLING: StraddlingError,
    Refusal.QUARANTINED: QuarantinedError,
    Refusal.RIGHTS_UNKNOWN: RightsUnknownError,
    Refusal.SHARED: SharedError,
    Refusal.OCCUPIED: OccupiedError,
    Refusal.REPEATED: RepeatedError,
    Refusal.UNSEALED: UnsealedError,
    Refusal.NOT_COMMITTED: NotCommittedError,
    Refusal.BUDGET: BudgetError,
}


def raise_for(operation: str, outcome: Refused | Failed) -> NoReturn:
    """Raise what an outcome that is not ``Done`` means."""
    if isinstance(outcome, Refused):
        raise _REFUSALS[outcome.reason](operation, outcome)
    out_of_memory = outcome.fault.code == Code.OUT_OF_MEMORY
    raise (DriverOutOfMemoryError if out_of_memory else DriverError)(operation, outcome)
