"""The seam to CUDA, against bindings that only look like CUDA's: no device is needed."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_model.codes import Code, Step
from kvvmm_model.vocabulary import Driver, Fault, Rights

G = 2 << 20
OURS = 77  # the primary context


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_UNKNOWN = 999


class Opaque:
    """Equal values compare unequal, as in some releases of the bindings (D-9)."""

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def __int__(self) -> int:
        return self.value

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def flag(name: str, value: int) -> SimpleNamespace:
    return SimpleNamespace(**{name: value})


def property_like() -> SimpleNamespace:
    return SimpleNamespace(type=None, location=SimpleNamespace(type=None, id=None))


class Bindings:
    """Answers a call with ``answers[name]``, after its status in ``statuses``; keeps a log."""

    CUresult = Status
    CUmemLocationType = flag("CU_MEM_LOCATION_TYPE_DEVICE", 1)
    CUmemAllocationType = flag("CU_MEM_ALLOCATION_TYPE_PINNED", 1)
    CUmemAllocationGranularity_flags = flag("CU_MEM_ALLOC_GRANULARITY_MINIMUM", 0)
    CUdevice_attribute = flag("CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 102)
    CUmemAccess_flags = SimpleNamespace(
        CU_MEM_ACCESS_FLAGS_PROT_NONE=0,
        CU_MEM_ACCESS_FLAGS_PROT_READ=1,
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE=3,
    )
    CUmemAllocationProp = staticmethod(property_like)
    CUmemAccessDesc = staticmethod(property_like)
    CUmemLocation = staticmethod(SimpleNamespace)
    CUstream = Opaque
    CU_STREAM_LEGACY = 1

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.log: list[tuple[str, tuple[Any, ...]]] = []
        self.contexts: list[Any] = []
        self.answers: dict[str, tuple[Any, ...]] = {
            "cuInit": (),
            "cuDeviceGetCount": (2,),
            "cuDeviceGet": (Opaque(0),),
            "cuDeviceGetAttribute": (1,),
            "cuDevicePrimaryCtxRetain": (Opaque(OURS),),
            "cuDevicePrimaryCtxRelease": (),
            "cuMemGetAllocationGranularity": (G,),
            "cuDeviceTotalMem": (64 * G,),
            "cuMemAddressReserve": (Opaque(0x7000),),
            "cuMemCreate": (Opaque(55),),
            "cuMemMap": (),
            "cuMemSetAccess": (),
            "cuMemGetAccess": (3,),
            "cuMemUnmap": (),
            "cuMemRelease": (),
            "cuMemAddressFree": (),
            "cuCtxSynchronize": (),
            "cuMemsetD32Async": (),
            "cuMemcpyDtoDAsync": (),
            "cuMemcpyDtoH": (),
            "cuMemGetInfo": (10 * G, 64 * G),
            "cuDeviceGetName": (b"A device\0\0",),
            "cuDeviceGetUuid": (SimpleNamespace(bytes=bytes(range(16))),),
            "cuDriverGetVersion": (13040,),
        }

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if name not in self.answers:
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.log.append((name, arguments))
            try:
                status = Status(self.statuses.get(name, 0))
            except ValueError as error:  # the bindings' words
                raise ValueError(str(error).replace("Status", "CUresult")) from None
            answer = self.answers[name]
            return (status, *(None if status else value for value in answer))

        return call

    def cuCtxPushCurrent(self, context: Any) -> tuple[Status]:  # noqa: N802 - CUDA's name
        status = Status(self.statuses.get("cuCtxPushCurrent", 0))
        if not status:
            self.contexts.append(context)
        return (status,)

    def cuCtxPopCurrent(self) -> tuple[Status, Any]:  # noqa: N802 - CUDA's name
        return Status(self.statuses.get("cuCtxPopCurrent", 0)), self.contexts.pop()

    def called(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for call, arguments in self.log if call == name]


@pytest.fixture
def bindings() -> Bindings:
    return Bindings()


@pytest.fixture
def driver(bindings: Bindings) -> Iterator[CudaDriver]:
    with CudaDriver(bindings=bindings) as opened:
        yield opened


def as_driver(driver: CudaDriver) -> Driver:
    """Holds for the type checkers too."""
    return driver


CALLS: dict[str, tuple[Step, Callable[[CudaDriver], object]]] = {
    "cuMemAddressReserve": (Step.ADDRESS_RESERVE, lambda d: d.address_reserve(G, 0)),
    "cuMemCreate": (Step.CREATE, lambda d: d.create(G)),
    "cuMemMap": (Step.MAP, lambda d: d.map(0x7000, G, 55)),
    "cuMemSetAccess": (Step.SET_ACCESS, lambda d: d.set_access(0x7000, G, Rights.RW)),
    "cuMemGetAccess": (Step.QUERY, lambda d: d.query(0x7000)),
    "cuMemUnmap": (Step.UNMAP, lambda d: d.unmap(0x7000, G)),
    "cuMemRelease": (Step.RELEASE, lambda d: d.release(55)),
    "cuMemAddressFree": (Step.ADDRESS_FREE, lambda d: d.address_free(0x7000, G)),
    "cuCtxSynchronize": (Step.FENCE, lambda d: d.fence()),
    "cuMemsetD32Async": (Step.CLEAR, lambda d: d.clear(0x7000, G)),
    "cuMemcpyDtoDAsync": (Step.COPY, lambda d: d.copy(0x9000, 0x7000, 5)),
    "cuMemcpyDtoH": (Step.QUERY, lambda d: d.read(0x7000)),
}
IN_CONTEXT = ("cuCtxSynchronize", "cuMemsetD32Async", "cuMemcpyDtoDAsync", "cuMemcpyDtoH")


def test_opening_device_answers_its_numbers(driver: CudaDriver) -> None:
    assert as_driver(driver).granularity_bytes == G
    assert driver.capacity_bytes == 64 * G


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("code", [2, 700, 999, 12345])  # the bindings raise for the last
def test_call_status_becomes_fault(
    driver: CudaDriver, bindings: Bindings, name: str, code: int
) -> None:
    step, call = CALLS[name]
    bindings.statuses[name] = code
    answer = call(driver)
    assert answer == Fault(step, code)
    assert isinstance(answer, Fault)
    assert type(answer.code) is int
    assert bindings.contexts == []


@pytest.mark.parametrize("name", [name for name in CALLS if name not in IN_CONTEXT])
def test_call_on_virtual_memory_touches_no_context(
    driver: CudaDriver, bindings: Bindings, name: str
) -> None:
    bindings.statuses["cuCtxPushCurrent"] = 201  # would show in the answer
    assert not isinstance(CALLS[name][1](driver), Fault)


def test_opaque_things_become_integers(driver: CudaDriver) -> None:
    assert type(driver.address_reserve(G, 0)) is int
    assert driver.address_reserve(G, 0) == 0x7000
    assert type(driver.create(G)) is int
    assert driver.create(G) == 55


def test_arguments_reach_the_call(driver: CudaDriver, bindings: Bindings) -> None:
    assert driver.address_reserve(4 * G, G) == 0x7000
    assert driver.map(0x7000, G, 55) is None
    assert driver.set_access(0x7000, G, Rights.READ) is None
    assert driver.clear(0x7000, G) is None
    assert bindings.called("cuMemAddressReserve") == [(4 * G, G, 0, 0)]
    assert bindings.called("cuMemMap") == [(0x7000, G, 0, 55, 0)]
    address, size_bytes, (descriptor,), count = bindings.called("cuMemSetAccess")[0]
    assert (address, size_bytes, count) == (0x7000, G, 1)
    assert (descriptor.flags, descriptor.location.id) == (1, 0)
    address, word, count, stream = bindings.called("cuMemsetD32Async")[0]
    assert (address, word, count, int(stream)) == (0x7000, 0, G // 4, 1)
    assert driver.copy(0x9000, 0x7000, 5) is None  # to, from; the same stream as a clear
    target, source, size_bytes, other = bindings.called("cuMemcpyDtoDAsync")[0]
    assert (target, source, size_bytes) == (0x9000, 0x7000, 5)
    assert other is stream


@pytest.mark.parametrize(
    ("flags", "rights"),
    [(0, Rights.NONE), (1, Rights.READ), (3, Rights.RW), (2, Rights.UNKNOWN)],
)
def test_query_mapped_answers_rights(
    driver: CudaDriver, bindings: Bindings, flags: int, rights: Rights
) -> None:
    bindings.answers["cuMemGetAccess"] = (flags,)
    assert driver.query(0x7000) is rights


def test_query_unmapped_answers_none(driver: CudaDriver, bindings: Bindings) -> None:
    bindings.statuses["cuMemGetAccess"] = Code.INVALID_VALUE
    assert driver.query(0x7000) is None


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_context_cannot_be_pushed_answers_fault_and_calls_nothing(
    driver: CudaDriver, bindings: Bindings, name: str
) -> None:
    step, call = CALLS[name]
    bindings.statuses["cuCtxPushCurrent"] = 201
    assert call(driver) == Fault(step, 201)
    assert bindings.called(name) == []


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_context_cannot_be_popped_answers_fault_but_the_first_one_wins(
    driver: CudaDriver, bindings: Bindings, name: str
) -> None:
    step, call = CALLS[name]
    bindings.statuses["cuCtxPopCurrent"] = 201
    assert call(driver) == Fault(step, 201)
    bindings.statuses[name] = 700
    assert call(driver) == Fault(step, 700)


def test_call_that_raises_leaves_the_context_popped(
    driver: CudaDriver, bindings: Bindings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflows(*_: object) -> tuple[int]:
        raise OverflowError

    monkeypatch.setattr(driver, "_cu_memset", overflows)
    with pytest.raises(OverflowError):
        _ = driver.clear(-1, G)
    assert bindings.contexts == []


def test_free_bytes_answers_or_raises(driver: CudaDriver, bindings: Bindings) -> None:
    assert driver.free_bytes() == 10 * G
    bindings.statuses["cuMemGetInfo"] = 700
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        _ = driver.free_bytes()
    assert bindings.contexts == []


def test_describe_answers_text(driver: CudaDriver, bindings: Bindings) -> None:
    said = driver.describe()
    assert said["gpu"] == "A device"
    assert said["uuid"] == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert said["cuda_version"] == "13.4"
    bindings.statuses.update(cuDeviceGetName=999, cuDeviceGetUuid=999, cuDriverGetVersion=999)
    said = driver.describe()
    assert (said["gpu"], said["uuid"], said["cuda_version"]) == ("unknown",) * 3


def test_close_gives_the_context_back_once(driver: CudaDriver, bindings: Bindings) -> None:
    driver.close()
    driver.close()
    assert len(bindings.called("cuDevicePrimaryCtxRelease")) == 1
    assert driver.fence() == Fault(Step.FENCE, Code.INVALID_CONTEXT)
    assert driver.unmap(0x7000, G) is None  # what needs no context goes on (D-27)


def test_close_status_is_logged_but_not_at_exit(
    bindings: Bindings, caplog: pytest.LogCaptureFixture
) -> None:
    bindings.statuses["cuDevicePrimaryCtxRelease"] = 999
    CudaDriver(bindings=bindings).close()
    assert "CUDA_ERROR_UNKNOWN 999" in caplog.text


@pytest.mark.parametrize("device", [-1, 2, 99])
def test_opening_device_out_of_range_answers_unavailable(bindings: Bindings, device: int) -> None:
    with pytest.raises(DriverUnavailable, match=f"no device {device}: 2 visible"):
        _ = CudaDriver(device, bindings=bindings)
    assert bindings.called("cuDevicePrimaryCtxRetain") == []


def test_opening_device_without_virtual_memory_answers_unavailable(bindings: Bindings) -> None:
    bindings.answers["cuDeviceGetAttribute"] = (0,)
    with pytest.raises(DriverUnavailable, match="does not support virtual memory management"):
        _ = CudaDriver(bindings=bindings)


@pytest.mark.parametrize(
    "name",
    [
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRetain",
        "cuMemGetAllocationGranularity",
        "cuDeviceTotalMem",
    ],
)
def test_opening_call_fails_answers_unavailable_and_keeps_nothing(
    bindings: Bindings, name: str
) -> None:
    bindings.statuses[name] = 100
    with pytest.raises(DriverUnavailable, match="CUDA_ERROR_NO_DEVICE 100") as caught:
        _ = CudaDriver(bindings=bindings)
    assert caught.value.__cause__ is not None
    retained = len(bindings.called("cuDevicePrimaryCtxRetain"))
    kept_after_failing_retain = 1 if name == "cuDevicePrimaryCtxRetain" else 0
    released = len(bindings.called("cuDevicePrimaryCtxRelease"))
    assert retained - released == kept_after_failing_retain


def test_opening_driver_library_is_missing_answers_unavailable(
    bindings: Bindings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(_: int) -> tuple[int]:
        raise RuntimeError("no library")

    monkeypatch.setattr(bindings, "cuInit", init, raising=False)
    with pytest.raises(DriverUnavailable, match="library cannot be loaded") as caught:
        _ = CudaDriver(bindings=bindings)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_opening_bindings_are_missing_answers_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(DriverUnavailable, match=r"install kvvmm\[cuda\]") as caught:
        _ = CudaDriver()
    assert isinstance(caught.value.__cause__, ImportError)


def test_opening_here_works_or_answers_unavailable() -> None:
    try:
        driver = CudaDriver()
    except DriverUnavailable as reason:
        assert "simulated driver" in str(reason)  # noqa: PT017 - either answer is right
        assert reason.__cause__ is not None  # noqa: PT017
    else:
        driver.close()


@pytest.mark.parametrize("module", ["kvvmm_cuda", "kvvmm_cuda.drivers.selection"])
def test_importing_backend_does_not_import_the_bindings(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    program = f"import sys, {module}; sys.exit('cuda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == 0
