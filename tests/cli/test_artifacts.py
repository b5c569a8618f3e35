"""The files of a run, and what an earlier run has left in them."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.command import kvvmm, report
from kvvmm_model.conformance.junit import as_junit
from kvvmm_model.conformance.report import Around, Earlier, Machine, as_json, exit_code
from kvvmm_model.conformance.results import Result
from kvvmm_model.conformance.worker_campaign import Casualties, Casualty
from kvvmm_model.conformance.worker_process import Death

SOAK = ("soak", "--driver", "sim", "--seed", "9", "--count", "300")
WIDE = ("--subject", "cli.deadly:Wide")
ENDED = Casualties(ended=[Casualty(Death("SIGSEGV"), None)])


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files() -> set[str]:
    return {str(path.relative_to("art")) for path in Path("art").rglob("*") if path.is_file()}


def cases(place: str) -> dict[str, str]:
    """The names of the test cases, each with what stands in it; empty if it passed."""
    document = ET.parse(place)  # noqa: S314 - written by the command under test
    return {
        str(case.get("name")): "".join(child.tag for child in case)
        for case in document.getroot().iter("testcase")
    }


# --- the directory ------------------------------------------------------------------------------


def test_run_without_findings_leaves_three_reports() -> None:
    result = kvvmm(*SOAK, "--artifacts", "art")
    assert result.exit_code == 0, result.output
    assert files() == {"report.json", "junit.xml", "table.txt"}
    assert cases("art/junit.xml") == {"seed 9": ""}
    table = Path("art/table.txt").read_text(encoding="utf-8")
    assert result.stdout.endswith(table)


def test_finding_lies_in_the_directory_and_is_tried_first_the_next_time() -> None:
    found = kvvmm(*SOAK, *WIDE, "--artifacts", "art")
    assert found.exit_code == 1, found.output
    assert files() >= {"findings/soak-9.trace.json", "findings/soak-9.txt"}
    assert "DIVERGED" in Path("art/findings/soak-9.txt").read_text(encoding="utf-8")
    assert sorted(cases("art/junit.xml").values()) == ["", "failure"]

    still = kvvmm(*SOAK, *WIDE, "--artifacts", "art")
    assert still.exit_code == 1
    assert "earlier: soak-9: still fails" in still.stdout

    fixed = kvvmm(*SOAK, "--artifacts", "art", "--no-worker")
    assert fixed.exit_code == 0, fixed.output
    assert "earlier: soak-9: fails no more" in fixed.stdout
    assert report("art/report.json")["earlier"][0]["verdict"] == "fails no more"
    assert cases("art/junit.xml") == {"seed 9": "", "earlier: soak-9": ""}


def test_earlier_finding_that_still_fails_is_a_finding_of_this_run() -> None:
    findings = Path("art/findings")
    findings.mkdir(parents=True)
    found = kvvmm(*SOAK, *WIDE, "--trace", str(findings / "old.trace.json"))
    assert found.exit_code == 1
    # With no time to find it anew, the old one alone decides.
    result = kvvmm(*SOAK[:-1], "1", *WIDE, "--artifacts", "art", "--worker", "--trials", "0")
    assert result.exit_code == 1
    assert "earlier: old: still fails" in result.stdout


def test_earlier_file_that_is_no_trace_is_skipped() -> None:
    Path("art/findings").mkdir(parents=True)
    _ = Path("art/findings/odd.trace.json").write_text("{}", encoding="utf-8")
    result = kvvmm(*SOAK, "--artifacts", "art")
    assert result.exit_code == 0, result.output
    assert cases("art/junit.xml")["earlier: odd"] == "skipped"


def test_what_interrupted_a_worker_is_kept_with_its_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KVVMM_TEST_ONCE", str(Path("once").absolute()))
    deadly = ("--subject", "cli.deadly:CrashingOnce", "--worker", "--trials", "1")
    result = kvvmm(*SOAK, *deadly, "--artifacts", "art")
    assert result.exit_code == 3, result.output
    named = {f"findings/soak-9-died-1{end}" for end in (".trace.json", ".txt", ".journal")}
    assert named < files()
    text = Path("art/findings/soak-9-died-1.txt").read_text(encoding="utf-8")
    assert "not again in a process of its own" in text
    assert "deadly.py" in text  # where it was


# --- the same again -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["soak", "fuzz"])
def test_same_seed_and_count_give_the_same_files_byte_for_byte(form: str) -> None:
    arguments = (form, *SOAK[1:], "--deterministic")
    for name in ("one", "two"):
        assert (
            kvvmm(*arguments, "--report", f"{name}.json", "--junit", f"{name}.xml").exit_code == 0
        )
    for end in ("json", "xml"):
        assert Path(f"one.{end}").read_bytes() == Path(f"two.{end}").read_bytes()
    assert "date" not in report("one.json")


def test_deterministic_without_a_seed_exits_2() -> None:
    result = kvvmm("soak", "--driver", "sim", "--count", "5", "--deterministic")
    assert result.exit_code == 2
    assert "--seed" in result.stderr


# --- what stands in them ------------------------------------------------------------------------


def result_of(**given: object) -> Result:
    result = Result("soak", 9, faults=True, canary="none", canary_caught=True)
    for name, value in given.items():
        setattr(result, name, value)
    return result


@pytest.mark.parametrize(
    ("result", "around", "code"),
    [
        (result_of(), Around(), 0),
        (result_of(void="nothing ran"), Around(), 2),
        (result_of(interrupted=True, void="nothing ran"), Around(), 130),
        (result_of(interrupted=True), Around(casualties=ENDED), 3),
        (result_of(), Around(casualties=Casualties(contexts_lost=3)), 0),
        (result_of(), Around(casualties=Casualties(contexts_lost=3, gave_up=True)), 3),
        (result_of(), Around(earlier=(Earlier("a", 3, "died"),)), 3),
        (result_of(), Around(casualties=ENDED, earlier=(Earlier("a", 1, "parted"),)), 1),
        (result_of(), Around(earlier=(Earlier("a", 2, "no trace"),)), 0),
    ],
)
def test_exit_code_is_the_gravest(result: Result, around: Around, code: int) -> None:
    assert exit_code(result, around) == code


def test_free_memory_that_went_is_said_and_is_no_error() -> None:
    machine = Machine("cuda", "1", free_bytes_before=10 << 20, free_bytes_after=8 << 20)
    assert as_json(result_of(), machine)["free_bytes_change"] == -2 << 20


def test_junit_takes_text_that_xml_does_not() -> None:
    around = Around(earlier=(Earlier("a", 1, "odd \x00 & <text>"),))
    document = ET.fromstring(as_junit(result_of(), around))  # noqa: S314 - our own
    assert document.get("failures") == "1"
