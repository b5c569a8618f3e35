"""The page of layouts: it shows what ``kvvmm plan`` prints, and that is what is counted.

``python -m kvvmm_cuda.cli.plan_page spec/geometry.md`` writes the page's printed parts again.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from attrs import frozen
from numpy.typing import NDArray

from kvvmm_cuda.cli.plan_page import examples, rewritten

PAGE = Path(__file__).parents[2] / "spec" / "geometry.md"
TEXT = PAGE.read_text(encoding="utf-8")

SIX = {
    "Llama-3.1-8B": (32, 8, 128),
    "Llama-3.1-70B": (80, 8, 128),
    "Qwen2.5-7B": (28, 4, 128),
    "Mistral-7B-v0.1": (32, 8, 128),
    "Gemma-2-9B": (42, 8, 256),
    "Phi-3-mini": (32, 32, 96),
}
"""Layers, KV heads and width, as published."""

LAYOUTS = ("head-major", "seq-major", "token-major")
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
TWO_BYTES = {"bf16", "fp16"}


# --- the page -----------------------------------------------------------------------------------


def test_page_shows_what_the_command_prints() -> None:
    again = "run: python -m kvvmm_cuda.cli.plan_page spec/geometry.md"
    assert rewritten(TEXT) == TEXT, again


def test_page_has_the_published_shapes_of_six_models() -> None:
    sections = re.findall(r"^### (.*?)\n(.*?)(?=^##)", TEXT, re.DOTALL | re.MULTILINE)
    shown = {name: [_asked(command) for command, _ in examples(text)] for name, text in sections}
    assert {name: [asked.shape for asked in found] for name, found in shown.items()} == {
        name: [shape] for name, shape in SIX.items()
    }


# --- what it asks and answers -------------------------------------------------------------------


@frozen
class Asked:
    shape: tuple[int, int, int]
    prefix: int
    granularity: int
    budget: int | None
    private: int | None


def _asked(command: str) -> Asked:
    words = shlex.split(command.replace("\\\n", " "))[2:]
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given["--dtype"] in TWO_BYTES
    return Asked(
        (int(given["--layers"]), int(given["--kv-heads"]), int(given["--head-dim"])),
        int(given["--prefix"]),
        _bytes(given["--granularity"]),
        _bytes(given["--budget"]) if "--budget" in given else None,
        int(given["--private"]) if "--private" in given else None,
    )


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([\d,]+) ?(\w+)", text)
    assert found is not None, text
    return int(found[1].replace(",", "")) * UNITS[found[2]]


def _answers(printed: str) -> dict[str, dict[str, str]]:
    """The table's cells, by layout and label."""
    rows = [re.split(r"  +", line) for line in printed.splitlines()]
    table = {row[0]: row[1:] for row in rows if len(row) == 1 + len(LAYOUTS) and row[0]}
    header = next(row for row in rows if row[1:] == list(LAYOUTS))
    return {
        layout: {label: cells[number] for label, cells in table.items()}
        for number, layout in enumerate(header[1:])
    }


# --- counted ------------------------------------------------------------------------------------

AXES = {"head-major": ("lkh", "s"), "seq-major": ("lk", "sh"), "token-major": ("", "slkh")}
"""Of layers, K and V, heads, tokens: those that name a fragment, and those within it, in order."""


def live_bytes(asked: Asked, layout: str, tokens: int) -> NDArray[np.int64]:
    """How many live bytes each window of each fragment holds.

    Every head's row of every token is given its address, by its place in the layout; each row is
    then added to the window, or the two windows, that it lies in.
    """
    layers, heads, width = asked.shape
    sizes = {"l": layers, "k": 2, "h": heads, "s": tokens}
    row, unit = 2 * width, asked.granularity
    assert row <= unit

    def place(axes: str) -> NDArray[np.int64]:
        """Each row's number among these axes, with axes l, k, h and s."""
        lengths = [sizes[axis] for axis in axes]
        numbers = np.arange(np.prod(lengths, dtype=np.int64)).reshape(lengths)
        numbers = numbers.transpose([axes.index(axis) for axis in "lkhs" if axis in axes])
        return numbers.reshape([sizes[axis] if axis in axes else 1 for axis in "lkhs"])

    fragment, offset = (place(axes) for axes in AXES[layout])
    windows = int(offset.max()) * row // unit + 2
    address = (fragment * (windows * unit) + offset * row).ravel()
    first = address // unit
    within = np.minimum(row, (first + 1) * unit - address)
    total = (int(fragment.max()) + 1) * windows
    held = np.bincount(first, within, total) + np.bincount(first + 1, row - within, total)
    return held.astype(np.int64).reshape(-1, windows)


def counted(asked: Asked, layout: str) -> dict[str, int]:
    """What the table's rows have to say."""
    held = live_bytes(asked, layout, asked.prefix)
    one = live_bytes(asked, layout, 1)
    whole = held == asked.granularity
    for alike in (held.sum(axis=1), one.sum(axis=1), whole.sum(axis=1)):
        assert (alike == alike[0]).all()
    return {
        "fragments": len(held),
        "bytes of a token in each": one[0].sum(),
        "bytes of the prefix in each": held[0].sum(),
        "windows that it fills in each": whole[0].sum(),
        "maps for each sharer": whole.sum(),
        "memory held once": held[whole].sum(),
        "bytes left to each sharer": held[~whole].sum(),
        "windows for the prefix": (held > 0).sum(),
        "windows for one token": (one > 0).sum(),
        "memory for one token": (one > 0).sum() * asked.granularity,
    }


ONLY_IF_SHARED = {"maps for each sharer", "memory held once", "bytes left to each sharer"}
EXAMPLES = [(_asked(command), _answers(printed)) for command, printed in examples(TEXT)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("asked", "answers"), EXAMPLES, ids=map(str, range(len(EXAMPLES))))
def test_every_row_is_what_is_counted(
    asked: Asked, answers: dict[str, dict[str, str]], layout: str
) -> None:
    cells, expected = answers[layout], counted(asked, layout)
    shared = expected["maps for each sharer"] > 0
    assert cells["can be shared"] == ("yes" if shared else "no")
    for label, number in expected.items():
        if label in ONLY_IF_SHARED and not shared:
            assert cells[label] == "-"
        elif label.startswith("memory"):
            assert _bytes(cells[label]) == number, label
        else:
            assert cells[label] == f"{number:,}", label


def test_refusals_of_the_page_are_what_is_counted() -> None:
    """The tokens and the granularity that would do; all layers are alike, so one is enough."""
    refused = 0
    for (command, printed), (asked, _) in zip(examples(TEXT), EXAMPLES, strict=True):
        text = " ".join(printed.split())
        for layout in re.findall(r"(\S+) cannot share", text):
            refused += 1
            sentence = text[text.index(f"{layout} cannot share") :]
            found = re.search(
                r"prefix of ([\d,]+) tokens, .*? granularity of ([\d,]+ bytes)", sentence
            )
            assert found is not None, command
            tokens, unit = int(found[1].replace(",", "")), _bytes(found[2])
            assert _any_full(asked, layout, tokens, asked.granularity)
            assert not _any_full(asked, layout, tokens - 1, asked.granularity)
            assert _any_full(asked, layout, asked.prefix, unit)
            assert not _any_full(asked, layout, asked.prefix, 2 * unit)
    assert refused


def _any_full(asked: Asked, layout: str, tokens: int, granularity: int) -> bool:
    one_layer = (1, *asked.shape[1:])
    held = live_bytes(Asked(one_layer, tokens, granularity, None, None), layout, tokens)
    return bool((held == granularity).any())


def test_requests_of_the_page_are_what_can_be_admitted() -> None:
    with_budget = 0
    for asked, answers in EXAMPLES:
        if asked.budget is None or asked.private is None:
            continue
        with_budget += 1
        for layout in LAYOUTS:
            unit, cells = asked.granularity, answers[layout]
            prefix = live_bytes(asked, layout, asked.prefix)
            shared = int((prefix == unit).sum()) * unit
            everything = live_bytes(asked, layout, asked.prefix + asked.private)
            whole = int((everything > 0).sum()) * unit
            own = whole - shared
            assert _bytes(cells["memory of each request's own"]) == own
            apart = _let_in(asked.budget, whole)
            assert cells["requests, a prefix for each"] == f"{apart:,}"
            if shared:
                sharers = _let_in(asked.budget - shared, own)
                assert cells["requests, one prefix for all"] == f"{1 + sharers:,}"
            else:
                assert cells["requests, one prefix for all"] == "-"
    assert with_budget


def _let_in(room: int, each: int) -> int:
    """Requests let in one by one."""
    number = 0
    while room >= each:
        room -= each
        number += 1
    return number
