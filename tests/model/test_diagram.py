"""The transition tables against what sequences with faults do, both ways."""

from functools import cache
from itertools import chain

import pytest

from kvvmm_model.conformance.comparison import Comparison, Seen
from kvvmm_model.conformance.run import run, simulated
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.diagram import MACHINES, PARTS, START, Machine, mermaid, plain, rewritten
from kvvmm_model.language import parse
from kvvmm_model.machine import OPERATIONS, name_of

from support.bench import Model

SEEDS = range(600)
"""Three times what it takes: the rarest arrow is a pooled handle that a commit loses."""

UNCERTAIN = "reserve 2; commit 0..1; publish 1; fault set_access lasting; seal p1"
RARE = (
    f"{UNCERTAIN}; fault unmap; fault query; release 0..1",
    f"{UNCERTAIN}; fault fence; close",
    f"{UNCERTAIN}; fault set_access; seal p1",
    f"{UNCERTAIN}; seal p1",
    "world retention=1; reserve 2; commit 0..2; release 1..2; fault copy; fault release; fork 1B",
    "reserve 2; commit 0..2; fault release effect; release 1..2; fork 1B",
    "reserve 2; commit 0..1; reserve 2; fault address_free effect; close r2; fork r1 1B",
)
"""Arrows that take more luck than these seeds have."""

Transition = tuple[str, str, str, str]
"""Machine, source, target, operation."""


@cache
def _seen() -> frozenset[Transition]:
    """Every transition that the model makes in the sequences of these seeds."""
    seen: set[Transition] = set()

    def note(step: Seen) -> None:
        operation = name_of(step.step.operation)
        after = step.transition.state
        if after is not step.before:
            for machine in MACHINES:
                seen.update(
                    (machine.name, *pair, operation) for pair in machine.made(step.before, after)
                )

    drawn = (Swarm(seed, granularity_bytes=4096).sequence() for seed in SEEDS)
    for sequence in chain(drawn, (parse(text).sequence for text in RARE)):
        run(Comparison(Model, simulated(sequence.world), sequence.world), sequence, note)
    return frozenset(seen)


def _listed(machine: Machine) -> set[Transition]:
    return {(machine.name, arc.source, arc.target, arc.operation) for arc in machine.arcs}


def test_every_transition_seen_is_in_the_table() -> None:
    listed = {each for machine in MACHINES for each in _listed(machine)}
    assert sorted(_seen() - listed) == []


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_transition_in_the_table_is_seen(machine: Machine) -> None:
    assert sorted(_listed(machine) - _seen()) == []


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_table_names_operations_and_lists_nothing_twice(machine: Machine) -> None:
    assert {arc.operation for arc in machine.arcs} <= set(OPERATIONS)
    assert len(_listed(machine)) == len(machine.arcs)
    assert machine.arcs[0].source == START


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_both_drawings_have_every_arc(machine: Machine) -> None:
    drawn, text = mermaid(machine).splitlines(), plain(machine).splitlines()
    for arc in machine.arcs:
        source = "[*]" if arc.source == START else arc.source
        arrows = [line for line in drawn if line.startswith(f"    {source} --> {arc.target}:")]
        assert len(arrows) == 1
        assert arc.operation in arrows[0]
        assert sum(arc.when in line and arc.operation in line for line in text) >= 1


def test_rewriting_a_page_changes_only_what_is_between_markers() -> None:
    page = "above\n<!-- refusals -->\nold\n<!-- /refusals -->\nbelow\n"
    expected = f"above\n<!-- refusals -->\n{PARTS['refusals']()}\n<!-- /refusals -->\nbelow\n"
    assert rewritten(page) == expected
    assert rewritten(expected) == expected


def test_rewriting_a_page_without_an_end_marker_says_so() -> None:
    with pytest.raises(ValueError, match="/codes"):
        _ = rewritten("<!-- codes -->\n")
