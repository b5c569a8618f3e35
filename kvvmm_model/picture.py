"""Pictures of what a script does, drawn from the model's states.

A page shows a picture, and below it the script that it is drawn from: every line of the script is
one panel, and its comment the panel's title.  ``python -m kvvmm_model.picture spec`` runs those
scripts on the model, over the simulated driver, and writes the pictures again.
"""

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from attrs import frozen

from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver
from kvvmm_model.language import parse
from kvvmm_model.machine import apply
from kvvmm_model.state import Mapping, Reservation, State, initial
from kvvmm_model.vocabulary import Failed, Outcome, Refused, Rights, Standing

__all__ = ["Panel", "draw", "panels", "pictures"]

_PICTURE = re.compile(
    r"<!-- picture -->\n!\[[^\]]*\]\((?P<name>[\w.]+)\)\n\n```text\n(?P<script>.*?)```\n"
    r"<!-- /picture -->",
    re.DOTALL,
)


@frozen
class Panel:
    """What one line of a script led to."""

    title: str
    statements: str
    outcome: Outcome
    state: State


def pictures(page: str) -> dict[str, str]:
    """The scripts of a page's pictures, by the name of the file that shows each."""
    return {found["name"]: found["script"] for found in _PICTURE.finditer(page)}


def panels(script: str) -> list[Panel]:
    """Run a script on the model, over a simulated driver; one panel a line with operations."""
    sequence = parse(script).sequence
    world, steps = sequence.world, iter(sequence.steps)
    unit = world.settings.granularity_bytes
    capacity_bytes = world.capacity * unit
    driver = FaultingDriver(DriverModel(granularity_bytes=unit, capacity_bytes=capacity_bytes))
    state = initial(world.settings, world.limit)
    found: list[Panel] = []
    for line in script.splitlines():
        statements, _, title = (part.strip() for part in line.partition("#"))
        outcome: Outcome | None = None
        for _, step in zip(parse(statements).sequence.steps, steps, strict=False):
            driver.arm(step.faults)
            transition = apply(state, step.operation, driver)
            driver.disarm()
            state, outcome = transition.state, transition.outcome
        if outcome is not None:
            found.append(Panel(title, statements, outcome, state))
    return found


# --- measures, in pixels --------------------------------------------------------------------------

CELL, HEIGHT, GAP = 56, 28, 3
LABEL, MARGIN, COLUMN, COLUMNS = 80, 16, 432, 2
HEAD, LINE, ROW, MEMORY, STEP, FOOT = 30, 17, 42, 76, 14, 26
WIDTH = COLUMNS * COLUMN + (COLUMNS + 1) * MARGIN
TIMES = "\N{MULTIPLICATION SIGN}"
LETTERS = 56
"""How many letters of a script fit into a line of a panel."""

COLOURS = (
    *("#6cb8ee", "#f2c14e", "#86cfa5", "#eca0c6", "#f29e6b", "#b9a7ee", "#b5cf5a", "#7fd0cf"),
)
"""Of handles by serial; dark letters can be read on each, in front of a page of any colour."""

STYLE = """
text { font: 13px ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 14px }
.code { font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #57606a }
.bad { fill: #b42318; font-weight: 600 }
.quiet { fill: #57606a; font-size: 12px }
.page { fill: #ffffff }
.panel { fill: #f6f8fa; stroke: #d0d7de }
.rule { stroke: #d0d7de }
.free { fill: none; stroke: #8c959f; stroke-dasharray: 2 3 }
.cell { stroke: #1f2328; stroke-opacity: 0.55 }
.doubt { fill: none; stroke: #b42318; stroke-width: 2.5; stroke-dasharray: 5 3 }
.on { fill: #14181d; font-weight: 600 }
.prefix { fill: none; stroke: #1f2328; stroke-width: 1.6 }
.unsealed { stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .code, .quiet { fill: #9aa4af }
  .bad { fill: #ff8a80 }
  .page { fill: #0d1117 }
  .panel { fill: #161b22; stroke: #30363d }
  .rule { stroke: #30363d }
  .cell { stroke: #0d1117 }
  .doubt { stroke: #ff8a80 }
  .on { fill: #14181d }
  .prefix { stroke: #e6edf3 }
}
"""
HATCH = (
    '<pattern id="read" width="7" height="7" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)">'
    '<rect width="2" height="7" fill="#14181d" fill-opacity="0.22"/></pattern>'
)

# --- drawing --------------------------------------------------------------------------------------


def draw(script: str) -> str:
    """The picture of a script, as the text of an SVG file that needs no other."""
    shown = panels(script)
    parts: list[str] = []
    top = MARGIN
    for first in range(0, len(shown), COLUMNS):
        row = shown[first : first + COLUMNS]
        tall = max(_height(panel) for panel in row)
        for column, panel in enumerate(row):
            left = MARGIN + column * (COLUMN + MARGIN)
            parts.append(f'<g transform="translate({left} {top})">')
            parts.append(f'<rect class="panel" width="{COLUMN}" height="{tall}" rx="6"/>')
            parts += _panel(first + column + 1, panel, tall)
            parts.append("</g>")
        top += tall + MARGIN
    parts += _legend(top)
    top += 2 * LINE + MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}"'
        f' height="{top}" role="img">'
    )
    page = f'<rect class="page" width="{WIDTH}" height="{top}" rx="8"/>'
    defs = f"<defs>{HATCH}</defs>"
    return "\n".join((head, f"<style>{STYLE}</style>", defs, page, *parts, "</svg>", ""))


def _height(panel: Panel) -> int:
    return _head(panel) + ROW * len(panel.state.reservations) + _foot(panel)


def _foot(panel: Panel) -> int:
    """What lies below the line: memory, a bracket for each prefix, and the ledger."""
    return MEMORY + STEP * max(0, len(panel.state.prefixes) - 1) + FOOT


def _head(panel: Panel) -> int:
    return HEAD + LINE * len(_lines(panel.statements))


def _lines(statements: str) -> list[str]:
    """A line of a script, broken behind statements."""
    lines: list[str] = []
    for statement in statements.split("; "):
        if lines and len(lines[-1]) + 2 + len(statement) <= LETTERS:
            lines[-1] += f"; {statement}"
        else:
            lines.append(statement)
    return lines


def _panel(number: int, panel: Panel, tall: int) -> Iterator[str]:
    """Title and script, the reservations below, and at the bottom the memory and the ledger."""
    yield _text(12, 22, f"{number}. {panel.title}", "title")
    for line, statements in enumerate(_lines(panel.statements)):
        yield _text(12, HEAD + 11 + LINE * line, statements, "code")
    top = _head(panel) + ROW - HEIGHT
    for reservation in panel.state.reservations.values():
        yield from _reservation(panel.state, reservation, top)
        top += ROW
    low = tall - _foot(panel) + 23
    yield f'<path class="rule" d="M12 {low - 11} H{COLUMN - 12}"/>'
    yield from _memory(panel.state, low)
    ledger = panel.state.ledger
    counts = f"charged {ledger.charged}   mapped {ledger.mapped}   held {ledger.held}"
    yield _text(12, tall - 12, counts)
    match panel.outcome:
        case Refused(reason):
            yield _text(COLUMN - 12, tall - 12, f"refused: {reason.name}", "bad", "end")
        case Failed(fault):
            yield _text(COLUMN - 12, tall - 12, f"failed: {fault}", "bad", "end")
        case _:
            pass


def _reservation(state: State, found: Reservation, top: int) -> Iterator[str]:
    """A row of windows, and what lies in them."""
    standing = "" if found.standing is Standing.OPEN else f" {found.standing.value}"
    yield _text(12, top + 19, f"r{found.serial}{standing}", "quiet" if standing else "")
    backed = {w for mapping in found.mappings for w in range(mapping.window, mapping.end)}
    for window in range(found.size):
        if window not in backed:
            yield _box(window, 1, top, "free")
    for mapping in found.mappings:
        yield from _mapping(mapping, top)
    for prefix in state.prefixes.values():
        leading = found.mappings[: len(prefix.handles)]
        same = tuple(mapping.handle for mapping in leading) == prefix.handles
        if prefix.reservation == found.serial and same:
            yield _bracket(0, leading[-1].end, top - 9, 5, sealed=prefix.sealed)


def _mapping(mapping: Mapping, top: int) -> Iterator[str]:
    names = {Rights.RW: "RW", Rights.READ: "R", Rights.NONE: "-", Rights.UNKNOWN: "?"}
    yield from _block(mapping.window, mapping.size, top, mapping.handle, names[mapping.rights])
    if mapping.rights is Rights.READ:
        yield _box(mapping.window, mapping.size, top, "hatch", fill="url(#read)")
    if mapping.quarantined:
        yield _box(mapping.window, mapping.size, top, "doubt")


def _memory(state: State, top: int) -> Iterator[str]:
    """All handles there are, each with the number of its references, and what prefixes hold."""
    yield _text(12, top + 19, "memory", "")
    pooled = {entry.handle for entry in state.pool}
    places: dict[int, tuple[int, int]] = {}
    at = 0
    for handle in state.handles.values():
        note = "pool" if handle.serial in pooled else f"{TIMES}{handle.references}"
        yield from _block(at, handle.size, top, handle.serial, note)
        if handle.quarantined:
            yield _box(at, handle.size, top, "doubt")
        places[handle.serial] = at, handle.size
        at += handle.size
    if not places:
        yield _text(LABEL, top + 19, "none", "quiet")
    low = top + HEIGHT + 4
    for prefix in state.prefixes.values():
        held = [places[serial] for serial in prefix.handles]
        first, end = min(at for at, _ in held), max(at + size for at, size in held)
        yield _bracket(first, end, low + 5, -5, sealed=prefix.sealed)
        seal = "" if prefix.sealed else ", not sealed"
        yield _text(_x(end) + 5, low + 9, f"p{prefix.serial}{seal}", "quiet")
        low += STEP


def _block(at: int, size: int, top: int, handle: int, note: str) -> Iterator[str]:
    """A handle: its colour and number, and a note."""
    colour = COLOURS[(handle - 1) % len(COLOURS)]
    yield _box(at, size, top, "cell", fill=colour)
    yield _text(_x(at) + 8, top + 19, str(handle), "on")
    yield _text(_x(at + size) - GAP - 7, top + 19, note, "on", "end")


def _legend(top: int) -> Iterator[str]:
    handles = "A number and colour is one handle, in every window where it is mapped."
    rights = "RW: can be written; R, hatched: only read."
    prefixes = (
        f"A bracket is a prefix. {TIMES}n: so many mappings and prefixes refer to the handle."
    )
    doubt = "A red frame: in quarantine."
    for number, line in enumerate((f"{handles} {rights}", f"{prefixes} {doubt}")):
        yield _text(MARGIN + 2, top + 12 + LINE * number, line, "quiet")


def _x(window: int) -> int:
    return LABEL + window * CELL


def _box(at: int, size: int, top: int, kind: str, fill: str = "") -> str:
    """A rectangle over windows."""
    filled = f' fill="{fill}"' if fill else ""
    where = f'x="{_x(at)}" y="{top}" width="{size * CELL - GAP}" height="{HEIGHT}" rx="3"'
    return f'<rect class="{kind}"{filled} {where}/>'


def _bracket(first: int, end: int, level: int, depth: int, *, sealed: bool) -> str:
    """A line along windows at a level; its ends point to them, down where the depth is positive."""
    left, right = _x(first) + 1, _x(end) - GAP - 1
    kind = "prefix" if sealed else "prefix unsealed"
    return f'<path class="{kind}" d="M{left} {level + depth} V{level} H{right} v{depth}"/>'


def _text(x: int, y: int, said: str, kind: str = "", anchor: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y}"{style}{where} xml:space="preserve">{escape(said)}</text>'


# --- files ----------------------------------------------------------------------------------------


def main(folder: str) -> None:
    """Draw the pictures of every page in a folder."""
    for page in sorted(Path(folder).glob("*.md")):
        for name, script in pictures(page.read_text(encoding="utf-8")).items():
            _ = (page.parent / name).write_text(draw(script), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
