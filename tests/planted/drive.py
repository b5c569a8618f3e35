"""Runs in a process of its own, on a copy of both packages: ``drive.py COPY swarm|examples ...``.

Prints what the swarm found, as JSON, or ends with ``PYTEST_ENDED`` and pytest's exit status.
"""

import json
import sys
from pathlib import Path
from time import monotonic

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.run import run, simulated
from kvvmm_model.conformance.swarm import Swarm

TESTS = Path(__file__).parents[1]
UNIT = 2 << 20
PYTEST_ENDED = 64
"""Added to pytest's exit status: Python itself ends with 1 where a copy cannot be imported."""


def insist_on(root: Path) -> None:
    """All of both packages comes from the copy, or this process has shown nothing."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in {"kvvmm_cuda", "kvvmm_model"}:
            file = module.__file__
            if file is None or not Path(file).is_relative_to(root):
                sys.exit(f"{name} comes from {file}, not from {root}")


def swarm(sequences: int, seconds: float) -> None:
    """The sequences of the seeds from 0 on."""
    operations = 0

    def count(_: Seen) -> None:
        nonlocal operations
        operations += 1

    found, seed, end = None, 0, monotonic() + seconds
    while found is None and seed < sequences and monotonic() < end:
        sequence = Swarm(seed, granularity_bytes=UNIT).sequence()
        seed += 1
        try:
            run(Comparison(Backend, simulated(sequence.world), sequence.world), sequence, count)
        except Divergence as divergence:
            found = str(divergence)
    _ = sys.stdout.write(json.dumps({"found": found, "sequences": seed, "operations": operations}))


def examples() -> int:
    """Every example test, up to the first that fails."""
    arguments = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--color=no")
    settings = str(TESTS.parent / "pyproject.toml")
    return PYTEST_ENDED + pytest.main([*arguments, "-c", settings, f"{TESTS}/examples"])


def main() -> int:
    """Carry out what the command line asks for."""
    root, what, *rest = sys.argv[1:]
    insist_on(Path(root))
    if what == "swarm":
        swarm(int(rest[0]), float(rest[1]))
        status = 0
    else:
        status = examples()
    insist_on(Path(root))
    return status


if __name__ == "__main__":
    sys.exit(main())
