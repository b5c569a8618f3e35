"""``kvvmm try``: what it prints, what it exits with, and the page of worked examples."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kvvmm_cuda.cli.commands import kvvmm
from kvvmm_cuda.cli.page import commands, rewritten
from kvvmm_cuda.cli.trying import attempt
from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.canary import canaries
from kvvmm_model.conformance.subject import MakeSubject, Subject
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.sequence import World
from kvvmm_model.vocabulary import Driver, Settings

PAGE = Path(__file__).parents[2] / "spec" / "fault_lab.md"
UNFIT = next(each for each in canaries(faults=True) if "ignores a fault" in each.name)
BUGGY: MakeSubject = UNFIT.plant(Backend)


def buggy(driver: Driver, settings: Settings, limit_bytes: int) -> Subject:
    return BUGGY(driver, settings, limit_bytes)


def attempted(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(attempt, arguments, input=given)


def told(script: str) -> str:
    result = attempted(script)
    assert result.exit_code == 0, result.output
    return result.stdout


def data(script: str) -> Any:
    result = attempted(script, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# --- what is told -------------------------------------------------------------------------------


def test_every_part_of_a_step_is_told() -> None:
    text = told("reserve 4; fault set_access part=2 OUT_OF_MEMORY; fault unmap; commit 0..4")
    for line in (
        "1  fault set_access OUT_OF_MEMORY part=2",
        "   fault unmap UNKNOWN",
        "   commit r1 0..4",
        "set_access(range1, 4g, RW) -> OUT_OF_MEMORY   [planned: done for the first 2 mappings]",
        "unmap(range1+3g, 1g) -> UNKNOWN   [planned: nothing was done]",
        "   result  failed: set_access: OUT_OF_MEMORY, then unmap: UNKNOWN",
        "   change  r1 3..4: reserved -> quarantined, rights UNKNOWN (handle4)",
        "   ledger  charged 0 -> 1, owned 0 -> 1, mapped 0 -> 1, free 64 -> 63",
        "   end     closed, trimmed, reclaimed: nothing is left",
        "   verdict manager and model agree",
    ):
        assert line in text


def test_names_of_ranges_and_handles_last_through_the_script() -> None:
    text = told("reserve 2; commit 0..1; release 0..1; reserve 2; commit r2 0..1; commit r1 0..1")
    assert "map(range2, 1g, handle2)" in text
    assert "map(range1, 1g, handle3)" in text


def test_plain_output_has_no_colours() -> None:
    assert "\x1b" not in told("reserve 4; fault unmap; commit 0..4")


def test_fault_that_meets_no_call_is_named_with_the_calls_there_were() -> None:
    text = told("reserve 2; fault create 3; fault unmap; commit 0..2")
    assert "   unmet   fault create 3 UNKNOWN: create was called twice" not in text
    assert "   unmet   fault create 3 UNKNOWN: create was called 2 times" in text
    assert "           fault unmap UNKNOWN: unmap was never called" in text


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("commit 0..2", "done: 2 windows backed anew"),
        ("commit 0..1; release 0..1", "done: 1 window unmapped"),
        ("world policy=run; reserve 2; commit 0..2; commit r1 0..1", "done: 0 windows"),
        ("commit 0..1; trim 0", "done: 0 granules given back"),
        ("reclaim", "done: 0 mappings confirmed gone"),
        ("set_limit 3", "limit 64 -> 3"),
        ("close", "range1: open -> gone"),
        ("close; close", "refused: STALE"),
        ("fault create OUT_OF_MEMORY; commit 0..1", "OUT_OF_MEMORY; nothing is different"),
        ("fault create effect; commit 0..1", "still in doubt: unattributed 1"),
        ("fault fence; commit 0..1; fault fence; close; close", "refused: STALE"),
    ],
)
def test_outcome_is_told_in_words(script: str, said: str) -> None:
    assert said in told(script if "reserve" in script else f"reserve 4; {script}")


def test_close_says_which_windows_stay_in_quarantine() -> None:
    text = told(
        "reserve 4; commit 0..1; fault unmap; fault query; release 0..1;fault query lasting; close"
    )
    assert "what was quarantined stays: windows (0,)" in text
    assert "range1: open -> closed" in text


def test_straddling_handle_is_told_of() -> None:
    text = told("world policy=run; reserve 5; commit 0..5; release 1..5")
    assert "1 window unmapped; kept: 1, 2, 3" in text


# --- what is expected ---------------------------------------------------------------------------


def test_expectation_that_holds_exits_0() -> None:
    text = told("reserve 2; commit 0..2; expect done 2; expect charged 2")
    assert "   expect  done 2: yes" in text
    assert "2 of 2 expectations hold" in text


def test_expectation_that_does_not_hold_exits_1_and_says_what_is() -> None:
    result = attempted("reserve 2; commit 0..2; expect charged 1; commit 0..2; expect done 0")
    assert result.exit_code == 1
    assert "charged 1: NO, charged is 2" in result.stdout
    assert "manager and model agree; 1 of 2 expectations hold" in result.stdout


# --- a manager that is wrong --------------------------------------------------------------------


def test_divergence_exits_1_and_shows_the_calls_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    result = attempted(
        "reserve 2; fault set_access; commit 0..1; expect charged 0",
        "--subject=test_try:buggy",
    )
    assert result.exit_code == 1, result.output
    assert "set_access(range1, 1g, RW)" in result.stdout
    assert "PARTED  manager and model, over calls: call 4 of commit" in result.stdout
    assert "charged 0: NO, nobody knows: they part here" in result.stdout
    assert result.stdout.rstrip().endswith("manager and model part; 0 of 1 expectations hold")


def test_same_operation_again_is_a_retry() -> None:
    """L-11 is judged on it, as in a sequence that was made up."""
    steps = data("reserve 2; fault create OUT_OF_MEMORY; commit 0..1; commit 0..1")["steps"]
    assert [step["outcome"] for step in steps[:3]] == ["done", "failed", "done"]


# --- as data ------------------------------------------------------------------------------------


def test_json_says_the_same() -> None:
    found = data("reserve 2; fault map effect; fault unmap 2; commit 0..1; expect charged 0")
    step = found["steps"][1]
    assert (found["agree"], found["fine"], found["left"]) == (True, True, "nothing is left")
    assert step["outcome"] == "failed"
    assert step["statement"] == "fault map UNKNOWN effect; fault unmap 2 UNKNOWN; commit r1 0..1"
    assert {"call": "map(range1, 1g, handle1) -> UNKNOWN", "planned": "with effect"} in step[
        "calls"
    ]
    assert step["unmet"] == ["fault unmap 2 UNKNOWN: unmap was called once"]
    assert step["expected"] == [{"text": "expect charged 0", "problem": None}]
    assert step["ledger"] == {}
    assert found["steps"][-1]["clearing_up"]


# --- where scripts come from --------------------------------------------------------------------


def test_script_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "script"
    _ = file.write_text("reserve 2\n# words\ncommit 0..2\n", encoding="utf-8")
    result = attempted("-f", str(file))
    assert result.exit_code == 0, result.output
    assert "commit r1 0..2" in result.stdout


def test_script_from_standard_input() -> None:
    result = attempted("-", given="reserve 2\ncommit 0..2\n")
    assert result.exit_code == 0, result.output
    assert "commit r1 0..2" in result.stdout


def test_driver_is_named_unless_it_is_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    result = attempted("reserve 2", "--driver=test_try:one_granule")
    assert result.stdout.startswith("driver: test_try:one_granule")
    assert "driver:" not in told("reserve 2")


def one_granule(world: World) -> Driver:
    unit = world.settings.granularity_bytes
    return DriverModel(granularity_bytes=unit, capacity_bytes=unit)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("resrve 4",), "this is no statement"),
        (("reserve 4; commit 0-4",), "  reserve 4; commit 0-4\n                    ^^^"),
        (("",), "no operation"),
        (("# nothing",), "no operation"),
        (("world granularity=3B; reserve 4",), "this world cannot be"),
        ((), "give a script"),
        (("reserve 4", "-f", __file__), "give one of them"),
        (("reserve 4", "--driver=metal:none"), "metal cannot be imported"),
        (("reserve 4", "--subject=nowhere"), "not of the form module:attribute"),
    ],
)
def test_what_cannot_be_run_exits_2_and_says_why(arguments: tuple[str, ...], said: str) -> None:
    result = attempted(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_command_is_registered() -> None:
    result = CliRunner().invoke(kvvmm, ["try", "reserve 4"])
    assert result.exit_code == 0, result.output


# --- the page -----------------------------------------------------------------------------------


def test_page_shows_what_the_command_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page, "run: python -m kvvmm_cuda.cli.page spec/fault_lab.md"


def test_page_has_ten_tries_and_more_that_are_fine() -> None:
    shown = commands(PAGE.read_text(encoding="utf-8"))
    assert len(shown) == 14
    for command in shown:
        assert attempted(*shlex.split(command)[2:]).exit_code == 0, command
