"""A plan's answers, layout beside layout: as data, and as a table for people."""

import sys
from collections.abc import Callable, Iterator
from io import StringIO
from textwrap import fill

from attrs import frozen
from rich.console import Console
from rich.table import Table

from kvvmm_model.geometry import (
    Fragments,
    Geometry,
    Layout,
    commit_floor,
    committed,
    fragments,
)
from kvvmm_model.geometry_plan import (
    Capacity,
    NotShareable,
    Shareable,
    capacity_of,
    private_bytes,
    share,
)

__all__ = ["Planned", "as_json", "in_words", "planned"]

Json = dict[str, object]

VERSION = 1

_WIDTH = 100


# --- the answers --------------------------------------------------------------------------------


@frozen(kw_only=True)
class Column:
    """One layout; ``own_bytes`` and ``capacity`` if a budget was named."""

    layout: Layout
    fragments: tuple[Fragments, ...]
    answer: Shareable | NotShareable
    committed_windows: int
    floor_windows: int
    own_bytes: int | None
    capacity: Capacity | None


@frozen
class Planned:
    """All layouts of a geometry, for one prefix."""

    geometry: Geometry
    prefix_tokens: int
    budget_bytes: int | None
    private_tokens: int | None
    columns: tuple[Column, ...]


def planned(
    geometry: Geometry, prefix_tokens: int, budget_bytes: int | None, private_tokens: int | None
) -> Planned:
    """Ask all there is to ask; budget and private tokens are both given, or neither.

    Raises:
        GeometryError: a number cannot be meant.
    """
    columns: list[Column] = []
    for layout in Layout:
        answer = share(geometry, layout, prefix_tokens)
        asked = budget_bytes is not None and private_tokens is not None
        columns.append(
            Column(
                layout=layout,
                fragments=fragments(geometry, layout),
                answer=answer,
                committed_windows=committed(geometry, layout, prefix_tokens),
                floor_windows=commit_floor(geometry, layout),
                own_bytes=private_bytes(geometry, answer, private_tokens) if asked else None,
                capacity=capacity_of(geometry, answer, private_tokens, budget_bytes)
                if asked
                else None,
            )
        )
    return Planned(geometry, prefix_tokens, budget_bytes, private_tokens, tuple(columns))


# --- for programs -------------------------------------------------------------------------------


def as_json(plan: Planned) -> Json:
    """The answers as data; sizes are bytes where the name says so."""
    geometry = plan.geometry
    return {
        "version": VERSION,
        "layers": geometry.layers,
        "kv_heads": geometry.kv_heads,
        "k_width": geometry.k_width,
        "v_width": geometry.v_width,
        "element_bits": geometry.element_bits,
        "granularity_bytes": geometry.granularity_bytes,
        "token_bytes": geometry.token_bytes,
        "prefix_tokens": plan.prefix_tokens,
        "prefix_bytes": plan.prefix_tokens * geometry.token_bytes,
        "budget_bytes": plan.budget_bytes,
        "private_tokens": plan.private_tokens,
        "layouts": {column.layout.value: _column(column) for column in plan.columns},
    }


def _column(column: Column) -> Json:
    return {
        "axes": column.layout.axes,
        "fragments": [
            {"holds": each.holds, "count": each.count, "bytes_per_token": each.bytes_per_token}
            for each in column.fragments
        ],
        **(_yes(column.answer) if isinstance(column.answer, Shareable) else _no(column.answer)),
        "committed_windows": column.committed_windows,
        "floor_windows": column.floor_windows,
        "own_bytes": column.own_bytes,
        "requests": None if column.capacity is None else _requests(column.capacity),
    }


def _yes(answer: Shareable) -> Json:
    return {
        "shareable": True,
        "whole_windows": [part.whole_windows for part in answer.parts],
        "map_operations": answer.map_operations,
        "shared_bytes": answer.shared_bytes,
        "boundary_bytes": answer.boundary_bytes,
    }


def _no(answer: NotShareable) -> Json:
    remedies = answer.remedies
    return {
        "shareable": False,
        "refused": answer.reason.name,
        "why": str(answer),
        "longest_bytes": answer.longest_bytes,
        "remedies": {
            "layouts": [layout.value for layout in remedies.layouts],
            "prefix_tokens": remedies.prefix_tokens,
            "tokens_more": answer.tokens_more,
            "granularity_bytes": remedies.granularity_bytes,
        },
    }


def _requests(found: Capacity) -> Json:
    return {"apart": found.apart, "sharing": found.sharing, "bounded": found.sharing is not None}


# --- for people ---------------------------------------------------------------------------------


def in_words(plan: Planned) -> str:
    """A table with a column for each layout, and below it what cannot be shared, and why."""
    lines = [*_head(plan), "", _drawn(plan)]
    for column in plan.columns:
        if isinstance(column.answer, NotShareable):
            text = f"{column.layout.value} cannot share: {column.answer}"
            lines += ["", fill(text, _WIDTH, subsequent_indent="    ")]
    return "\n".join(lines)


def _head(plan: Planned) -> Iterator[str]:
    geometry = plan.geometry
    width = _alike([("K", geometry.k_width), ("V", geometry.v_width)])
    yield (
        f"{geometry.layers:,} layers, {geometry.kv_heads:,} KV heads of width {width},"
        f" {geometry.element_bits} bits an element: {geometry.token_bytes:,} bytes a token"
    )
    yield (
        f"prefix: {plan.prefix_tokens:,} tokens, {plan.prefix_tokens * geometry.token_bytes:,}"
        f" bytes; windows of {_amount(geometry.granularity_bytes)}"
    )
    if plan.budget_bytes is not None:
        yield (
            f"budget: {_amount(plan.budget_bytes)}; a request has {plan.private_tokens:,} tokens"
            " beyond the prefix"
        )


def _drawn(plan: Planned) -> str:
    """The table as text.  rich ends the process when a pipe breaks, so it does not print itself."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for column in plan.columns:
        table.add_column(column.layout.value, justify="right")
    for label, cell in _ROWS if plan.budget_bytes is None else _ROWS + _BUDGET_ROWS:
        table.add_row(label, *(cell(plan, column) for column in plan.columns))
    file = StringIO()
    coloured = sys.stdout.isatty()
    Console(file=file, width=_WIDTH, force_terminal=coloured, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip("\n").split("\n"))


Cell = Callable[[Planned, Column], str]


def _if_shareable(words: Callable[[Shareable], str]) -> Cell:
    def cell(_: Planned, column: Column) -> str:
        return words(column.answer) if isinstance(column.answer, Shareable) else _NONE

    return cell


def _each(number: Callable[[Planned, Fragments], int]) -> Cell:
    def cell(plan: Planned, column: Column) -> str:
        return _alike([(each.holds, number(plan, each)) for each in column.fragments])

    return cell


def _whole(_: Planned, column: Column) -> str:
    if isinstance(column.answer, NotShareable):
        return "0"
    return _alike([(part.fragments.holds, part.whole_windows) for part in column.answer.parts])


def _memory(plan: Planned, column: Column) -> str:
    return _amount(column.floor_windows * plan.geometry.granularity_bytes)


def _own(_: Planned, column: Column) -> str:
    return _NONE if column.own_bytes is None else _amount(column.own_bytes)


def _apart(_: Planned, column: Column) -> str:
    return _NONE if column.capacity is None else f"{column.capacity.apart:,}"


def _sharing(_: Planned, column: Column) -> str:
    if column.capacity is None or isinstance(column.answer, NotShareable):
        return _NONE
    number = column.capacity.sharing
    return "any number" if number is None else f"{number:,}"


_NONE = "-"

_ROWS: list[tuple[str, Cell]] = [
    ("", lambda _, column: column.layout.axes),
    ("fragments", lambda _, column: f"{sum(each.count for each in column.fragments):,}"),
    ("bytes of a token in each", _each(lambda _, each: each.bytes_per_token)),
    (
        "bytes of the prefix in each",
        _each(lambda plan, each: plan.prefix_tokens * each.bytes_per_token),
    ),
    ("windows that it fills in each", _whole),
    ("can be shared", lambda _, column: "yes" if isinstance(column.answer, Shareable) else "no"),
    ("maps for each sharer", _if_shareable(lambda answer: f"{answer.map_operations:,}")),
    ("memory held once", _if_shareable(lambda answer: _amount(answer.shared_bytes))),
    ("bytes left to each sharer", _if_shareable(lambda answer: f"{answer.boundary_bytes:,}")),
    ("windows for the prefix", lambda _, column: f"{column.committed_windows:,}"),
    ("windows for one token", lambda _, column: f"{column.floor_windows:,}"),
    ("memory for one token", _memory),
]
_BUDGET_ROWS: list[tuple[str, Cell]] = [
    ("memory of each request's own", _own),
    ("requests, a prefix for each", _apart),
    ("requests, one prefix for all", _sharing),
]


# --- numbers in words ---------------------------------------------------------------------------


def _alike(numbers: list[tuple[str, int]]) -> str:
    """One number where all are the same, otherwise each with what it is of."""
    if len({number for _, number in numbers}) == 1:
        return f"{numbers[0][1]:,}"
    return " / ".join(f"{number:,} {name}" for name, number in numbers)


def _amount(size_bytes: int) -> str:
    """A size in the largest unit that it is a whole number of."""
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size_bytes and size_bytes % (1 << power) == 0:
            return f"{size_bytes >> power:,} {unit}"
    return f"{size_bytes:,} bytes"
