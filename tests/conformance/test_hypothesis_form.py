"""The readable form finds what it should, and nothing in the backend."""

import pytest
from hypothesis.stateful import RuleBasedStateMachine

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.canary import Canary, canaries
from kvvmm_model.conformance.comparison import Divergence
from kvvmm_model.conformance.hypothesis_form import Findings, explore, machine
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.conformance.run import fails, simulated
from kvvmm_model.trace import dump, load

UNIT = 2 << 20


def built(reached: Reached) -> type[RuleBasedStateMachine]:
    return machine(Backend, simulated, UNIT, note=reached.note)


def test_machine_with_faults_shows_no_divergence() -> None:
    reached = Reached()
    explore(built(reached), number=1, examples=150, steps=30, shrink=False)
    assert reached.operations > 2_000
    assert reached.faults_fired > 50


@pytest.mark.parametrize("canary", canaries(faults=True), ids=lambda canary: canary.name)
def test_machine_over_a_planted_bug_finds_a_sequence_that_shows_it(canary: Canary) -> None:
    findings = Findings()
    subject = canary.plant(Backend)
    kind = machine(subject, simulated, UNIT, findings=findings)
    with pytest.raises(Divergence):
        explore(kind, number=3, examples=400, steps=30, shrink=False)
    assert findings.last is not None
    sequence, divergence = findings.last
    again = fails(subject, simulated, load(dump(sequence)))
    assert again is not None
    assert again.kind == divergence.kind
