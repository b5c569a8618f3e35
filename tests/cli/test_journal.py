"""What a worker writes down is what its parent reads back."""

from pathlib import Path

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance import worker_journal
from kvvmm_model.conformance.comparison import Comparison
from kvvmm_model.conformance.run import run, simulated
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.conformance.worker_journal import JOURNAL, Journal, begun, interrupted
from kvvmm_model.conformance.worker_watched import watched
from kvvmm_model.faulting import FaultSpec
from kvvmm_model.sequence import Step

UNIT = 2 << 20


@pytest.mark.parametrize("seed", range(40))
def test_sequence_that_ran_can_be_rebuilt(seed: int, tmp_path: Path) -> None:
    sequence = Swarm(seed, granularity_bytes=UNIT).sequence()
    journal = Journal(tmp_path)
    journal.sequence(sequence.world, seed, "a bug")
    comparison = Comparison(watched(Backend, journal), simulated(sequence.world), sequence.world)
    ran: list[Step] = []
    run(comparison, sequence, lambda seen: ran.append(seen.step))
    found = interrupted(tmp_path)
    assert found is not None
    assert (found.number, found.planted, found.call) == (seed, "a bug", None)
    assert found.sequence.world == sequence.world
    assert list(map(_said, found.sequence.steps)) == list(map(_said, ran))


def _said(step: Step) -> tuple[str, frozenset[FaultSpec]]:
    """By what it prints: 1 and true are equal.  Faults of several kinds have no order."""
    return repr(step.operation), frozenset(step.faults.specs)


def test_journal_that_is_full_begins_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_journal, "_FULL_BYTES", 1000)
    sequence = Swarm(1, granularity_bytes=UNIT).sequence()
    journal = Journal(tmp_path)
    for number in range(50):
        journal.sequence(sequence.world, number, "")
        for step in sequence.steps[:5]:
            journal.step(step.operation, step.faults)
    assert (tmp_path / JOURNAL).stat().st_size < 2500
    found = interrupted(tmp_path)
    assert found is not None
    assert (found.number, len(found.sequence.steps)) == (49, 5)


def test_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    sequence = Swarm(1, granularity_bytes=UNIT).sequence()
    journal = Journal(tmp_path)
    journal.sequence(sequence.world, 7, "")
    journal.step(sequence.steps[0].operation, sequence.steps[0].faults)
    with (tmp_path / JOURNAL).open("ab") as file:
        _ = file.write(b'["commit", 1, 0')
    found = interrupted(tmp_path)
    assert found is not None
    assert len(found.sequence.steps) == 1


def test_call_that_is_being_made_is_named(tmp_path: Path) -> None:
    sequence = Swarm(1, granularity_bytes=UNIT).sequence()
    journal = Journal(tmp_path)
    assert interrupted(tmp_path) is None
    assert begun(tmp_path) is None
    journal.sequence(sequence.world, 7, "")
    assert begun(tmp_path) == (7, "")
    assert interrupted(tmp_path) is None  # nothing was done yet
    journal.step(sequence.steps[0].operation, sequence.steps[0].faults)
    for kind in Kind:
        journal.call(kind)
        found = interrupted(tmp_path)
        assert found is not None
        assert found.call is kind
