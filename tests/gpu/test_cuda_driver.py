"""The seam against a real device: what the fake bindings of the other tests cannot show."""

from collections.abc import Iterator
from typing import Any

import pytest

from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_model.codes import Code, Step
from kvvmm_model.vocabulary import Fault, Rights

WORD = 0x1234ABCD


@pytest.fixture
def mapped(driver: CudaDriver) -> Iterator[tuple[int, int]]:
    """An address with one granule behind it, RW, and the handle."""
    size_bytes = driver.granularity_bytes
    address = driver.address_reserve(size_bytes, 0)
    assert isinstance(address, int)
    handle = driver.create(size_bytes)
    assert isinstance(handle, int)
    assert driver.map(address, size_bytes, handle) is None
    assert driver.set_access(address, size_bytes, Rights.RW) is None
    yield address, handle
    assert driver.fence() is None
    assert driver.unmap(address, size_bytes) is None
    assert driver.release(handle) is None
    assert driver.address_free(address, size_bytes) is None


def test_round_trip(driver: CudaDriver) -> None:
    size_bytes = driver.granularity_bytes
    address = driver.address_reserve(2 * size_bytes, 0)
    assert isinstance(address, int)
    assert driver.query(address) is None
    before = driver.free_bytes()
    handle = driver.create(size_bytes)
    assert isinstance(handle, int)
    assert before - driver.free_bytes() == size_bytes  # D-5
    assert driver.map(address, size_bytes, handle) is None
    assert driver.query(address) is Rights.NONE  # D-13, D-25
    for rights in (Rights.READ, Rights.NONE, Rights.RW):  # D-17
        assert driver.set_access(address, size_bytes, rights) is None
        assert driver.query(address) is rights
    assert driver.read(address) == 0  # D-6
    assert driver.write(address, size_bytes, WORD) is None
    assert driver.read(address) == WORD
    assert driver.read(address + size_bytes - 4) == WORD
    assert driver.clear(address, size_bytes) is None
    assert driver.fence() is None
    assert driver.read(address) == 0
    assert driver.read(address + size_bytes - 4) == 0
    assert driver.unmap(address, size_bytes) is None
    assert driver.query(address) is None
    assert driver.release(handle) is None
    assert driver.free_bytes() == before
    assert driver.address_free(address, 2 * size_bytes) is None


def test_current_context_stays_what_it_was(driver: CudaDriver, mapped: tuple[int, int]) -> None:
    cu: Any = pytest.importorskip("cuda.bindings.driver")
    address, _ = mapped
    size_bytes = driver.granularity_bytes

    def current() -> int:
        status, context = cu.cuCtxGetCurrent()
        assert not status
        return int(context)

    def use() -> None:
        assert driver.write(address, size_bytes, WORD) is None
        assert driver.clear(address, size_bytes) is None
        assert driver.copy(address, address + size_bytes // 2, size_bytes // 2) is None
        assert driver.fence() is None
        assert driver.read(address) == 0
        assert driver.free_bytes() > 0
        assert driver.query(address) is Rights.RW

    before = current()
    status, context = cu.cuDevicePrimaryCtxRetain(0)
    assert not status
    try:
        for wanted in (0, int(context)):
            (status,) = cu.cuCtxSetCurrent(wanted)
            assert not status
            use()
            assert current() == wanted
            assert isinstance(driver.write(0, size_bytes, WORD), Fault)  # and after a failure
            assert current() == wanted
    finally:
        _ = cu.cuCtxSetCurrent(before)
        _ = cu.cuDevicePrimaryCtxRelease(0)


def test_write_read_only_answers_fault_and_harms_nothing(
    driver: CudaDriver, mapped: tuple[int, int]
) -> None:
    address, _ = mapped
    size_bytes = driver.granularity_bytes
    assert driver.write(address, size_bytes, WORD) is None
    assert driver.set_access(address, size_bytes, Rights.READ) is None
    assert driver.write(address, size_bytes, 0) == Fault(Step.CLEAR, Code.INVALID_VALUE)  # D-18
    assert driver.fence() is None
    assert driver.read(address) == WORD


@pytest.fixture
def pair(driver: CudaDriver, mapped: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Two addresses with a granule behind each, RW; the first holds words, the second zeros."""
    size_bytes = driver.granularity_bytes
    address = driver.address_reserve(size_bytes, 0)
    assert isinstance(address, int)
    handle = driver.create(size_bytes)
    assert isinstance(handle, int)
    assert driver.map(address, size_bytes, handle) is None
    assert driver.set_access(address, size_bytes, Rights.RW) is None
    assert driver.write(mapped[0], size_bytes, WORD) is None
    yield mapped[0], address
    assert driver.fence() is None
    assert driver.unmap(address, size_bytes) is None
    assert driver.release(handle) is None
    assert driver.address_free(address, size_bytes) is None


@pytest.mark.parametrize("rights", [Rights.RW, Rights.READ])
def test_copy_takes_exactly_the_bytes_in_order_with_stores(
    driver: CudaDriver, pair: tuple[int, int], rights: Rights
) -> None:
    source, target = pair
    size_bytes = driver.granularity_bytes
    assert driver.fence() is None
    assert driver.set_access(source, size_bytes, rights) is None
    assert driver.copy(target, source, size_bytes // 2 + 3) is None  # after the store of the words
    words = [driver.read(target + size_bytes // 2 + at) for at in (-4, 0, 4)]
    assert words == [WORD, WORD & 0xFF_FFFF, 0]
    assert driver.read(target) == WORD
    assert driver.read(source) == WORD
    assert driver.copy(target, source, size_bytes) is None
    assert driver.clear(target, size_bytes) is None
    assert driver.fence() is None
    assert driver.read(target) == 0
    assert driver.set_access(source, size_bytes, Rights.RW) is None


@pytest.mark.parametrize("rights", [Rights.READ, Rights.NONE])
def test_copy_to_where_nothing_may_be_written_answers_fault_and_harms_nothing(
    driver: CudaDriver, pair: tuple[int, int], rights: Rights
) -> None:
    source, target = pair
    size_bytes = driver.granularity_bytes
    assert driver.set_access(target, size_bytes, rights) is None
    invalid = Fault(Step.COPY, Code.INVALID_VALUE)
    assert driver.copy(target, source, size_bytes) == invalid  # D-18
    assert driver.fence() is None
    assert driver.set_access(target, size_bytes, Rights.RW) is None
    assert driver.read(target) == 0


def test_create_beyond_the_device_answers_out_of_memory(driver: CudaDriver) -> None:
    before = driver.free_bytes()
    size_bytes = (driver.capacity_bytes // driver.granularity_bytes + 1) * driver.granularity_bytes
    assert driver.create(size_bytes) == Fault(Step.CREATE, Code.OUT_OF_MEMORY)
    assert driver.free_bytes() == before


def test_describe_names_the_device(driver: CudaDriver) -> None:
    said = driver.describe()
    assert said["gpu"] != "unknown"
    assert said["uuid"].startswith("GPU-")
    assert "unknown" not in said["cuda_version"]
    assert driver.capacity_bytes % driver.granularity_bytes < driver.granularity_bytes
