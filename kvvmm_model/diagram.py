"""Transition tables, and the parts of ``spec/`` that are drawn from code.

A window, a handle, an address range and a prefix each have a handful of states.  Which operation
takes one from where to where is data here; a test holds the tables to what sequences with faults
really do.

``python -m kvvmm_model.diagram spec`` rewrites what stands between markers in that folder's pages.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from kvvmm_model.codes import CODES, STICKY, Code, Step, code_name
from kvvmm_model.invariants import INVARIANTS
from kvvmm_model.state import State
from kvvmm_model.vocabulary import Refusal, Rights, Standing

__all__ = ["MACHINES", "PARTS", "START", "Arc", "Machine", "rewritten"]

START = "(none)"
"""Where a thing comes from that was not there before."""


@frozen
class Arc:
    """One transition: the operation that makes it, and when it does."""

    source: str
    target: str
    operation: str
    when: str


@frozen
class Machine:
    """The states of one kind of thing.

    ``things``: those that a manager's state knows of, by serial (and window).  ``state_of``: which
    state one of them is in; ``START`` where it is not there yet.
    """

    name: str
    things: Callable[[State], set[tuple[int, ...]]]
    state_of: Callable[[State, tuple[int, ...]], str]
    arcs: tuple[Arc, ...]

    def made(self, before: State, after: State) -> set[tuple[str, str]]:
        """The transitions between two states of a manager, as (source, target)."""
        things = self.things(before) | self.things(after)
        pairs = {(self.state_of(before, each), self.state_of(after, each)) for each in things}
        return {(source, target) for source, target in pairs if source != target}


# --- a window -----------------------------------------------------------------------------------


def _windows(state: State) -> set[tuple[int, ...]]:
    return {(r.serial, w) for r in state.reservations.values() for w in range(r.size)}


def _window(state: State, thing: tuple[int, ...]) -> str:
    serial, window = thing
    if serial >= state.next_reservation:
        return START
    found = state.reservations.get(serial)
    mappings = () if found is None else found.mappings
    over = next((m for m in mappings if m.window <= window < m.end), None)
    if over is not None:
        return "quarantined" if over.quarantined else _USE[over.rights]
    return "reserved" if found is not None and found.standing is Standing.OPEN else "over"


_USE = {Rights.RW: "committed", Rights.READ: "shared", Rights.UNKNOWN: "uncertain"}
"""Of a window that is not in doubt; none is ever left without rights (L-8)."""

WINDOW = Machine(
    "window",
    _windows,
    _window,
    (
        Arc(START, "reserved", "reserve", "address_reserve gave its range"),
        Arc(START, "reserved", "fork", "a child's, behind the length"),
        Arc(START, "shared", "fork", "a child's, where its parent's is sealed"),
        Arc(START, "committed", "fork", "a child's, with a copy"),
        Arc(START, "quarantined", "fork", "undoing could not confirm the mapping gone"),
        Arc(START, "over", "fork", "undone, and nothing is mapped in it"),
        Arc("reserved", "committed", "commit", "every call succeeded"),
        Arc("reserved", "shared", "attach", "every call succeeded"),
        Arc("reserved", "quarantined", "commit", "undoing could not confirm the mapping gone"),
        Arc("reserved", "quarantined", "attach", "undoing could not confirm the mapping gone"),
        Arc("reserved", "over", "close", "nothing was mapped in it"),
        Arc("committed", "shared", "seal", "the owner can only read now"),
        Arc("committed", "uncertain", "seal", "neither READ nor RW again is confirmed"),
        Arc("committed", "reserved", "release", "confirmed unmapped"),
        Arc("committed", "quarantined", "release", "a clear may still land, or the unmap is open"),
        Arc("committed", "quarantined", "close", "a fence failed, or it is not confirmed unmapped"),
        Arc("committed", "over", "close", "confirmed unmapped"),
        Arc("uncertain", "shared", "seal", "the seal was repeated"),
        Arc("uncertain", "committed", "seal", "repeated, failed again, and RW is confirmed"),
        Arc("uncertain", "reserved", "release", "confirmed unmapped"),
        Arc("uncertain", "quarantined", "release", "the unmap is open"),
        Arc("uncertain", "quarantined", "close", "a fence failed, or it is not confirmed unmapped"),
        Arc("uncertain", "over", "close", "confirmed unmapped"),
        Arc("shared", "reserved", "release", "confirmed unmapped"),
        Arc("shared", "quarantined", "release", "the unmap is open"),
        Arc("shared", "quarantined", "close", "a fence failed, or it is not confirmed unmapped"),
        Arc("shared", "over", "close", "confirmed unmapped"),
        Arc("quarantined", "reserved", "reclaim", "confirmed unmapped, reservation open"),
        Arc("quarantined", "over", "reclaim", "confirmed unmapped, reservation closed"),
    ),
)

# --- a handle -----------------------------------------------------------------------------------


def _handles(state: State) -> set[tuple[int, ...]]:
    return {(serial,) for serial in range(1, state.next_handle)}


def _handle(state: State, thing: tuple[int, ...]) -> str:
    (serial,) = thing
    if serial >= state.next_handle:
        return START
    found = state.handles.get(serial)
    if found is None:
        return "gone"
    if found.quarantined:
        return "quarantined"
    if found.mappings:
        return "mapped"
    return "held" if found.prefixes else "pooled"


HANDLE = Machine(
    "handle",
    _handles,
    _handle,
    (
        Arc(START, "mapped", "commit", "created and mapped"),
        Arc(START, "mapped", "fork", "created and mapped"),
        Arc(START, "gone", "commit", "created, undone and confirmed released"),
        Arc(START, "gone", "fork", "created, undone and confirmed released"),
        Arc(START, "quarantined", "commit", "created, undone, release not confirmed"),
        Arc(START, "quarantined", "fork", "created, undone, release not confirmed"),
        Arc("mapped", "held", "release", "its last mapping gone, a prefix has it"),
        Arc("mapped", "held", "close", "its last mapping gone, a prefix has it"),
        Arc("mapped", "held", "reclaim", "its last mapping confirmed gone, a prefix has it"),
        Arc("mapped", "pooled", "release", "chosen for the pool, and clean"),
        Arc("mapped", "pooled", "close", "chosen for the pool, and clean"),
        Arc("mapped", "gone", "release", "confirmed released"),
        Arc("mapped", "gone", "close", "confirmed released"),
        Arc("mapped", "gone", "reclaim", "its mapping confirmed gone, then confirmed released"),
        Arc("mapped", "quarantined", "release", "release not confirmed"),
        Arc("mapped", "quarantined", "close", "release not confirmed"),
        Arc("mapped", "quarantined", "reclaim", "its mapping confirmed gone, release not"),
        Arc("held", "mapped", "attach", "mapped, or not confirmed undone"),
        Arc("held", "gone", "retire", "confirmed released"),
        Arc("held", "quarantined", "retire", "release not confirmed"),
        Arc("pooled", "mapped", "commit", "a hit of exactly its size"),
        Arc("pooled", "mapped", "fork", "a hit of exactly its size"),
        Arc("pooled", "gone", "commit", "given up for other memory"),
        Arc("pooled", "gone", "fork", "given up, or a hit that a failed copy was for"),
        Arc("pooled", "gone", "trim", "confirmed released"),
        Arc("pooled", "quarantined", "commit", "given up and not confirmed, or device lost"),
        Arc("pooled", "quarantined", "fork", "the same, or a copy failed and the release too"),
        Arc("pooled", "quarantined", "trim", "release not confirmed"),
        Arc("quarantined", "gone", "commit", "create gave its value again, which proves it"),
        Arc("quarantined", "gone", "fork", "create gave its value again, which proves it"),
    ),
)

# --- an address range ---------------------------------------------------------------------------


def _ranges(state: State) -> set[tuple[int, ...]]:
    return {(serial,) for serial in range(1, state.next_reservation)}


def _range(state: State, thing: tuple[int, ...]) -> str:
    (serial,) = thing
    if serial >= state.next_reservation:
        return START
    found = state.reservations.get(serial)
    return "gone" if found is None else found.standing.value


RANGE = Machine(
    "range",
    _ranges,
    _range,
    (
        Arc(START, "open", "reserve", "address_reserve gave it"),
        Arc(START, "open", "fork", "a child"),
        Arc(START, "closed", "fork", "undone, and a mapping stays in quarantine"),
        Arc(START, "gone", "fork", "undone, and confirmed freed"),
        Arc(START, "quarantined", "fork", "undone, address_free not confirmed"),
        Arc("open", "closed", "close", "a mapping stays in quarantine"),
        Arc("open", "gone", "close", "confirmed freed"),
        Arc("open", "quarantined", "close", "no mapping left, address_free not confirmed"),
        Arc("closed", "gone", "reclaim", "the last mapping confirmed gone, then confirmed freed"),
        Arc(
            "closed", "quarantined", "reclaim", "its last mapping gone, address_free not confirmed"
        ),
        Arc("quarantined", "gone", "reserve", "a new range overlaps it, which proves it"),
        Arc("quarantined", "gone", "fork", "a child's range overlaps it, which proves it"),
    ),
)

# --- a prefix -----------------------------------------------------------------------------------


def _prefixes(state: State) -> set[tuple[int, ...]]:
    return {(serial,) for serial in range(1, state.next_prefix)}


def _prefix(state: State, thing: tuple[int, ...]) -> str:
    (serial,) = thing
    if serial >= state.next_prefix:
        return START
    found = state.prefixes.get(serial)
    if found is None:
        return "gone"
    return "sealed" if found.sealed else "unsealed"


PREFIX = Machine(
    "prefix",
    _prefixes,
    _prefix,
    (
        Arc(START, "unsealed", "publish", "whole handles, without a hole"),
        Arc("unsealed", "sealed", "seal", "all of it can only be read, confirmed"),
        Arc("unsealed", "gone", "release", "cancelled: a window of it leaves"),
        Arc("unsealed", "gone", "close", "cancelled: its owner ends"),
        Arc("unsealed", "gone", "retire", "cancelled"),
        Arc("sealed", "gone", "retire", "its hold on the memory ends"),
    ),
)

MACHINES = (WINDOW, HANDLE, RANGE, PREFIX)


# --- drawing ------------------------------------------------------------------------------------


def mermaid(machine: Machine) -> str:
    """The machine as a mermaid state diagram; operations that go the same way share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for arc in machine.arcs:
        arrows.setdefault((arc.source, arc.target), []).append(arc.operation)
    lines = [
        f"    {'[*]' if source == START else source} --> {target}: {', '.join(operations)}"
        for (source, target), operations in arrows.items()
    ]
    sources = {arc.source for arc in machine.arcs}
    ends = dict.fromkeys(arc.target for arc in machine.arcs if arc.target not in sources)
    lines += [f"    {end} --> [*]" for end in ends]
    return "\n".join(("```mermaid", "stateDiagram-v2", *lines, "```"))


def plain(machine: Machine) -> str:
    """The machine as lines of text, one for each arc."""
    return "\n".join(
        (
            "```text",
            *(
                f"{arc.source:<11} --{arc.operation:-<7}--> {arc.target:<11}  {arc.when}"
                for arc in machine.arcs
            ),
            "```",
        )
    )


def codes_table() -> str:
    """What each call's codes say about its effect."""

    def names(codes: tuple[int, ...]) -> str:
        return ", ".join(code_name(code) for code in codes) or "none"

    rows = [
        f"| {step.value} | {names(CODES[step].answers)} | {names(CODES[step].rules_out)}"
        f" | {names(CODES[step].unknown)} |"
        for step in Step
    ]
    sticky = ", ".join(f"{code.name} ({code.value})" for code in Code if code in STICKY)
    head = (
        "| call | an answer, no fault | certainly no effect | effect open; injected in tests |",
        "|---|---|---|---|",
    )
    return "\n".join((*head, *rows, "", f"Sticky, for every call: {sticky}."))


def refusals_table() -> str:
    """The refusals, in order of precedence."""
    rows = [
        f"| {number} | {refusal.name} | {refusal.value} |"
        for number, refusal in enumerate(Refusal, start=1)
    ]
    return "\n".join(("| order | refusal | what the caller reads |", "|---|---|---|", *rows))


def predicates_list() -> str:
    """The invariants that a predicate checks, each by its sentence."""
    rows = [
        f"| {sentence} | `{predicate.__name__}` |" for sentence, predicate in INVARIANTS.items()
    ]
    return "\n".join(("| sentence | predicate |", "|---|---|", *rows))


def _drawing(machine: Machine) -> Callable[[], str]:
    return lambda: f"{mermaid(machine)}\n\n{plain(machine)}"


PARTS: dict[str, Callable[[], str]] = {
    "codes": codes_table,
    "refusals": refusals_table,
    "predicates": predicates_list,
    **{machine.name: _drawing(machine) for machine in MACHINES},
}
"""What stands between ``<!-- name -->`` and ``<!-- /name -->``, by name."""


def rewritten(page: str) -> str:
    """A page with its drawn parts as the code has them now."""
    for name, draw in PARTS.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin in page:
            head, _, rest = page.partition(begin)
            _, marker, tail = rest.partition(end)
            if not marker:
                raise ValueError(f"{begin} has no {end}: add it where the drawn part ends")
            page = f"{head}{begin}\n{draw()}\n{end}{tail}"
    return page


def main(folder: str) -> None:
    """Rewrite the drawn parts of every page in a folder."""
    for path in sorted(Path(folder).glob("*.md")):
        text = path.read_text(encoding="utf-8")
        _ = path.write_text(rewritten(text), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
