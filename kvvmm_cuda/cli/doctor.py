"""``kvvmm doctor``: what is here, what would run, and what to do about the rest.

Imports nothing that may be missing, so that it can say what is.
"""

import importlib.metadata
import json
import platform
import re
import sys
from collections.abc import Callable
from typing import cast

from kvvmm_cuda.cli.version import version
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_cuda.drivers.selection import open_driver
from kvvmm_model.vocabulary import Driver, Fault

__all__ = ["NEEDED", "diagnose", "doctor", "in_lines"]

Json = dict[str, object]
OpenCuda = Callable[[int], CudaDriver]

NEEDED: dict[str, tuple[str, str, str]] = {
    "attrs": ("", ">=23.2", "everything"),
    "click": ("fuzz", ">=8.1", "the command"),
    "hypothesis": ("fuzz", ">=6.112", "the command"),
    "rich": ("fuzz", ">=13.7", "the command"),
    "cuda-bindings": ("cuda", ">=12.9,<14", "the CUDA driver"),
    "pytest": ("test", ">=9", "the tests"),
}
"""Packages: the extra that brings each, the versions that are needed, and by what."""

_ADDRESSES = tuple(1 << bits for bits in range(47, 37, -1))


def doctor(device: int = 0, *, as_data: bool = False, cuda: OpenCuda = CudaDriver) -> int:
    """Print the diagnosis; the exit code is 0 if at least the simulated driver works."""
    found = diagnose(device, cuda=cuda)
    print(json.dumps(found, indent=1) if as_data else "\n".join(in_lines(found)), flush=True)
    return 0 if found["works"] else 2


def diagnose(
    device: int = 0,
    *,
    cuda: OpenCuda = CudaDriver,
    sim: Callable[[], Driver] = lambda: open_driver("sim"),
) -> Json:
    """All of it as data.  ``cuda`` and ``sim`` open the drivers."""
    packages = {name: _package(name) for name in NEEDED}
    drivers = {"sim": _sim(sim), "cuda": _cuda(cuda, device)}
    return {
        "kvvmm": version(),
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "address_space_limit_bytes": _address_limit(),
        "drivers": drivers,
        "packages": packages,
        "runs": _runs(packages, drivers),
        "works": drivers["sim"]["available"],
    }


# --- the machine --------------------------------------------------------------------------------


def _address_limit() -> int | None:
    """What ``ulimit -v`` allows this process; None for no limit, or where nobody tells."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not everywhere

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _package(name: str) -> Json:
    extra, needed, for_what = NEEDED[name]
    try:
        there: str | None = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        there = None
    return {
        "version": there,
        "needed": needed,
        "extra": extra,
        "for": for_what,
        "fine": there is not None and _within(there, needed),
    }


def _within(there: str, needed: str) -> bool:
    """Whether a version is in a range of ``>=`` and ``<``; only its leading numbers count."""
    for bound in needed.split(","):
        least = bound.startswith(">=")
        if least != (_numbers(there) >= _numbers(bound.lstrip("<>="))):
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    return tuple([*numbers, 0, 0, 0][:3])


# --- drivers ------------------------------------------------------------------------------------


def _sim(open_sim: Callable[[], Driver]) -> Json:
    """Whether it does what a driver does, tried once."""
    driver = open_sim()
    size_bytes = driver.granularity_bytes
    address = driver.address_reserve(size_bytes, 0)
    if isinstance(address, Fault):
        return {"available": False, "why": f"it answered {address.name}"}
    fault = driver.address_free(address, size_bytes)
    if fault is not None:
        return {"available": False, "why": f"it answered {fault.name}"}
    return {"available": True, "granularity_bytes": size_bytes}


def _cuda(open_cuda: OpenCuda, device: int) -> Json:
    try:
        driver = open_cuda(device)
    except DriverUnavailable as error:
        return {"available": False, "why": str(error)}
    with driver:
        return {
            "available": True,
            "device": device,
            **driver.describe(),
            "granularity_bytes": driver.granularity_bytes,
            "total_bytes": driver.capacity_bytes,
            "free_bytes": _free(driver),
            "largest_reservation_bytes": _largest(driver),
        }


def _free(driver: CudaDriver) -> int | None:
    try:
        return driver.free_bytes()
    except RuntimeError:
        return None


def _largest(driver: CudaDriver) -> int | None:
    """The largest power of two for which there are addresses; none of them stays reserved."""
    for size_bytes in _ADDRESSES:
        address = driver.address_reserve(size_bytes, 0)
        if not isinstance(address, Fault):
            fault = driver.address_free(address, size_bytes)
            return size_bytes if fault is None else None
    return None


# --- what would run -----------------------------------------------------------------------------


def _runs(packages: dict[str, Json], drivers: dict[str, Json]) -> dict[str, Json]:
    return {
        "the command on the simulated driver": _what(packages, ("", "fuzz")),
        "the command on a GPU": _what(packages, ("", "fuzz", "cuda"), drivers["cuda"]),
        "the manager on a GPU": _what(packages, ("", "cuda"), drivers["cuda"]),
        "the tests": _what(packages, ("", "fuzz", "test")),
    }


def _what(packages: dict[str, Json], extras: tuple[str, ...], driver: Json | None = None) -> Json:
    """Whether something would run, and what to do if not."""
    wrong = [
        name for name, each in packages.items() if each["extra"] in extras and not each["fine"]
    ]
    wanted = sorted({str(packages[name]["extra"]) for name in wrong} - {""})
    todo = [f"python -m pip install 'kvvmm[{','.join(wanted)}]'"] if wanted else []
    if "attrs" in wrong:
        todo.append("python -m pip install 'attrs>=23.2'")
    if driver is not None and not driver["available"]:
        todo.append(str(driver["why"]))
    return {"runs": not todo, "todo": todo}


# --- for people ---------------------------------------------------------------------------------


def in_lines(found: Json) -> list[str]:
    """The diagnosis as lines."""
    system = f"{found['system']} {found['kernel']} on {found['machine']}"
    lines = [
        f"kvvmm {found['kvvmm']}, Python {found['python']}, {system}",
        f"addresses of a process: {_amount(found['address_space_limit_bytes'], 'not limited')}",
    ]
    for name, driver in _table(found["drivers"]):
        lines += ["", f"driver {name}: " + ("available" if driver["available"] else "not here")]
        lines += [f"  {key}: {_value(key, driver[key])}" for key in driver if key != "available"]
    lines += ["", "packages"]
    for name, each in _table(found["packages"]):
        there = each["version"] or "missing"
        verdict = "" if each["fine"] else f", NEEDED by {each['for']}"
        lines.append(f"  {name} {there} ({each['needed']}{verdict})")
    lines.append("")
    for name, each in _table(found["runs"]):
        lines.append(f"{name}: " + ("would run" if each["runs"] else "would not run"))
        lines += [f"  to do: {line}" for line in cast("list[str]", each["todo"])]
    return lines


def _table(value: object) -> list[tuple[str, Json]]:
    return list(cast("dict[str, Json]", value).items())


def _value(key: str, value: object) -> str:
    return _amount(value, "unknown") if key.endswith("_bytes") else str(value)


def _amount(size: object, otherwise: str) -> str:
    if not isinstance(size, int):
        return otherwise
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} bytes"
