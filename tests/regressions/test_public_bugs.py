"""What went wrong in other systems, as scripts: model and backend run each side by side.

A file begins with a comment: the id, the source, and what went wrong there.  Its ``expect`` lines
are what has to hold here.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison
from kvvmm_model.conformance.run import simulated
from kvvmm_model.language import Expect, Script, parse, show_step
from kvvmm_model.trace import with_retries
from kvvmm_model.vocabulary import Refusal

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "spec" / "public_bugs.md"
FILES = sorted(FOLDER.glob("*.kvvmm"))

HEAD = re.compile(r"# (B[0-9]+): (\S+#[0-9]+)\n((?:# .+\n)+)(?:#\n(?:# .+\n)+)?\n")
EXPRESSED = re.compile(
    r"^\| (B[0-9]+) \| (\S+) \| ([^|]+) \| ([^|]+) \| \[(\w+)\]\(\.\./tests/regressions/(.+)\) \|$"
)
NOT_YET = re.compile(r"^\| ([^|]+) \| (B[0-9]+(?:, B[0-9]+)*) \| ([^|]+) \|$")
COUNTS = re.compile(r"^\| ([^|]+) \| ([0-9]+) \| ([0-9]+) \|$")

each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


class Unexpected(AssertionError):
    """An expectation that does not hold: its text, the step it stands behind, what is the case."""


def script_of(path: Path) -> Script:
    return parse(path.read_text(encoding="utf-8"))


def play(script: Script, expected: dict[int, tuple[Expect, ...]] | None = None) -> None:
    """The script to its end; raises ``Divergence`` or ``Unexpected``."""
    world = script.sequence.world
    comparison = Comparison(Backend, simulated(world), world)
    for number, step in enumerate(with_retries(script.sequence).steps):
        seen = comparison.step(step)
        said = f"step {number}, {show_step(step, world.settings.granularity_bytes)}:"
        if set(seen.fired) != set(step.faults.specs):
            raise Unexpected(f"{said} a planned fault was never met")
        for expect in (script.expected if expected is None else expected).get(number, ()):
            finding = expect.check(seen)
            if finding is not None:
                raise Unexpected(f"{said} {expect.text}: {finding}")
    for _ in comparison.end():
        pass


# --- the files ----------------------------------------------------------------------------------


@each_file
def test_model_and_backend_agree_and_do_what_is_expected(path: Path) -> None:
    play(script_of(path))


def lacking(text: str) -> str | None:
    """What a file lacks, whatever its sequence does."""
    if HEAD.match(text) is None:
        return "no head: id, source, what went wrong, an empty line"
    if not parse(text).expected:
        return "no expect"
    return None


@each_file
def test_file_has_a_head_and_expects_something(path: Path) -> None:
    assert lacking(path.read_text(encoding="utf-8")) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# B01: a/b#1\n# It broke.\n\nreserve 1\n", "no expect"),
        ("# B01: a/b#1\n# It broke.\n\n", "no expect"),
        ("reserve 1\nexpect done 1\n", "no head"),
        ("# B01: a/b#1\n\nreserve 1\nexpect done\n", "no head"),
    ],
)
def test_file_that_lacks_something_is_noticed(text: str, complaint: str) -> None:
    assert complaint in (lacking(text) or "")


# --- every expectation can fail -----------------------------------------------------------------


def flipped(text: str) -> str:
    """What is wrong wherever an expectation is right."""
    match text.split()[1:]:
        case ["done"]:
            return "expect failed"
        case ["failed", *_] | ["lost"]:
            return "expect done"
        case ["refused", reason]:
            return f"expect refused {next(each.name for each in Refusal if each.name != reason)}"
        case ["attached", *_]:
            return "expect attached address_reserve"
        case ["unchanged"]:
            return "expect lost"
        case ["calls" | "kept" as word, "none"]:
            return f"expect {word} {'fence' if word == 'calls' else '0'}"
        case ["calls", *_]:
            return f"{text} query"
        case ["kept", *_]:
            return "expect kept none"
        case [*words, number]:
            return " ".join(["expect", *words, str(int(number) + 1)])
        case _:
            raise AssertionError(text)


def read(text: str) -> Expect:
    return parse(f"reserve 1; {text}").expected[0][0]


def flips(script: Script) -> Iterator[tuple[int, str, dict[int, tuple[Expect, ...]]]]:
    """Each expectation flipped, one at a time: its step, its new text, and all expectations."""
    for number, expects in script.expected.items():
        for at, expect in enumerate(expects):
            wrong = read(flipped(expect.text))
            changed = (*expects[:at], wrong, *expects[at + 1 :])
            yield number, wrong.text, {**script.expected, number: changed}


@each_file
def test_every_flipped_expectation_is_reported_with_its_text_and_step(path: Path) -> None:
    script = script_of(path)
    for number, text, expected in flips(script):
        with pytest.raises(Unexpected) as caught:
            play(script, expected)
        assert str(caught.value).startswith(f"step {number}, ")
        assert f": {text}: " in str(caught.value)


def test_fault_that_is_never_met_is_reported() -> None:
    with pytest.raises(Unexpected, match=r"step 1, fault map 2 UNKNOWN; commit r1 0..1: .* never"):
        play(parse("reserve 1; fault map 2; commit 0..1"))


# --- the page -----------------------------------------------------------------------------------


def rows(pattern: re.Pattern[str]) -> list[tuple[str, ...]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [found.groups() for line in lines if (found := pattern.match(line))]


def head(path: Path) -> tuple[str, str, str]:
    """Id, source, and what went wrong."""
    found = HEAD.match(path.read_text(encoding="utf-8"))
    assert found is not None
    return found[1], found[2], " ".join(found[3].replace("\n# ", " ").removeprefix("# ").split())


def test_page_lists_exactly_the_files_and_says_what_they_say() -> None:
    listed = [(file, name, source, wrong) for name, source, wrong, _, _, file in rows(EXPRESSED)]
    assert sorted(listed) == [(path.name, *head(path)) for path in FILES]


def test_files_are_named_after_their_id_and_their_title() -> None:
    for name, _, _, _, title, file in rows(EXPRESSED):
        assert file == f"{name}_{title}.kvvmm"


def test_page_is_in_the_order_of_ids() -> None:
    names = [int(row[0][1:]) for row in rows(EXPRESSED)]
    assert names == sorted(set(names))


def test_page_counts_what_it_lists() -> None:
    expressed = {row[0] for row in rows(EXPRESSED)}
    classes = [(name, ids.split(", ")) for name, ids, _ in rows(NOT_YET)]
    missing = [each for _, ids in classes for each in ids]
    assert len(missing) == len(set(missing))
    assert not expressed & set(missing)
    *counts, total = [(name, int(yes), int(no)) for name, yes, no in rows(COUNTS)]
    assert total == ("all", len(expressed), len(missing))
    assert sum(yes for _, yes, _ in counts) == len(expressed)
    for name, _, no in counts:
        assert no == sum(len(ids) for other, ids in classes if other == name), name
