"""GPU tests: skipped, and said so in the summary, where there is no device."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.cuda import CudaDriver

from support.gpu import UNAVAILABLE

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here, and skip it where no driver can be opened."""
    here = [item for item in items if HERE in item.path.parents]
    if not here:
        return
    try:
        CudaDriver().close()
    except DriverUnavailable as reason:
        config.stash[UNAVAILABLE] = str(reason)
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if UNAVAILABLE in config.stash:
            item.add_marker(pytest.mark.skip(reason=config.stash[UNAVAILABLE]))


@pytest.fixture
def driver() -> Iterator[CudaDriver]:
    with CudaDriver() as opened:
        yield opened
