"""What the command says: progress on stderr, results on stdout."""

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from io import StringIO
from textwrap import fill

from rich.console import Console
from rich.table import Table

from kvvmm_model.conformance.reached import OUTCOMES, Reached, states
from kvvmm_model.conformance.report import Around, Machine
from kvvmm_model.conformance.results import Finding, Progress, Result
from kvvmm_model.conformance.worker_campaign import Casualties, Casualty
from kvvmm_model.faulting import Manner
from kvvmm_model.machine import OPERATIONS
from kvvmm_model.trace import in_words

__all__ = [
    "around_text",
    "casualty_text",
    "finding_text",
    "memory_text",
    "progress",
    "result_text",
    "say",
]

_WIDTH = 100


def say(text: str) -> None:
    """Print; who reads no more (``| head``) gets no more, and that is no error of ours."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        _ = os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def progress() -> Generator[Progress]:
    """One line that is overwritten; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as line:
        yield lambda result: line.update(_now(result))


def _now(result: Result) -> str:
    reached = result.reached
    if result.canary_caught is None:
        return f"{result.form}: first it has to find a planted bug: {result.canary}"
    return (
        f"{result.form}: {result.seconds:.0f} s, {reached.sequences} sequences,"
        f" {reached.operations} operations, {reached.faults_fired} faults,"
        f" {result.states_reached} of {result.states_possible} states"
    )


# --- results ------------------------------------------------------------------------------------


def result_text(result: Result) -> str:
    """Tables of what was reached, and the names of what was not."""
    reached = result.reached
    rate = reached.operations / result.seconds if result.seconds else 0.0
    parts = [
        f"{reached.sequences} sequences, {reached.operations} operations",
        f"{reached.driver_calls} driver calls, {result.seconds:.1f} s, {rate:.0f} operations/s",
        _canary(result),
    ]
    if reached.operations:
        parts += [_drawn(_outcomes(reached)), _refusals(reached), *_faults(result)]
        parts += [*_states(result), _never(result)]
    return "\n".join(part for part in parts if part)


def _canary(result: Result) -> str:
    ends = {True: "found, as it must be", False: "NOT FOUND", None: "not looked for to the end"}
    return f"planted bug ({result.canary}): {ends[result.canary_caught]}"


def _drawn(*tables: Table) -> str:
    """Tables as text.  rich ends the process when a pipe breaks, so it does not print itself."""
    file = StringIO()
    console = Console(file=file, width=_WIDTH, force_terminal=sys.stdout.isatty())
    for table in tables:
        console.print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _outcomes(reached: Reached) -> Table:
    table = _table("\noperation", *(f"\n{outcome}" for outcome in OUTCOMES))
    for name in OPERATIONS:
        table.add_row(name, *(str(reached.outcomes[name, outcome]) for outcome in OUTCOMES))
    return table


def _refusals(reached: Reached) -> str:
    lines = ["", "refusals"]
    for name in OPERATIONS:
        found = [
            f"{reason.name} {count}"
            for (operation, reason), count in reached.refusals.items()
            if operation == name
        ]
        lines += _listed(name, sorted(found)) if found else []
    return "\n".join(lines)


def _listed(name: str, items: Iterable[str]) -> list[str]:
    return [fill(f"{name}: {', '.join(items)}", _WIDTH, subsequent_indent="    ")]


def _faults(result: Result) -> list[str]:
    points = result.reached.fault_points
    if not result.faults:
        return []
    table = _table("\nfaults fired", *(f"\n{manner.value}" for manner in Manner))
    for name, kind in dict.fromkeys((name, kind) for name, kind, _ in sorted(points, key=str)):
        counts = [points[name, kind, manner] for manner in Manner]
        table.add_row(f"{name}: {kind.value}", *(str(count or "") for count in counts))
    return [_drawn(table)]


def _states(result: Result) -> list[str]:
    table = _table(f"\nstates: {result.states_reached} of {result.states_possible}", "\nsteps")
    for name in states(faults=result.faults):
        table.add_row(name, str(result.reached.states[name] or "never"))
    return [_drawn(table)]


def _never(result: Result) -> str:
    if result.finding is not None:
        return ""  # the run was cut short, so much is missing and none of it matters
    never = result.never
    if not never:
        return "\nnothing that can be reached was left out"
    return "\n".join(["", f"NEVER reached: {len(never)}", *(f"  {name}" for name in never)])


def finding_text(finding: Finding, trace: str) -> str:
    """The failing sequence in words, and what differed."""
    divergence, world = finding.divergence, finding.sequence.world
    return "\n".join(
        [
            "",
            f"DIVERGED at step {divergence.number}: {divergence.kind}",
            f"  {divergence.detail}",
            f"limit {world.limit}g, capacity {world.capacity}g, {world.settings}",
            *(f"  {line}" for line in in_words(finding.sequence)),
            f"trace: {trace}  (again: kvvmm replay {trace})",
        ]
    )


# --- around the result --------------------------------------------------------------------------


def around_text(result: Result, around: Around) -> str:
    """What was found, here and by workers that did not survive it."""
    parts: list[str] = []
    if result.finding is not None:
        parts.append(finding_text(result.finding, str(around.trace)))
    if around.casualties is not None:
        parts += [
            casualty_text(casualty, trace)
            for casualty, trace in zip(around.casualties.ended, around.traces, strict=True)
        ]
        parts.append(_workers(around.casualties))
    return "\n".join(part for part in parts if part)


def casualty_text(casualty: Casualty, trace: str | None) -> str:
    """How a worker ended, and in what."""
    lines = ["", f"THE PROCESS {casualty.words}"]
    found, sequence, short = casualty.found, casualty.sequence, casualty.short
    if found is None or sequence is None:
        return "\n".join([*lines, "  before it had begun a sequence"])
    if found.planted:
        lines.append(f"  while a bug was planted in it: {found.planted}")
    if short is not None:
        lines.append(
            f"  again in a process of its own: cut down from {len(found.sequence.steps)} steps"
            if short.again
            else "  not again in a process of its own: it depends on more than the sequence"
        )
    lines += [f"  {line}" for line in in_words(sequence)]
    return "\n".join([*lines, f"trace: {trace}"])


def _workers(casualties: Casualties) -> str:
    lines: list[str] = []
    if casualties.contexts_lost:
        lines.append(
            f"\ncontexts lost, which no injected fault did: {casualties.contexts_lost};"
            " a new worker went on each time"
        )
    if casualties.gave_up:
        lines.append(f"\nENDED EARLY: no more than {casualties.restarts} workers may be replaced")
    return "\n".join(lines)


def memory_text(machine: Machine) -> str:
    """Free memory that came or went; other users of the device do that too."""
    change = machine.free_bytes_change
    if not change:
        return ""
    more = "more" if change > 0 else "less"
    return (
        f"\nfree on the device: {abs(change)} bytes {more} than before the run"
        " (other users of the device count)"
    )
