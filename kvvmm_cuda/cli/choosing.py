"""What the options of the command mean: sizes, and which driver."""

import re

import click
from attrs import frozen

from kvvmm_cuda.cli.naming import named
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_cuda.drivers.selection import open_driver
from kvvmm_model.conformance.run import OpenDriver, simulated
from kvvmm_model.vocabulary import Driver

__all__ = ["Chosen", "choose", "size"]

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """An option's size in bytes, as ``64MiB`` or ``67108864``."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,30}) ?([KMGT]iB|B|)", value.strip())
    if found is None:
        raise click.BadParameter(
            f"{value!r} is no size: give bytes, or a whole number with KiB, MiB, GiB or TiB,"
            " as 64MiB",
            context,
            parameter,
        )
    return int(found[1]) * _UNITS[found[2]]


@frozen
class Chosen:
    """A driver, by what it is called and why it was taken.

    ``device`` is the real one, if there is; all sequences share it.
    """

    name: str
    why: str
    granularity_bytes: int
    open_driver: OpenDriver
    device: CudaDriver | None = None

    def free_bytes(self) -> int | None:
        """Free memory of the device; None where there is no device, or it does not answer."""
        if self.device is None:
            return None
        try:
            return self.device.free_bytes()
        except RuntimeError:
            return None

    def close(self) -> None:
        """Give the device back."""
        if self.device is not None:
            self.device.close()


def choose(name: str, number: int) -> Chosen:
    """A driver by its name; ``auto`` is the device where there is one.

    ``module:attribute`` names a function that opens one for a world.

    Raises:
        DriverUnavailable: ``cuda`` was asked for and cannot be had.
        NotFound: there is no such module or attribute.
    """
    if ":" in name:
        return Chosen(name, "as given", open_driver("sim").granularity_bytes, named(name))
    if name == "sim":
        return _simulated("simulated, as asked")
    try:
        driver = open_driver("cuda", number)
    except DriverUnavailable as reason:
        if name == "cuda":
            raise
        return _simulated(f"no CUDA driver here: simulated ({reason})")
    assert isinstance(driver, CudaDriver)
    return _real(driver, f"device {number}, {driver.describe()['gpu']}")


def _simulated(why: str) -> Chosen:
    return Chosen("sim", why, open_driver("sim").granularity_bytes, simulated)


def _real(driver: CudaDriver, why: str) -> Chosen:
    def again(world: object) -> Driver:
        _ = world  # the device's memory is what it is
        return driver

    return Chosen("cuda", why, driver.granularity_bytes, again, driver)
