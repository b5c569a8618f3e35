"""A pytest plugin: refuse to test the checkout in place of the installed wheel."""

from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Stop unless both packages come from outside the checkout; workers ask too."""
    for name in ("kvvmm_model", "kvvmm_cuda"):
        spec = find_spec(name)
        origin = None if spec is None else spec.origin
        if origin is None or Path(origin).is_relative_to(config.rootpath):
            raise pytest.UsageError(f"{name} comes from {origin}, not from the installed wheel")
