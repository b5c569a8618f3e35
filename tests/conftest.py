"""Settings and fixtures of all tests."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from support.bench import Bench, MakeBench, Side
from support.gpu import UNAVAILABLE

if pytest.version_tuple < (9,):
    # An older pytest does not know the table in pyproject.toml: it would run without our options,
    # turn no warning into an error, and say nothing.
    raise pytest.UsageError(f"pytest {pytest.__version__} is too old: install pytest 9 or later")

# ci: the same examples every time.  dev: new ones, failures remembered.  fuzz: many of them.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
settings.register_profile("dev", deadline=None)
settings.register_profile(
    "fuzz",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("KVVMM_HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """One line that cannot be mistaken for a pass: which GPU tests did not run, and why."""
    reports = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report, pytest.TestReport) and "gpu" in report.keywords
    ]
    reason = config.stash.get(UNAVAILABLE, None)
    if reason is None:  # under xdist the workers collect, and tell only by their reports
        reason = next((str(r.longrepr[2]) for r in reports if isinstance(r.longrepr, tuple)), None)
    if reason is None:
        return
    files = Counter(report.nodeid.partition("::")[0] for report in reports)
    which = ", ".join(f"{number} in {name}" for name, number in sorted(files.items()))
    reason = reason.removeprefix("Skipped: ")
    terminalreporter.write_line(
        f"GPU tests not run ({which or 'none chosen'}): {reason}", yellow=True
    )


@pytest.fixture(params=list(Side), ids=lambda side: side.value)
def make_bench(request: pytest.FixtureRequest) -> MakeBench:
    """Makes benches, of the model in one run of the test and of the backend in another."""
    side: Side = request.param
    return MakeBench(side)


@pytest.fixture
def bench(make_bench: MakeBench) -> Bench:
    """A bench with the settings that most tests do not care about: no pool, ample memory."""
    return make_bench()
