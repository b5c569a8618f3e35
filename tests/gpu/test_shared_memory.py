"""Shared memory on a real device: what the hardware enforces, and what a copy really copies."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu.test_lost_context import needs_a_compiler, store_to
from kvvmm_cuda import Prefix, Reservation, VirtualMemory
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_cuda.errors import DeviceLostError, DriverError
from kvvmm_model.codes import Code, Step
from kvvmm_model.vocabulary import Fault

WORDS = (0x11223344, 0x55667788, 0x99AABBCC)


@pytest.fixture
def memory(driver: CudaDriver) -> Iterator[VirtualMemory]:
    before = driver.free_bytes()
    with VirtualMemory.open(driver, limit_bytes=64 * driver.granularity_bytes) as opened:
        yield opened
    assert driver.free_bytes() == before


def sealed(driver: CudaDriver, memory: VirtualMemory) -> tuple[Reservation, Prefix]:
    """Three windows with a word in each; the first two are published and sealed."""
    unit = driver.granularity_bytes
    owner = memory.reserve(8 * unit)
    _ = owner.commit(0, 3 * unit)
    for window, word in enumerate(WORDS):
        assert driver.write(owner.address + window * unit, unit, word) is None
    prefix = owner.publish(2 * unit)
    assert prefix.seal() == 2 * unit
    return owner, prefix


def test_write_to_sealed_memory_fails_softly_and_changes_nothing(
    driver: CudaDriver, memory: VirtualMemory
) -> None:
    unit = driver.granularity_bytes
    owner, prefix = sealed(driver, memory)
    with memory.reserve(8 * unit) as sharer, owner, prefix:
        assert sharer.attach(prefix, unit) == 2 * unit
        _writes_fail(driver, owner, sharer)


def _writes_fail(driver: CudaDriver, owner: Reservation, sharer: Reservation) -> None:
    unit = driver.granularity_bytes
    for address in (sharer.address + unit, owner.address):
        assert driver.write(address, unit, 1) == Fault(Step.CLEAR, Code.INVALID_VALUE)
        copied = driver.copy(address, owner.address + 2 * unit, unit)
        assert copied == Fault(Step.COPY, Code.INVALID_VALUE)
    assert driver.fence() is None
    for address in (sharer.address + unit, owner.address):
        assert [driver.read(address + at * unit) for at in (0, 1)] == list(WORDS[:2])


def test_memory_outlives_its_owner_and_goes_with_the_last_sharer(
    driver: CudaDriver, memory: VirtualMemory
) -> None:
    unit = driver.granularity_bytes
    before = driver.free_bytes()
    owner, prefix = sealed(driver, memory)
    sharers = [memory.reserve(8 * unit) for _ in range(8)]
    for sharer in sharers:
        _ = sharer.attach(prefix)
    assert before - driver.free_bytes() == 3 * unit  # charged once, and there once
    _ = owner.close()
    _ = prefix.retire()
    for sharer in sharers[:-1]:
        _ = sharer.close()
    assert before - driver.free_bytes() == 2 * unit
    assert driver.read(sharers[-1].address + unit) == WORDS[1]
    _ = sharers[-1].close()
    assert driver.free_bytes() == before


@pytest.mark.parametrize("beyond", [1, 2, 3, 4, 5, 1000003])
def test_fork_copies_exactly_the_bytes(
    driver: CudaDriver, memory: VirtualMemory, beyond: int
) -> None:
    unit = driver.granularity_bytes
    owner, prefix = sealed(driver, memory)
    with owner, prefix, owner.fork(2 * unit + beyond) as child:
        _reads_as_its_parent(driver, owner, child, beyond)


def _reads_as_its_parent(
    driver: CudaDriver, owner: Reservation, child: Reservation, beyond: int
) -> None:
    """Up to so many bytes of the third window, and as zero behind them."""
    unit = driver.granularity_bytes
    cut = beyond // 4 * 4
    mixed = WORDS[2] & ((1 << 8 * (beyond % 4)) - 1)
    start = child.address + 2 * unit
    assert [driver.read(child.address + at * unit) for at in (0, 1)] == list(WORDS[:2])
    assert driver.read(start + cut) == mixed
    assert driver.read(start + cut + 4) == 0
    assert driver.read(start + unit - 4) == 0
    if cut:
        assert driver.read(start + cut - 4) == WORDS[2]
    assert driver.write(start, unit, 7) is None
    assert driver.read(owner.address + 2 * unit) == WORDS[2]


def lose_it_in_a_sharer() -> None:
    """Runs in a process of its own: a kernel stores into a sharer's window."""
    driver = CudaDriver()
    unit = driver.granularity_bytes
    memory = VirtualMemory.open(driver, limit_bytes=16 * unit)
    # Nothing is closed: after this, nothing can be, and the process ends.
    owner, prefix = sealed(driver, memory)
    sharer = memory.reserve(4 * unit)
    _ = sharer.attach(prefix)
    before = memory.observe()
    store_to(sharer.address)
    with pytest.raises(DriverError) as failed:
        _ = sharer.release(0, 2 * unit)
    assert failed.value.fault == Fault(Step.FENCE, Code.ILLEGAL_ADDRESS)
    for attempt in (prefix.retire, owner.close, sharer.close, lambda: owner.fork(unit)):
        with pytest.raises(DeviceLostError):
            _ = attempt()
    after = memory.observe()
    assert after.lost
    assert after.ledger == before.ledger  # torn down: nothing; charged: everything
    assert after.handles == before.handles
    for reservation in (owner, sharer):
        assert driver.query(reservation.address) is not None  # D-19: nobody touched it
    print("lost, and everything is charged")


def test_kernel_that_stores_into_a_sharers_window_loses_the_device() -> None:
    needs_a_compiler()
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here.parent), *(path for path in sys.path if path)])
    ended = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "from gpu.test_shared_memory import lose_it_in_a_sharer as it; it()",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert "lost, and everything is charged" in ended.stdout, ended.stderr
