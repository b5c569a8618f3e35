"""Opening a driver by its name."""

import logging

from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.cuda import CudaDriver
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.vocabulary import Driver

__all__ = ["NAMES", "open_driver"]

NAMES = ("auto", "cuda", "sim")
"""``cuda``: the device; ``sim``: the simulated driver; ``auto``: the device where there is one."""

_SIM_GRANULARITY_BYTES = 2 << 20
_SIM_CAPACITY_BYTES = 64 << 30

_log = logging.getLogger("kvvmm")


def open_driver(
    name: str = "auto",
    device: int = 0,
    *,
    granularity_bytes: int | None = None,
    capacity_bytes: int | None = None,
) -> Driver:
    """A driver by its name, one of ``NAMES``.

    ``granularity_bytes`` and ``capacity_bytes`` are the simulated driver's; a device has its own.

    Raises:
        DriverUnavailable: ``cuda`` was asked for and cannot be had.
        ValueError: the name is none of ``NAMES``.
    """
    if name not in NAMES:
        raise ValueError(f"no driver is called {name!r}; there are {', '.join(NAMES)}")
    if name != "sim":
        try:
            driver = CudaDriver(device)
        except DriverUnavailable as reason:
            if name == "cuda":
                raise
            _log.info("driver: sim, since there is no CUDA here: %s", reason)
        else:
            _log.info("driver: cuda, device %d", device)
            return driver
    return DriverModel(
        granularity_bytes=_SIM_GRANULARITY_BYTES
        if granularity_bytes is None
        else granularity_bytes,
        capacity_bytes=_SIM_CAPACITY_BYTES if capacity_bytes is None else capacity_bytes,
    )
