"""``kvvmm replay``: plain, by hand, and as a test."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kvvmm_cuda.cli.commands import kvvmm
from kvvmm_cuda.cli.drawing import state_text
from kvvmm_cuda.cli.replaying import as_test, replay
from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.canary import Canary, canaries
from kvvmm_model.conformance.comparison import Divergence
from kvvmm_model.conformance.run import fails, simulated
from kvvmm_model.conformance.subject import Subject
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.language import parse
from kvvmm_model.machine import Operation, apply
from kvvmm_model.state import State, initial
from kvvmm_model.trace import Trace, dump, with_retries
from kvvmm_model.vocabulary import Done, Driver, Outcome, Refusal, Settings, refused

SCRIPT = "reserve 8; commit 0..4; fault unmap effect; fault query lasting; release 0..2; close"
VERSION_1 = Path(__file__).parents[1] / "model" / "trace_version_1.json"


def canary(name: str) -> Canary:
    return next(each for each in canaries(faults=True) if name in each.name)


def too_many(driver: Driver, settings: Settings, limit_bytes: int) -> Subject:
    return canary("too many").plant(Backend)(driver, settings, limit_bytes)


def ignores(driver: Driver, settings: Settings, limit_bytes: int) -> Subject:
    return canary("ignores a fault").plant(Backend)(driver, settings, limit_bytes)


class Sulks(Backend):
    """After a failed commit, refuses the same again."""

    sulking = False

    def apply(self, operation: Operation) -> Outcome:
        if self.sulking:
            return refused(Refusal.RANGE)
        outcome = super().apply(operation)
        self.sulking = not isinstance(outcome, Done)
        return outcome


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return written(tmp_path, SCRIPT)


def written(folder: Path, script: str, finding: str = "what was found") -> Path:
    path = folder / "it.json"
    _ = path.write_text(dump(parse(script).sequence, finding), encoding="utf-8")
    return path


def replayed(trace: Path, *arguments: str, keys: str | None = None) -> Result:
    return CliRunner().invoke(replay, [str(trace), "--driver=sim", *arguments], input=keys)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])


# --- plain --------------------------------------------------------------------------------------


def test_every_step_is_told_and_agreement_exits_0(trace: Path) -> None:
    result = replayed(trace)
    assert result.exit_code == 0, result.output
    for line in (
        "2  fault unmap UNKNOWN effect",
        "   release r1 0..2",
        "   change  r1 0..2: committed -> quarantined, rights RW (handle1 to handle2)",
        "reclaim  (clearing up)",
        "no divergence",
    ):
        assert line in result.stdout


def test_divergence_exits_1_and_says_where(trace: Path) -> None:
    result = replayed(trace, "--subject=test_replay:too_many", "--plain")
    assert result.exit_code == 1
    assert "   PARTED  manager and model, over calls" in result.stdout
    assert "DIVERGED at step 1: calls" in result.stdout
    assert "create(1g) -> handle5" in result.stdout


def test_trace_of_the_first_version_is_replayed() -> None:
    result = replayed(VERSION_1)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"kvvmm_trace": 7}', "this is version 7"), ("\xff", "not JSON")],
)
def test_what_is_no_trace_exits_2(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "it.json"
    _ = path.write_text(text, encoding="utf-8")
    result = replayed(path)
    assert result.exit_code == 2
    assert said in result.stderr


def test_command_is_registered(trace: Path) -> None:
    result = CliRunner().invoke(kvvmm, ["replay", str(trace), "--driver", "sim"])
    assert result.exit_code == 0, result.output


# --- by hand ------------------------------------------------------------------------------------


def walked(trace: Path, *keys: str, subject: str = "kvvmm_cuda.subject:Backend") -> Result:
    given = "".join(f"{key}\n" for key in keys)
    return replayed(trace, "--interactive", f"--subject={subject}", keys=given)


def test_walk_begins_with_the_world_and_the_finding(trace: Path) -> None:
    result = walked(trace, "q")
    assert result.exit_code == 0
    assert "world granularity=2MiB" in result.stdout
    assert "what was found" in result.stdout
    assert "n(ext)" in result.stdout
    assert "reserve 8" not in result.stdout


def test_next_and_empty_lines_go_on_to_the_end(trace: Path) -> None:
    result = walked(trace, "n", "", "next", "n", *["n"] * 9)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("close r1") == 1
    assert "that was the last step" in result.stdout


def test_back_shows_the_step_before_with_the_same_names(trace: Path) -> None:
    result = walked(trace, "g 2", "b", "b", "b")
    shown = result.stdout
    assert shown.index("release r1 0..2") < shown.index("commit r1 0..4") < shown.index("reserve 8")
    assert "map(range1, 1g, handle1)" in shown
    assert "before the first step" in shown


def test_goto_a_step_that_is_not_there_ends_at_the_last(trace: Path) -> None:
    result = walked(trace, "g 99", "g2", "g", "g x")
    assert "there is no such step" in result.stdout
    assert "release r1 0..2" in result.stdout
    assert result.stdout.count("q(uit)") == 3


def test_list_marks_where_one_stands(trace: Path) -> None:
    result = walked(trace, "g 1", "l", "g 6", "l")
    assert (
        "> 1  commit r1 0..4\n  2  fault unmap UNKNOWN effect; fault query UNKNOWN lasting"
        in result.stdout
    )
    assert "> 6  (clearing up)" in result.stdout


def test_state_is_drawn(trace: Path) -> None:
    result = walked(trace, "s", "g 2", "s")
    assert "no reservations" in result.stdout
    assert "r1: open, 8 windows\n       0 ??##....\nlegend:" in result.stdout
    assert "ledger: limit 64, charged 4, owned 4, mapped 4, free 60" in result.stdout


def test_walk_over_a_divergence_exits_1(trace: Path) -> None:
    result = walked(trace, "g 1", "n", "b", "q", subject="test_replay:too_many")
    assert result.exit_code == 1
    assert "PARTED" in result.stdout


# --- the drawing --------------------------------------------------------------------------------


def state_after(script: str) -> tuple[State, str]:
    sequence = parse(script).sequence
    world = sequence.world
    unit = world.settings.granularity_bytes
    driver = DriverModel(granularity_bytes=unit, capacity_bytes=world.capacity * unit)
    state = initial(world.settings, world.limit)
    for step in sequence.steps:
        state = apply(state, step.operation, driver).state
    return state, state_text(state, world)


def test_long_handles_and_long_ranges_are_drawn_briefly() -> None:
    _, text = state_after("world policy=run; reserve 100000; commit 64..69; commit 99999..100000")
    assert "      64 #===#" + "." * 59 in text
    assert "   99968 " + "." * 31 + "#" in text
    assert "(1560 lines more of reserved windows)" in text
    assert len(text.splitlines()) < 10


def test_pool_is_drawn() -> None:
    _, text = state_after("world retention=2; reserve 4; commit 0..2; release 0..2")
    assert "pool, oldest first: handle1, handle2" in text


# --- as a test ----------------------------------------------------------------------------------


def executed(source: str) -> Divergence | None:
    names: dict[str, object] = {}
    exec(compile(source, "printed", "exec"), names)  # noqa: S102 - what was printed is run
    test = names["test_manager_and_model_agree"]
    assert callable(test)
    try:
        _ = test()
    except Divergence as divergence:
        return divergence
    return None


@pytest.mark.parametrize(
    ("subject", "script"),
    [
        ("too_many", SCRIPT),
        ("ignores", "reserve 2; fault set_access; commit 0..1"),
        ("Sulks", "reserve 2; fault map; commit 0..1; commit 0..1"),
    ],
)
def test_printed_test_shows_the_finding(tmp_path: Path, subject: str, script: str) -> None:
    path = f"test_replay:{subject}"
    result = replayed(written(tmp_path, script), "--as-test", f"--subject={path}")
    assert result.exit_code == 0
    found = executed(result.stdout)
    expected = fails(globals()[subject], simulated, with_retries(parse(script).sequence))
    assert found is not None
    assert expected is not None
    assert (found.kind, found.number) == (expected.kind, expected.number)
    assert (
        executed(
            result.stdout.replace(f"from test_replay import {subject}\n", "")
            .replace(f"Comparison({subject},", "Comparison(Backend,")
            .replace(
                "\nfrom kvvmm_model",
                "\nfrom kvvmm_cuda.subject import Backend\nfrom kvvmm_model",
                1,
            )
        )
        is None
    )


def test_printed_test_is_one_that_pytest_runs(tmp_path: Path, trace: Path) -> None:
    _ = (tmp_path / "test_it.py").write_text(replayed(trace, "--as-test").stdout, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_it.py", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_printed_test_takes_any_finding_and_any_argument() -> None:
    strange = 'it said """no""" \\ and\nmore ' + "x" * 200
    script = 'reserve "a\\b"; reserve "\'"; reserve ""'
    source = as_test(Trace(parse(script).sequence, strange))
    assert executed(source) is None
    assert max(map(len, source.splitlines())) <= 220
