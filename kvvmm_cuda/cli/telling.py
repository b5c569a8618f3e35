"""What a step did, as lines for people: its statement, calls, outcome, and what is different."""

from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import cast

from attrs import frozen
from rich.console import Console
from rich.text import Text

from kvvmm_cuda.cli.differing import changes, count, ledger_changes
from kvvmm_cuda.cli.lab import Asked, Made, Told
from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.language import show_fault, show_operation
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Reclaim,
    Release,
    Reserve,
    Retire,
    Seal,
    Trim,
)
from kvvmm_model.vocabulary import Done, Failed, Refused, Released

__all__ = ["Line", "drawn", "outcome_words", "statement", "tell", "unmet_words"]


@frozen
class Line:
    """A line of the telling: a word for what it is about, the text, and how it looks."""

    label: str
    text: str
    style: str = ""


def drawn(lines: Sequence[Line], *, coloured: bool) -> str:
    """Lines as text; a label that repeats is left out."""
    file, last = StringIO(), ""
    console = Console(file=file, force_terminal=coloured, highlight=False, soft_wrap=True)
    for line in lines:
        label = "" if line.label == last else line.label
        begin = f"{label:<3}" if line.label.isdigit() else f"   {label:<8}"
        console.print(Text.assemble((begin, "dim"), (line.text, line.style)))
        last = line.label
    return "\n".join(each.rstrip() for each in file.getvalue().rstrip("\n").split("\n"))


# --- a step -------------------------------------------------------------------------------------


def tell(told: Told) -> list[Line]:
    """The whole step."""
    return [line for part in _PARTS for line in part(told)]


def statement(told: Told) -> list[str]:
    """The step in the language: its faults, then its operation."""
    if told.step is None:
        return ["(after the last operation)"]
    unit = told.before.settings.granularity_bytes
    faults = [show_fault(spec) for spec in told.step.faults.specs]
    operation = show_operation(told.step.operation, unit)
    return [*faults, operation + "  (clearing up)" * told.to_end]


def _statement(told: Told) -> Iterator[Line]:
    for text in statement(told):
        yield Line(str(told.number), text, "bold")


def _calls(told: Told) -> Iterator[Line]:
    for made in told.calls:
        yield Line("call", _call(made), "" if made.fault is None else "yellow")


def _call(made: Made) -> str:
    return made.line if made.fault is None else f"{made.line}   [planned: {_did(made.fault)}]"


def _did(spec: FaultSpec) -> str:
    """What the call did before it said so."""
    match spec.manner:
        case Manner.WITHOUT_EFFECT:
            return "nothing was done"
        case Manner.WITH_EFFECT:
            return "it was done all the same"
        case Manner.IN_PART:
            return f"done for the first {count(spec.part, 'mapping')}"


def _outcome(told: Told) -> Iterator[Line]:
    said = outcome_words(told)
    if said is not None:
        yield Line("result", said, _STYLES[type(told.outcome)])


def _changes(told: Told) -> Iterator[Line]:
    for text in changes(told.before, told.after):
        yield Line("change", text)
    fields = ledger_changes(told.before.ledger, told.after.ledger)
    if fields:
        yield Line("ledger", ", ".join(f"{name} {a} -> {b}" for name, (a, b) in fields.items()))


def _unmet(told: Told) -> Iterator[Line]:
    for spec in told.unmet:
        yield Line("unmet", unmet_words(spec, told), "yellow")


def unmet_words(spec: FaultSpec, told: Told) -> str:
    """A planned fault that met no call, and how many calls there were to meet."""
    made = sum(each.call.step is spec.step for each in told.calls)
    called = {0: "never called", 1: "called once"}.get(made, f"called {made} times")
    return f"{show_fault(spec)}: {spec.step.value} was {called}"


def _asked(told: Told) -> Iterator[Line]:
    for each in told.asked:
        yield Line("expect", _answer(each), "green" if each.problem is None else "bold red")


def _answer(asked: Asked) -> str:
    said = asked.text.removeprefix("expect ")
    return f"{said}: yes" if asked.problem is None else f"{said}: NO, {asked.problem}"


def _divergence(told: Told) -> Iterator[Line]:
    found = told.divergence
    if found is not None:
        yield Line("PARTED", f"manager and model, over {found.kind}: {found.detail}", "bold red")


_PARTS: tuple[Callable[[Told], Iterator[Line]], ...] = (
    _statement,
    _calls,
    _outcome,
    _changes,
    _unmet,
    _asked,
    _divergence,
)


# --- outcomes -----------------------------------------------------------------------------------


_STYLES: dict[type, str] = {Done: "green", Refused: "cyan", Failed: "red"}


def outcome_words(told: Told) -> str | None:
    """The outcome in plain words; None where manager and model have no common one."""
    match told.outcome:
        case Done(value) if told.step is not None:
            unit = told.before.settings.granularity_bytes
            said = _done(told.step.operation, value, unit)
            return f"done: {said}" if said else "done"
        case Refused() as outcome:
            return f"refused: {outcome}"
        case Failed(fault, residue, cleanup_faults):
            faults = ", then ".join(str(each) for each in (fault, *cleanup_faults))
            return f"failed: {faults}" + ("" if residue else "; nothing is different")
        case _:
            return None


def _done(operation: Operation, value: object, unit: int) -> str:
    match operation, value:
        case Reserve(int() as size), int():
            return f"r{value} has {count(-(-size // unit), 'window')}"
        case Commit(), int():
            return f"{count(value, 'window')} backed anew"
        case Release(), Released(size, kept):
            held = ", ".join(map(str, kept))
            return f"{count(size, 'window')} unmapped" + (f"; kept: {held}" if kept else "")
        case Close(), _ if value:
            return f"what was quarantined stays: windows {value}"
        case Publish(), int():
            return f"p{value}"
        case Seal(), int():
            return f"{count(value, 'window')} read-only from now on"
        case Attach(), int():
            return f"{count(value, 'window')} mapped, to be read"
        case Fork(), tuple():
            return ", ".join(f"r{child}" for child in cast("tuple[int, ...]", value))
        case ((Trim() | Retire()), int()):
            return f"{count(value, 'granule')} given back"
        case Reclaim(), int():
            return f"{count(value, 'mapping')} confirmed gone"
        case _:
            return ""
