"""The measurements beside the bugs, and the page that is drawn from both."""

import json
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from planted.bug import Bug
from planted.private_bugs import PRIVATE
from planted.shared_bugs import SHARED

ROOT = Path(__file__).parents[2]
MEASURED = Path(__file__).with_name("measured.json")
PAGE = ROOT / "spec" / "planted_bugs.md"

FORMS = ("swarm", "hypothesis", "batched")
SECONDS = {"swarm": 60, "hypothesis": 30, "batched": 45}
"""How long each form may look for one bug."""

SEQUENCES = 5_000
"""How many sequences the swarm may try for it."""

SHORTEN_SECONDS = 6
"""How long Hypothesis may shorten what it found, and then ``shortest`` again."""


class Search(TypedDict):
    """What one form came to with one bug; ``steps`` of the sequence, shortened."""

    found: bool
    sequences: int
    operations: int
    seconds: float
    steps: int | None


class Measured(TypedDict):
    """All that was measured of one bug; ``shortest`` is the shortest sequence known."""

    examples: NotRequired[bool]
    shortest: NotRequired[int]
    forms: dict[str, Search]


Table = dict[str, Measured]


def load() -> Table:
    """What has been measured so far, by the bug's name."""
    if not MEASURED.exists():
        return {}
    return cast("Table", json.loads(MEASURED.read_text(encoding="utf-8")))


def save(table: Table) -> None:
    """Keep it, in the order of the bugs, and without any that is none any more."""
    ordered = {bug.name: table[bug.name] for bug in PRIVATE if bug.name in table}
    _ = MEASURED.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def complete(entry: Measured) -> bool:
    """Whether everything was measured."""
    return "examples" in entry and set(entry["forms"]) == set(FORMS)


# --- the page -----------------------------------------------------------------------------------

HEAD = """\
# Planted bugs

Mistakes that were planted in the backend, one at a time, to see whether the comparison with the
model finds them: a comparison that lets a known bug pass proves nothing about the unknown ones.
The patches are in `tests/planted/patches/`. This page is made by `tests/planted/measure.py` from
`tests/planted/bugs.py` and `tests/planted/measured.json`; it is not edited by hand.

Each bug was looked for by each of the three forms, with seeds from 0 on: *swarm* makes a sequence
from a seed, *hypothesis* draws it rule by rule, *batched* reads it from bytes drawn at once. A
search ends with the first finding or at its bound: {swarm} s or {sequences} sequences for the
swarm, {hypothesis} s for hypothesis, {batched} s for batched. *Operations* and *seconds* count up
to the finding, on one core of a machine with other work. What is found is shortened: by `shortest`
alone for the swarm, by Hypothesis ({shorten} s at most) and then by `shortest` for the others.
*Steps* is its length then, without the steps that end every sequence, so that 0 stands for a bug
seen while giving everything back. *Shortest known* is the length of the shortest that any search
has come to.

The tests run one form for each bug, the one in bold, and demand that it finds the bug. *Examples*
says whether an example test notices the bug as well. Sources are public reports of the same kind
of mistake elsewhere, by their ids in [public_bugs.md](public_bugs.md).

These searches were made before memory could be shared. Since then every other sequence of the swarm
shares memory, and the other half is as it was; the other forms draw more kinds of operations, and
need longer. Bugs of shared memory are listed at the end: the tests demand that they are found, but
how fast was not measured.
"""


def page(table: Table) -> str:
    """The page of these measurements."""
    head = HEAD.format(**SECONDS, sequences=f"{SEQUENCES:,}", shorten=SHORTEN_SECONDS)
    return (
        "\n".join([head, *_counts(table), "", *_bugs(table), "", *_searches(table), "", *_shared()])
        + "\n"
    )


def _counts(table: Table) -> list[str]:
    found = [sum(table[b.name]["forms"][form]["found"] for b in PRIVATE) for form in FORMS]
    missed = sum(not table[b.name].get("examples", False) for b in PRIVATE)
    numbers = [len(PRIVATE), sum(bool(b.source) for b in PRIVATE), *found, missed]
    heads = ["bugs", "after a public report", *(f"found by {form}" for form in FORMS)]
    return [
        "## How many",
        "",
        "| " + " | ".join([*heads, "missed by the examples"]) + " |",
        "|---:" * len(numbers) + "|",
        "| " + " | ".join(map(str, numbers)) + " |",
    ]


def _bugs(table: Table) -> list[str]:
    lines = [
        "## What is wrong",
        "",
        "| bug | what is wrong | source | examples |",
        "|---|---|---|---|",
    ]
    for bug in PRIVATE:
        noticed = "notice" if table[bug.name].get("examples", False) else "miss"
        lines.append(f"| {bug.name} | {bug.wrong} | {bug.source} | {noticed} |")
    return lines


def _shared() -> list[str]:
    return [
        "## Of shared memory",
        "",
        f"{len(SHARED)} bugs, {sum(bool(b.source) for b in SHARED)} of them after a public report.",
        "",
        "| bug | what is wrong | source | form |",
        "|---|---|---|---|",
        *(f"| {bug.name} | {bug.wrong} | {bug.source} | {bug.form} |" for bug in SHARED),
    ]


def _searches(table: Table) -> list[str]:
    lines = [
        "## How it is found",
        "",
        "| bug | form | operations | seconds | steps | shortest known |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for bug in PRIVATE:
        lines += [_search(bug, form, table[bug.name]) for form in FORMS]
    return lines


def _search(bug: Bug, form: str, measured: Measured) -> str:
    search = measured["forms"][form]
    name = f"**{form}**" if form == bug.form else form
    known = measured.get("shortest", "")
    if search["found"]:
        told = f"{search['operations']:,} | {search['seconds']:.1f} | {search['steps']}"
    else:
        told = f"not in {search['operations']:,} | {search['seconds']:.1f} | "
    return f"| {bug.name} | {name} | {told} | {known} |"
