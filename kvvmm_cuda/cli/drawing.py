"""A manager's state as lines of characters, one a window."""

from collections.abc import Iterator

from kvvmm_cuda.cli.differing import count
from kvvmm_model.sequence import World
from kvvmm_model.state import Mapping, Reservation, State, initial
from kvvmm_model.vocabulary import Ledger

__all__ = ["state_text"]

WIDTH = 64
"""Windows in a line."""

RESERVED, COMMITTED, QUARANTINED = ".", ("#", "="), ("?", "~")
"""Of a mapping, its first window and the others."""

LEGEND = (
    f"legend: {RESERVED} reserved  {COMMITTED[0]} committed  {QUARANTINED[0]} quarantined;"
    f"  {COMMITTED[1]} {QUARANTINED[1]} go on with the same handle"
)


def state_text(state: State | None, world: World) -> str:
    """All that is held; None stands for the beginning."""
    there = initial(world.settings, world.limit) if state is None else state
    lines = [*_reservations(there), *_handles(there), _ledger(there.ledger)]
    return "\n".join([*lines, "the device is lost"] if there.lost else lines)


def _reservations(state: State) -> Iterator[str]:
    found = list(state.reservations.values())
    for reservation in found:
        yield f"r{reservation.serial}: {reservation.standing.value}, " + count(
            reservation.size, "window"
        )
        yield from _rows(reservation)
    yield LEGEND if found else "no reservations"


def _rows(reservation: Reservation) -> Iterator[str]:
    """Lines of windows; of those in which all is reserved, only the first and how many more."""
    marked = dict(mark for mapping in reservation.mappings for mark in _marks(mapping))
    used = {0, *(window // WIDTH for window in marked)}
    last = -1
    for row in sorted(used):
        yield from _left_out(row - last - 1)
        windows = range(row * WIDTH, min((row + 1) * WIDTH, reservation.size))
        yield f"{windows.start:>8} " + "".join(marked.get(each, RESERVED) for each in windows)
        last = row
    yield from _left_out(-(-reservation.size // WIDTH) - last - 1)


def _left_out(rows: int) -> Iterator[str]:
    if rows > 0:
        yield f"{'':>8} ({count(rows, 'line')} more of reserved windows)"


def _marks(mapping: Mapping) -> Iterator[tuple[int, str]]:
    first, other = QUARANTINED if mapping.quarantined else COMMITTED
    for window in range(mapping.window, mapping.end):
        yield window, first if window == mapping.window else other


def _handles(state: State) -> Iterator[str]:
    pooled = [f"handle{entry.handle}" for entry in state.pool]
    doubtful = [f"handle{handle.serial}" for handle in state.handles.values() if handle.quarantined]
    for name, handles in (("pool, oldest first", pooled), ("quarantined", doubtful)):
        if handles:
            yield f"{name}: {', '.join(handles)}"


def _ledger(ledger: Ledger) -> str:
    fields = [f"{name} {value}" for name, value in ledger._asdict().items() if value]
    return ", ".join(["ledger:", *fields, f"free {ledger.free}"]).replace(":,", ":")
