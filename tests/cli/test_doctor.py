"""The diagnosis, where there is a device and where there is none; without anything installed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Self, cast

import pytest

import kvvmm_cuda
from cli.command import kvvmm
from kvvmm_cuda.cli import doctor as module
from kvvmm_cuda.cli.doctor import NEEDED, diagnose, doctor, in_lines
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.vocabulary import Driver, Fault, Step

ROOT = Path(__file__).parents[2]
UNIT = 2 << 20


class Fake(DriverModel):
    """As much of a device as is asked for."""

    def __init__(self) -> None:
        super().__init__(granularity_bytes=UNIT, capacity_bytes=64 << 30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def describe(self) -> dict[str, str]:
        return {"gpu": "A GPU", "uuid": "GPU-1", "cuda_version": "13.0", "driver_version": "600"}

    def free_bytes(self) -> int:
        return 3 << 30


class Silent(DriverModel):
    """A simulated driver that does not work."""

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        _ = size_bytes, alignment_bytes
        return Fault(Step.ADDRESS_RESERVE, 2)


def there(device: int) -> CudaDriver:
    _ = device
    return cast("CudaDriver", Fake())


def not_there(device: int) -> CudaDriver:
    raise DriverUnavailable(f"there is no device {device}: plug one in")


def broken() -> Driver:
    return Silent(granularity_bytes=UNIT)


def test_device_is_described() -> None:
    found: Any = diagnose(cuda=there)
    cuda = found["drivers"]["cuda"]
    assert (cuda["available"], cuda["gpu"], cuda["free_bytes"]) == (True, "A GPU", 3 << 30)
    assert cuda["largest_reservation_bytes"] >= 1 << 40
    assert found["works"]
    text = "\n".join(in_lines(found))
    assert "gpu: A GPU" in text
    assert "free_bytes: 3 GiB" in text


def test_no_device_says_what_to_do_and_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(3, as_data=True, cuda=not_there) == 0
    found: Any = json.loads(capsys.readouterr().out)
    assert found["drivers"]["cuda"]["why"] == "there is no device 3: plug one in"
    gpu = found["runs"]["the command on a GPU"]
    assert (gpu["runs"], gpu["todo"][-1]) == (False, "there is no device 3: plug one in")
    assert found["runs"]["the command on the simulated driver"]["runs"]


def test_nothing_that_works_exits_2(monkeypatch: pytest.MonkeyPatch) -> None:
    found = diagnose(cuda=not_there, sim=broken)
    assert not found["works"]

    def diagnosed(device: int, *, cuda: object) -> dict[str, object]:
        _ = device, cuda
        return found

    monkeypatch.setattr(module, "diagnose", diagnosed)
    assert doctor() == 2


def test_package_that_is_too_old_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDED, "rich", ("fuzz", ">=999", "the command"))
    found: Any = diagnose(cuda=there)
    assert not found["packages"]["rich"]["fine"]
    assert found["runs"]["the command on the simulated driver"]["todo"] == [
        "python -m pip install 'kvvmm[fuzz]'"
    ]
    assert "NEEDED by the command" in "\n".join(in_lines(found))


@pytest.mark.parametrize(
    ("there", "needed", "fine"),
    [("13.0.1", ">=12.9,<14", True), ("14.0", ">=12.9,<14", False), ("9.0rc1", ">=9", True)],
)
def test_versions_are_compared_by_their_numbers(there: str, needed: str, *, fine: bool) -> None:
    assert module._within(there, needed) is fine


def test_needed_versions_are_those_of_the_package() -> None:
    project: Any = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    for name, (extra, needed, _) in NEEDED.items():
        listed = extras[extra] if extra else project["dependencies"]
        # What is imported is the bindings, which the package of the extra pins to its own version.
        package = "cuda-python" if name == "cuda-bindings" else name
        assert any(each.split(";")[0].strip() == package + needed for each in listed), name


def test_command_prints_the_diagnosis() -> None:
    result = kvvmm("doctor", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["drivers"]["sim"]["available"]


def test_without_the_tools_of_the_command_it_runs_all_the_same(tmp_path: Path) -> None:
    for name in ("click", "rich", "hypothesis"):
        text = f"raise ModuleNotFoundError('no {name}', name='{name}')\n"
        _ = (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    root = Path(kvvmm_cuda.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kvvmm_cuda.cli.main", "doctor"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
    )
    assert done.returncode == 0, done.stderr
    assert "driver sim: available" in done.stdout
