"""Runs in a process of its own, on a copy of both packages: ``run_examples.py COPY``.

Ends with ``PYTEST_ENDED`` and pytest's exit status.
"""

import sys
from pathlib import Path

import pytest

from planted.copied import insist_on

TESTS = Path(__file__).parents[1]
PYTEST_ENDED = 64
"""Added to pytest's exit status: Python itself ends with 1 where a copy cannot be imported."""


def examples() -> int:
    """Every example test, up to the first that fails."""
    arguments = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--color=no")
    settings = str(TESTS.parent / "pyproject.toml")
    return PYTEST_ENDED + pytest.main([*arguments, "-c", settings, f"{TESTS}/examples"])


def main() -> int:
    """Run them, on the copy that the command line names."""
    status = examples()
    insist_on(Path(sys.argv[1]))
    return status


if __name__ == "__main__":
    sys.exit(main())
