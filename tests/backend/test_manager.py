"""The public classes: what they do, and what they raise."""

import gc
import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest

import kvvmm_cuda
from kvvmm_cuda import Reservation, VirtualMemory, errors
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner
from kvvmm_model.vocabulary import Code, Fault, Policy, Refusal, Step

UNIT = 2 << 20


class Parts:
    """A manager over a driver that can be made to fail, and that tells the truth."""

    def __init__(self, *, limit: int = 16, retention: int = 0) -> None:
        self.model = DriverModel(granularity_bytes=UNIT, capacity_bytes=16 * UNIT)
        self.faulting = FaultingDriver(self.model)
        self.memory = VirtualMemory.open(
            self.faulting, limit_bytes=limit * UNIT, retention_bytes=retention * UNIT
        )

    def fail(self, step: Step, code: int = Code.UNKNOWN, *, lasting: bool = False) -> None:
        spec = FaultSpec(step, Manner.WITHOUT_EFFECT, code, lasting=lasting)
        self.faulting.arm(FaultPlan((spec,)))


def test_open_and_close_with_memory_in_use_gives_everything_back() -> None:
    parts = Parts(retention=4)
    with parts.memory as memory, memory.reserve(8 * UNIT + 1) as cache:
        assert cache.size_bytes == 9 * UNIT
        address = cache.address
        assert cache.commit(1, 1) == UNIT
        assert cache.commit(0, 3 * UNIT) == 2 * UNIT
        assert cache.release(0, 2 * UNIT) == (2 * UNIT, ())
        assert cache.address == address
        assert memory.ledger.pooled == 2
        assert memory.trim(UNIT) == UNIT
        _ = memory.reserve(UNIT)  # closed with its manager
    assert parts.model.physical_bytes() == 0
    assert not parts.model.live_ranges()


def test_release_with_a_straddling_handle_says_what_it_keeps() -> None:
    with VirtualMemory.open("sim", policy="run") as memory:
        assert memory.granularity_bytes == UNIT
        cache = memory.reserve(8 * UNIT)
        assert cache.commit(0, 6 * UNIT) == 6 * UNIT  # handles of 4 and 2
        assert cache.release(3 * UNIT, 3 * UNIT) == (2 * UNIT, (3 * UNIT,))


def test_commit_with_numpy_integers_is_taken() -> None:
    with VirtualMemory.open("sim") as memory:
        cache = memory.reserve(np.int64(4 * UNIT))  # type: ignore[arg-type]
        assert cache.commit(np.uint64(UNIT), np.int32(5)) == UNIT  # type: ignore[arg-type]


def test_every_refusal_has_a_class_of_its_own() -> None:
    raised = {
        Refusal.DEVICE_LOST: errors.DeviceLostError,
        Refusal.STALE: errors.StaleError,
        Refusal.RANGE: errors.RangeError,
        Refusal.MISALIGNED: errors.MisalignedError,
        Refusal.TOO_LONG: errors.TooLongError,
        Refusal.STRADDLING: errors.StraddlingError,
        Refusal.RIGHTS_UNKNOWN: errors.RightsUnknownError,
        Refusal.SHARED: errors.SharedError,
        Refusal.OCCUPIED: errors.OccupiedError,
        Refusal.REPEATED: errors.RepeatedError,
        Refusal.UNSEALED: errors.UnsealedError,
        Refusal.QUARANTINED: errors.QuarantinedError,
        Refusal.NOT_COMMITTED: errors.NotCommittedError,
        Refusal.BUDGET: errors.BudgetError,
    }
    assert set(raised) == set(Refusal)
    assert len(set(raised.values())) == len(Refusal)
    for kind in raised.values():
        assert issubclass(kind, errors.RefusedError)


def test_refusals_carry_their_numbers_and_resemble_builtins() -> None:
    parts = Parts(limit=2)
    with parts.memory as memory:
        cache = memory.reserve(8 * UNIT)
        with pytest.raises(errors.BudgetError) as budget:
            _ = cache.commit(0, 3 * UNIT)
        assert isinstance(budget.value, MemoryError)
        assert budget.value.numbers == {
            "needed_bytes": 3 * UNIT,
            "free_bytes": 2 * UNIT,
            "reclaimable_bytes": 0,
        }
        with pytest.raises(errors.RangeError, match="offset_bytes=-1") as out:
            _ = cache.commit(-1, UNIT)
        assert isinstance(out.value, ValueError)
        with pytest.raises(errors.RangeError, match="size_bytes=True"):
            _ = cache.commit(0, True)
        with pytest.raises(errors.NotCommittedError) as empty:
            _ = cache.release(0, UNIT)
        assert isinstance(empty.value, LookupError)
        assert cache.close() == ()
        with pytest.raises(errors.StaleError):
            _ = cache.close()
        memory.set_limit(0)
        with pytest.raises(errors.RangeError):
            memory.set_limit(-1)


def test_driver_error_carries_fault_residue_and_cleanup() -> None:
    parts = Parts()
    with parts.memory as memory:
        cache = memory.reserve(8 * UNIT)
        first = FaultSpec(Step.SET_ACCESS, Manner.WITHOUT_EFFECT, Code.NOT_SUPPORTED)
        second = FaultSpec(Step.UNMAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN)
        parts.faulting.arm(FaultPlan((first, second)))
        with pytest.raises(errors.DriverError, match="NOT_SUPPORTED") as failed:
            _ = cache.commit(0, 2 * UNIT)
        assert isinstance(failed.value, RuntimeError)
        assert failed.value.fault == Fault(Step.SET_ACCESS, Code.NOT_SUPPORTED)
        assert failed.value.cleanup_faults == (Fault(Step.UNMAP, Code.UNKNOWN),)
        assert failed.value.residue.ledger.mapped == 1
        with pytest.raises(errors.QuarantinedError) as barred:
            _ = cache.commit(0, 2 * UNIT)
        assert barred.value.numbers == {"offsets_bytes": (UNIT,)}
        assert cache.reclaim() == 1
        assert cache.commit(0, 2 * UNIT) == 2 * UNIT


def test_driver_without_memory_raises_a_memory_error() -> None:
    parts = Parts(limit=64)
    with parts.memory as memory:
        cache = memory.reserve(32 * UNIT)
        with pytest.raises(errors.DriverOutOfMemoryError) as failed:
            _ = cache.commit(0, 17 * UNIT)
        assert isinstance(failed.value, MemoryError)
        assert not failed.value.residue
        assert memory.ledger.charged == 0


def test_leaving_with_the_device_lost_raises_nothing_and_calls_nothing() -> None:
    parts = Parts()
    with parts.memory as memory, memory.reserve(4 * UNIT) as cache:
        _ = cache.commit(0, UNIT)
        parts.fail(Step.CREATE, Code.ILLEGAL_ADDRESS)
        with pytest.raises(errors.DriverError, match="ILLEGAL_ADDRESS"):
            _ = cache.commit(0, 2 * UNIT)
        with pytest.raises(errors.DeviceLostError) as lost:
            _ = memory.reclaim()
        assert isinstance(lost.value, RuntimeError)
    assert parts.model.physical_bytes() == UNIT
    assert memory.ledger.charged == 2


def leave_with_a_failing_fence(parts: Parts, error: Exception | None) -> None:
    with parts.memory as memory:
        cache = memory.reserve(4 * UNIT)
        _ = cache.commit(0, UNIT)
        parts.fail(Step.FENCE)
        if error is not None:
            raise error


def test_leaving_with_a_failing_close_raises_unless_something_else_is_on_its_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(errors.DriverError, match="fence"):
        leave_with_a_failing_fence(Parts(), None)
    with pytest.raises(KeyError):
        leave_with_a_failing_fence(Parts(), KeyError())
    assert "while leaving after KeyError()" in caplog.text


def test_closed_manager_refuses_and_may_be_closed_again() -> None:
    memory = VirtualMemory.open("sim")
    cache = memory.reserve(UNIT)
    memory.close()
    memory.close()
    for use in (lambda: memory.reserve(UNIT), lambda: cache.commit(0, 1), memory.reclaim):
        with pytest.raises(errors.ClosedError):
            _ = use()


def test_close_with_several_failures_raises_the_first_with_notes() -> None:
    parts = Parts()
    caches = [parts.memory.reserve(UNIT) for _ in range(2)]
    for cache in caches:
        _ = cache.commit(0, UNIT)
    parts.fail(Step.FENCE, lasting=True)
    with pytest.raises(errors.DriverError, match="close failed") as failed:
        parts.memory.close()
    notes = failed.value.__notes__
    assert len(notes) == 2
    assert "close failed" in notes[0]
    assert "reclaim failed" in notes[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limit_bytes": -1}, "limit_bytes=-1"),
        ({"retention_bytes": -5}, "retention_bytes=-5"),
        ({"longest_run_bytes": 1}, "longest_run_bytes=1"),
        ({"longest_run_bytes": True}, "longest_run_bytes=True"),
        ({"policy": "slab"}, "slab"),
    ],
)
def test_open_with_a_bad_setting_names_it(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _ = VirtualMemory.open("sim", **settings)  # type: ignore[arg-type]


def test_open_of_an_unknown_driver_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="auto, cuda, sim"):
        _ = VirtualMemory.open("vulkan")


def test_open_without_a_limit_takes_the_drivers_capacity() -> None:
    driver = DriverModel(granularity_bytes=UNIT, capacity_bytes=7 * UNIT)
    with VirtualMemory.open(driver, policy=Policy.RUN) as memory:
        assert memory.ledger.limit == 7
    with pytest.raises(TypeError, match="limit_bytes=None"):
        _ = VirtualMemory.open(FaultingDriver(driver))


def test_reservation_that_is_dropped_warns_and_calls_nothing() -> None:
    parts = Parts()
    cache = parts.memory.reserve(4 * UNIT)
    _ = cache.commit(0, UNIT)
    with pytest.warns(ResourceWarning, match="reservation 1 was dropped"):  # noqa: PT031 - both drop it
        del cache
        _ = gc.collect()
    assert parts.model.physical_bytes() == UNIT
    parts.memory.close()
    assert parts.model.physical_bytes() == 0


def test_manager_that_is_dropped_warns_and_calls_nothing() -> None:
    parts = Parts()
    cache: Reservation = parts.memory.reserve(4 * UNIT)
    _ = cache.commit(0, UNIT)
    assert cache.close() == ()
    kept = parts.memory.reserve(UNIT)
    with pytest.warns(ResourceWarning, match="never closed"):  # noqa: PT031 - both drop it
        del parts.memory
        _ = gc.collect()
    assert parts.model.live_ranges()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del kept
        _ = gc.collect()


def test_manager_left_open_at_exit_warns() -> None:
    program = (
        "from kvvmm_cuda import VirtualMemory\n"
        "memory = VirtualMemory.open('sim')\n"
        "cache = memory.reserve(1)\n"
        "_ = cache.commit(0, 1)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, check=True
    )
    assert "ResourceWarning" in ended.stderr
    assert "never closed" in ended.stderr


def test_log_has_refusals_faults_and_quarantine(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="kvvmm")
    parts = Parts()
    with parts.memory as memory:
        cache = memory.reserve(4 * UNIT)
        with pytest.raises(errors.RangeError):
            _ = cache.commit(0, 0)
        parts.fail(Step.RELEASE)
        _ = cache.commit(0, UNIT)
        with pytest.raises(errors.DriverError):
            _ = cache.release(0, UNIT)
    levels = {(record.levelname, record.getMessage().split(":")[0]) for record in caplog.records}
    assert ("INFO", "commit refused") in levels
    assert ("WARNING", "release failed") in levels
    assert ("ERROR", "release left in quarantine") in levels


def test_open_of_cuda_without_a_device_says_so() -> None:
    try:
        memory = VirtualMemory.open("cuda")
    except DriverUnavailable:
        with pytest.raises(DriverUnavailable, match="install"):
            _ = VirtualMemory.open("cuda")
    else:
        memory.close()


def test_public_names_are_there() -> None:
    assert set(kvvmm_cuda.__all__) == {"Prefix", "Reservation", "VirtualMemory"}
