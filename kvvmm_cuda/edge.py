"""Where outcomes meet the outside: logging, ``with`` blocks, warnings of what is left open."""

import logging
import warnings
from collections.abc import Callable

from kvvmm_cuda.errors import DeviceLostError, DriverError
from kvvmm_cuda.records import Records
from kvvmm_model.vocabulary import Driver, Failed, Refused, Standing

logger = logging.getLogger("kvvmm")


def is_open(standing: Standing) -> bool:
    """Whether operations may name the reservation."""
    return standing is Standing.OPEN


def limit_of(driver: Driver) -> int:
    """The device's memory, where the driver knows it."""
    capacity = getattr(driver, "capacity_bytes", None)
    if not isinstance(capacity, int):
        raise TypeError("limit_bytes=None: this driver does not say how much there is; give one")
    return capacity


def leave(close_it: Callable[[], object], error: BaseException | None) -> None:
    """The end of a ``with`` block: nothing on top of a lost device, nothing in an error's place."""
    try:
        _ = close_it()
    except DeviceLostError:
        return
    except DriverError as failure:
        if error is None:
            raise
        logger.error("while leaving after %r: %s", error, failure)  # noqa: TRY400 - not the cause


def log(operation: str, outcome: Refused | Failed) -> None:
    """A refusal is news, a fault a warning, a quarantine an error."""
    if isinstance(outcome, Refused):
        logger.info("%s refused: %s", operation, outcome)
        return
    faults = [str(fault) for fault in (outcome.fault, *outcome.cleanup_faults)]
    logger.warning("%s failed: %s", operation, "; then ".join(faults))
    doubtful = [fact for fact in outcome.residue.new if getattr(fact, "quarantined", False)]
    if doubtful:
        logger.error("%s left in quarantine: %s", operation, doubtful)


def left_open(records: Records) -> None:
    """A manager was collected, or the process ends: no driver call may be made here."""
    held = [str(serial) for serial in records.reservations]
    if (held or records.owned) and not records.lost:
        warnings.warn(
            f"a VirtualMemory was never closed: it holds reservations {', '.join(held) or 'none'}"
            f" and {records.owned} granules; use a with statement, or call close()",
            ResourceWarning,
            stacklevel=2,
        )


def prefix_dropped(records: Records, serial: int) -> None:
    """A prefix was collected: no driver call may be made here."""
    if serial in records.prefixes and not records.lost:
        warnings.warn(
            f"prefix {serial} was dropped without retire(): it holds its memory until its"
            " VirtualMemory is closed",
            ResourceWarning,
            stacklevel=2,
        )


def dropped(records: Records, serial: int) -> None:
    """A reservation was collected: no driver call may be made here."""
    found = records.reservations.get(serial)
    if found is not None and is_open(found.standing) and not records.lost:
        warnings.warn(
            f"reservation {serial} was dropped without close(): its memory stays charged until"
            " its VirtualMemory is closed",
            ResourceWarning,
            stacklevel=2,
        )
