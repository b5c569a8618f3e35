"""The plugin, in test runs of its own."""

import subprocess
import sys

import pytest

from kvvmm_cuda import faults
from kvvmm_cuda.errors import DeviceLostError, DriverError, QuarantinedError
from kvvmm_cuda.pytest_plugin import Faulty
from kvvmm_model import faulting
from kvvmm_model.language import LanguageError

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "kvvmm_cuda.pytest_plugin", "-p", "no:cacheprovider", "-W", "error")


def run(pytester: pytest.Pytester, body: str) -> pytest.RunResult:
    _ = pytester.makepyfile(f"import pytest\nfrom kvvmm_cuda.errors import *\n{body}")
    return pytester.runpytest_inprocess(*PLUGIN)


# --- in a test run ------------------------------------------------------------------------------


def test_manager_fails_as_planned(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(kvvmm_faulty):
    faulty = kvvmm_faulty(limit=16)
    cache = faulty.memory.reserve(4 * faulty.granule)
    faulty.plan("fault set_access part=2 OUT_OF_MEMORY; fault unmap")
    with pytest.raises(DriverError):
        cache.commit(0, 4 * faulty.granule)
    assert faulty.all_fired and len(faulty.fired) == 2
    assert faulty.memory.ledger.charged == 1
    faulty.plan("")
    cache.commit(0, 2 * faulty.granule)
""",
    )
    result.assert_outcomes(passed=1)


def test_all_managers_are_closed_and_hold_nothing(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
made = []

def test_leaves_much(kvvmm_faulty):
    for faults in ("fault unmap effect; fault query", "fault release", "fault map effect"):
        faulty = kvvmm_faulty(policy="run", retention=2)
        made.append(faulty)
        cache = faulty.memory.reserve(4 * faulty.granule)
        cache.commit(0, 4 * faulty.granule)
        faulty.plan(faults)
        try:
            cache.release(0, 4 * faulty.granule)
        except DriverError:
            pass

def test_after_it():
    assert [faulty.device.physical_bytes() for faulty in made] == [0, 0, 0]
    assert [dict(faulty.device.live_ranges()) for faulty in made] == [{}, {}, {}]
    assert all(faulty.memory._core.closed for faulty in made)
""",
    )
    result.assert_outcomes(passed=2)


def test_lost_device_ends_quietly(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(kvvmm_faulty):
    faulty = kvvmm_faulty()
    cache = faulty.memory.reserve(1)
    faulty.plan("fault map ILLEGAL_ADDRESS")
    with pytest.raises(DriverError):
        cache.commit(0, 1)
    with pytest.raises(DeviceLostError):
        cache.commit(0, 1)
""",
    )
    result.assert_outcomes(passed=1)


def test_failing_test_is_told_as_such_and_nothing_else(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(kvvmm_faulty):
    faulty = kvvmm_faulty()
    faulty.memory.reserve(1)
    assert faulty.memory.ledger.charged == 1
""",
    )
    result.assert_outcomes(failed=1)


def test_run_without_the_fixture_loads_no_language(pytester: pytest.Pytester) -> None:
    _ = pytester.makepyfile("def test_it():\n    pass\n")
    program = (
        "import sys, pytest\n"
        f"code = pytest.main(['-q', *{PLUGIN!r}])\n"
        "loaded = [n for n in sys.modules if n.startswith('kvvmm_model.')]\n"
        "heavy = [n for n in loaded if '.conformance' in n or '.language' in n or '.ops' in n]\n"
        "foreign = [n for n in ('click', 'rich', 'cuda') if n in sys.modules]\n"
        "sys.exit(f'{heavy} {foreign}' if heavy or foreign else code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- by itself ----------------------------------------------------------------------------------


def test_fired_and_driver_belong_to_the_last_plan() -> None:
    faulty = Faulty()
    plan = faulty.plan("fault create 2")
    cache = faulty.memory.reserve(2 * faulty.granule)
    _ = cache.commit(0, faulty.granule)
    assert faulty.fired == ()
    assert not faulty.all_fired
    with pytest.raises(DriverError):
        _ = cache.commit(0, 2 * faulty.granule)
    assert faulty.fired == plan.specs == faulty.driver.fired
    assert faulty.plan("") == faults.FaultPlan()
    assert faulty.fired == ()
    faulty.close()
    faulty.close()


def test_quarantine_is_seen_from_outside() -> None:
    faulty = Faulty()
    cache = faulty.memory.reserve(faulty.granule)
    _ = cache.commit(0, 1)
    _ = faulty.plan("fault unmap; fault query")
    with pytest.raises(DriverError):
        _ = cache.release(0, faulty.granule)
    with pytest.raises(QuarantinedError):
        _ = cache.commit(0, 1)
    assert faulty.device.physical_bytes() == faulty.granule
    faulty.close()
    assert faulty.device.physical_bytes() == 0


def test_lost_device_stays_lost() -> None:
    faulty = Faulty()
    _ = faulty.plan("fault address_reserve LAUNCH_FAILED")
    for kind in (DriverError, DeviceLostError):
        with pytest.raises(kind):
            _ = faulty.memory.reserve(1)
    faulty.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("commit 0..4", "only faults can be planned"),
        ("fault everything", "there is no such call"),
        ("fault map SOMETIMES", "this is no code"),
    ],
)
def test_bad_plan_is_pointed_at(text: str, said: str) -> None:
    faulty = Faulty()
    with pytest.raises(LanguageError, match=said):
        _ = faulty.plan(text)
    faulty.close()


@pytest.mark.parametrize("name", faults.__all__)
def test_faults_are_public(name: str) -> None:
    assert getattr(faults, name) is getattr(faulting, name)
