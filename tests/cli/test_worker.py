"""Runs whose subject or driver takes its process with it."""

import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.command import kvvmm, nothing_left, report, start
from kvvmm_model.trace import load

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="looks for what is left in /proc"
)

SIM = ("--driver", "sim", "--worker", "--seed", "9", "--report", "out.json")
QUICK = (*SIM, "--patience", "1.5", "--trials", "0")


@pytest.fixture(autouse=True)
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A text that only the processes of this test have; none of them is left."""
    monkeypatch.chdir(tmp_path)
    once = str(tmp_path / "once")
    monkeypatch.setenv("KVVMM_TEST_ONCE", once)
    monkeypatch.setenv("KVVMM_TEST_MAPS", "25")
    yield once
    assert nothing_left(once)


def interrupted(found: Any) -> dict[str, Any]:
    """The only sequence that was, whose trace can be read."""
    (each,) = found["worker"]["interrupted"]
    sequence = load(Path(each["trace"]).read_text(encoding="utf-8"))
    assert len(sequence.steps) == len(each["sequence"])
    return dict(each)


# --- a worker without trouble -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["soak", "fuzz"])
def test_worker_reports_what_a_run_in_this_process_does(form: str) -> None:
    common = ("--driver=sim", "--seed=9", "--count=600", "--deterministic")
    inside = kvvmm(form, *common, "--report", "in.json", "--no-worker")
    outside = kvvmm(form, *common, "--report", "out.json", "--worker")
    assert (inside.exit_code, outside.exit_code) == (0, 0), outside.output
    assert outside.stdout.endswith(" canary=caught died=0 hung=0\n")
    one, other = report("in.json"), report("out.json")
    assert one.pop("worker") is None
    assert other.pop("worker") == {
        "restarts": 0,
        "died": 0,
        "hung": 0,
        "contexts_lost": 0,
        "gave_up": False,
        "interrupted": [],
    }
    assert one == other


def test_divergence_in_a_worker_exits_1_with_a_short_trace() -> None:
    result = kvvmm("soak", *SIM, "--subject", "cli.deadly:Wide", "--count", "9999")
    assert result.exit_code == 1, result.output
    found = report()
    assert found["diverged"] == 1
    assert len(load(Path(found["finding"]["trace"]).read_text(encoding="utf-8")).steps) < 12


def test_subject_that_is_not_there_exits_2() -> None:
    result = kvvmm("soak", *SIM, "--subject", "cli.deadly:Nobody")
    assert result.exit_code == 2
    assert "cli.deadly has no Nobody" in result.stderr


# --- a process that dies ------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["soak", "fuzz"])
def test_crash_is_counted_and_the_next_worker_goes_on(form: str) -> None:
    result = kvvmm(form, *QUICK, "--subject", "cli.deadly:CrashingOnce", "--count", "1000")
    assert result.exit_code == 3, result.output
    assert result.stdout.endswith(" died=1 hung=0\n")
    found = report()
    assert found["operations"] >= 1000
    assert found["worker"]["restarts"] == 1
    assert interrupted(found)["how"] == "SIGSEGV"


def test_crash_that_repeats_is_cut_down_and_ends_the_run_early() -> None:
    result = kvvmm(
        "soak",
        *SIM,
        *("--subject", "cli.deadly:Crashing"),
        *("--count", "99999", "--restarts", "0", "--no-faults", "--trials", "20"),
    )
    assert result.exit_code == 3, result.output
    found = report()
    assert found["worker"]["gave_up"]
    each = interrupted(found)
    assert each["again"]
    assert len(each["sequence"]) == 3 < each["steps"]
    assert all("commit" in line for line in each["sequence"])
    assert "ENDED EARLY" in result.stdout


def test_exit_code_of_a_process_that_leaves_a_child_behind() -> None:
    result = kvvmm("soak", *QUICK, "--subject", "cli.deadly:Leaving", "--count", "500")
    assert result.exit_code == 3, result.output
    assert interrupted(report())["how"] == "exit code 7"


# --- a process that hangs -----------------------------------------------------------------------


def test_hung_subject_is_killed_and_the_next_worker_goes_on() -> None:
    result = kvvmm("soak", *QUICK, "--subject", "cli.deadly:Hanging", "--count", "500")
    assert result.exit_code == 3, result.output
    assert result.stdout.endswith(" died=0 hung=1\n")
    found = report()
    assert found["operations"] >= 500
    assert (interrupted(found)["how"], interrupted(found)["call"]) == ("hung", None)


def test_hung_driver_call_is_named() -> None:
    result = kvvmm("soak", *QUICK, "--driver", "cli.deadly:stuck", "--count", "500")
    assert result.exit_code == 3, result.output
    assert interrupted(report())["call"] == "unmap"
    assert "THE PROCESS hung in unmap" in result.stdout


# --- a context that is lost ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["soak", "fuzz"])
def test_lost_context_ends_a_worker_and_not_the_run(form: str) -> None:
    sticky = ("--driver", "cli.deadly:sticky", "--restarts", "20")
    result = kvvmm(form, *QUICK, *sticky, "--count", "3000")
    assert result.exit_code == 0, result.output
    found = report()
    assert found["operations"] >= 3000
    assert found["void"] == ""
    worker = found["worker"]
    assert 1 <= worker["restarts"] <= worker["contexts_lost"]
    assert (worker["died"], worker["hung"], worker["interrupted"]) == (0, 0, [])


def test_contexts_lost_more_often_than_workers_may_be_replaced_exit_3() -> None:
    result = kvvmm("soak", *QUICK, "--driver=cli.deadly:sticky", "--count=9999", "--restarts=0")
    assert result.exit_code == 3, result.output
    worker = report()["worker"]
    assert (worker["contexts_lost"], worker["gave_up"]) == (1, True)


# --- ends from outside --------------------------------------------------------------------------


def wait_for(place: str) -> None:
    for _ in range(200):
        if Path(place).exists():
            time.sleep(0.2)
            return
        time.sleep(0.1)
    pytest.fail("the subject did not come so far")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ((signal.SIGINT, signal.SIGINT), 130),
        ((signal.SIGTERM,), 143),
        ((signal.SIGKILL,), -signal.SIGKILL),
    ],
)
def test_end_of_the_command_is_the_end_of_a_stubborn_worker(
    sent: tuple[signal.Signals, ...], code: int, marker: str
) -> None:
    stubborn = ("--subject", "cli.deadly:Stubborn", "--patience", "60")
    process = start("soak", *SIM, *stubborn)
    wait_for(marker)
    for number in sent:
        process.send_signal(number)
        time.sleep(0.3)
    out, err = process.communicate(timeout=10)
    assert process.returncode == code, err
    if code == 130:
        assert re.search(r"died=0 hung=0 interrupted=1$", out.strip()), out
    assert "Traceback" not in err


def test_interrupt_ends_a_willing_worker_after_its_sequence() -> None:
    process = start("soak", *SIM, "--seconds", "60")
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 130, err
    assert re.search(r"ops=[1-9]\d* .*died=0 hung=0 interrupted=1$", out.strip()), out
