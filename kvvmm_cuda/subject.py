"""The backend as a subject of the comparison."""

from typing import assert_never

from kvvmm_cuda.ops.attach import attach
from kvvmm_cuda.ops.close import close
from kvvmm_cuda.ops.commit import commit
from kvvmm_cuda.ops.fork import fork
from kvvmm_cuda.ops.publish import publish
from kvvmm_cuda.ops.reclaim import reclaim
from kvvmm_cuda.ops.release import release
from kvvmm_cuda.ops.reserve import reserve
from kvvmm_cuda.ops.retire import retire
from kvvmm_cuda.ops.seal import seal
from kvvmm_cuda.ops.set_limit import set_limit
from kvvmm_cuda.ops.trim import trim
from kvvmm_cuda.records import Records, observe
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Reclaim,
    Release,
    Reserve,
    Retire,
    Seal,
    SetLimit,
    Trim,
)
from kvvmm_model.vocabulary import Driver, Observation, Outcome, Settings


class Backend:
    """Records and a driver, with operations as values."""

    def __init__(self, driver: Driver, settings: Settings, limit_bytes: int) -> None:
        self._driver = driver
        self.records = Records(settings, limit_bytes // settings.granularity_bytes)

    def apply(self, operation: Operation) -> Outcome:
        """Carry the operation out."""
        records, driver = self.records, self._driver
        match operation:
            case Reserve(size, alignment):
                return reserve(records, driver, size, alignment)
            case Commit(reservation, offset, size):
                return commit(records, driver, reservation, offset, size)
            case Release(reservation, offset, size):
                return release(records, driver, reservation, offset, size)
            case Close(reservation):
                return close(records, driver, reservation)
            case Publish(reservation, size):
                return publish(records, reservation, size)
            case Seal(prefix):
                return seal(records, driver, prefix)
            case Attach(targets):
                return attach(records, driver, targets)
            case Retire(prefix):
                return retire(records, driver, prefix)
            case Fork(parents):
                return fork(records, driver, parents)
            case Trim(size):
                return trim(records, driver, size)
            case Reclaim(reservation):
                return reclaim(records, driver, reservation)
            case SetLimit(size):
                return set_limit(records, size)
            case _:
                assert_never(operation)

    def observe(self) -> Observation:
        """All that can be observed, at rest."""
        return observe(self.records)
