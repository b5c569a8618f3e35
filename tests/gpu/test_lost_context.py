"""A context that is really lost: a kernel stores where only reading is allowed (D-18, D-19).

Each test runs in a process of its own: nothing brings a context back, so that a process which has
lost it is of no use to the tests after it.
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cli.deadly import Between
from kvvmm_cuda import VirtualMemory
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_cuda.errors import DeviceLostError, DriverError
from kvvmm_cuda.subject import Backend
from kvvmm_model.vocabulary import Driver, Fault, Rights, Settings

SOURCE = b'extern "C" __global__ void store(int *place) { *place = 1; }'


def _checked(answer: tuple[Any, ...]) -> Any:
    status = answer[0]
    assert not status, status
    return answer[1] if len(answer) > 1 else None


def _compiled(nvrtc: Any, major: int, minor: int) -> bytes:
    """The kernel for this device.  Not PTX: the driver may be older than the compiler."""
    program = _checked(nvrtc.nvrtcCreateProgram(SOURCE, b"store.cu", 0, [], []))
    options = [f"--gpu-architecture=sm_{major}{minor}".encode()]
    _checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
    binary = bytearray(_checked(nvrtc.nvrtcGetCUBINSize(program)))
    _checked(nvrtc.nvrtcGetCUBIN(program, binary))
    return bytes(binary)


def _launch(cu: Any, nvrtc: Any, device: Any, address: int) -> None:
    """Start the store; whether it was allowed comes out at the next fence."""
    ctypes = import_module("ctypes")
    names = cu.CUdevice_attribute
    major, minor = (
        int(_checked(cu.cuDeviceGetAttribute(name, device)))
        for name in (
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    module = _checked(cu.cuModuleLoadData(_compiled(nvrtc, major, minor)))
    kernel = _checked(cu.cuModuleGetFunction(module, b"store"))
    arguments = ((address,), (ctypes.c_void_p,))
    _checked(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0))


def store_to(address: int) -> None:
    """Have a kernel write a word there, within the primary context."""
    cu: Any = import_module("cuda.bindings.driver")
    nvrtc: Any = import_module("cuda.bindings.nvrtc")
    device = _checked(cu.cuDeviceGet(0))
    _checked(cu.cuCtxPushCurrent(_checked(cu.cuDevicePrimaryCtxRetain(device))))
    try:
        _launch(cu, nvrtc, device, address)
    finally:
        _ = cu.cuCtxPopCurrent()


class LosesItOnce(Backend):
    """At the first fence of a real device in all processes, a kernel stores where it may not."""

    def __init__(self, driver: Driver, settings: Settings, limit_bytes: int) -> None:
        super().__init__(_AtTheFence(driver), settings, limit_bytes)


class _AtTheFence(Between):
    """The fence then answers what the kernel did; nothing else is changed."""

    def fence(self) -> Fault | None:
        device = _device(self.inner)
        if device is not None and _first():
            store_to(read_only(device))
        return super().fence()


def _device(driver: Any) -> CudaDriver | None:
    """The device at the bottom; None on a simulated driver, as in the search for planted bugs."""
    while hasattr(driver, "_inner"):
        driver = driver._inner
    return driver if isinstance(driver, CudaDriver) else None


def _first() -> bool:
    try:
        Path(os.environ["KVVMM_TEST_ONCE"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def read_only(driver: Any) -> int:
    """The address of a granule that may be read."""
    size_bytes = driver.granularity_bytes
    address = driver.address_reserve(size_bytes, 0)
    handle = driver.create(size_bytes)
    assert driver.map(address, size_bytes, handle) is None
    assert driver.set_access(address, size_bytes, Rights.READ) is None
    return int(address)


def lose_it_under_a_manager() -> None:
    """Runs in a process of its own."""
    driver = CudaDriver()
    unit = driver.granularity_bytes
    memory = VirtualMemory.open(driver="cuda", limit_bytes=8 * unit)
    # Nothing is closed: after this, nothing can be, and the process ends.
    cache = memory.reserve(4 * unit)
    _ = cache.commit(0, 2 * unit)
    before = memory.ledger
    store_to(read_only(driver))
    with pytest.raises(DriverError) as failed:
        _ = cache.release(0, unit)
    print(failed.value)
    with pytest.raises(DeviceLostError):
        _ = cache.release(0, unit)
    assert memory.ledger.charged == before.charged
    assert memory.ledger.mapped == before.mapped
    assert driver.query(cache.address) is not None  # D-19: the mapping is there, nobody touched it
    print("lost, and everything is charged")


def needs_a_compiler() -> None:
    try:
        nvrtc: Any = import_module("cuda.bindings.nvrtc")
        status, *_ = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        pytest.skip(f"no kernel can be compiled here, for want of nvrtc: {error}")
    assert not status


def _run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(__file__).parent), *(path for path in sys.path if path)])
    return subprocess.run(
        [sys.executable, "-P", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, **environment, "PYTHONPATH": paths},
    )


def test_manager_says_that_the_device_is_lost_and_keeps_everything_charged() -> None:
    needs_a_compiler()
    ended = _run("-c", "import test_lost_context as it; it.lose_it_under_a_manager()")
    assert "lost, and everything is charged" in ended.stdout, ended.stderr


def test_campaign_goes_on_in_a_new_worker(tmp_path: Path) -> None:
    needs_a_compiler()
    report = tmp_path / "report.json"
    ended = _run(
        *("-m", "kvvmm_cuda.cli.main", "soak", "--driver", "cuda", "--limit", "64MiB"),
        *("--subject", "test_lost_context:LosesItOnce", "--seed", "9", "--count", "600"),
        "--no-faults",  # a fault of that very fence would hide what the kernel did
        *("--report", str(report)),
        KVVMM_TEST_ONCE=str(tmp_path / "once"),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["worker"]["contexts_lost"] == 1
    assert found["operations"] >= 600
