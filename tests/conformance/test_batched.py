"""The batched form: every byte string is a sequence, and the form finds what it should."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.batched import BYTES, LENGTH, PASSAGES, batch, decode, explore_batch
from kvvmm_model.conformance.canary import Canary, canaries
from kvvmm_model.conformance.choices import STEP_BYTES, WORLD_BYTES, FromBytes, Part
from kvvmm_model.conformance.comparison import Divergence
from kvvmm_model.conformance.hypothesis_form import Findings
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.conformance.run import fails, shortest, simulated
from kvvmm_model.faulting import FaultPlan
from kvvmm_model.machine import Operation, Reserve, SetLimit
from kvvmm_model.sequence import NO_FAULTS, Sequence, World
from kvvmm_model.trace import dump, load
from kvvmm_model.vocabulary import Driver, Policy

UNIT = 2 << 20


def drawn(number: int) -> bytes:
    return Random(number).randbytes(BYTES)


ANY_BYTES = st.one_of(st.binary(max_size=BYTES + 10), st.integers().map(drawn))


def without(data: bytes, number: int) -> bytes:
    """The same with zeros for one step."""
    start = WORLD_BYTES + number * STEP_BYTES
    return data[:start] + bytes(STEP_BYTES) + data[start + STEP_BYTES :]


def kept(sequence: Sequence) -> list[tuple[type[Operation], FaultPlan]]:
    """What a step is, whatever reservation it is about; not the reservations made up for it."""
    return [
        (type(step.operation), step.faults)
        for step in sequence.steps
        if not isinstance(step.operation, Reserve) or step.faults.specs
    ]


def found_by(canary: Canary, number: int, *, shrink: bool) -> tuple[Sequence, Divergence]:
    findings = Findings()
    compare = batch(canary.plant(Backend), simulated, UNIT, findings=findings)
    with pytest.raises(Divergence):
        explore_batch(compare, number=number, examples=400, shrink=shrink)
    assert findings.last is not None
    return findings.last


# --- bytes ----------------------------------------------------------------------------------------


@given(data=ANY_BYTES)
def test_decode_of_any_bytes_gives_a_sequence_that_a_trace_can_hold(data: bytes) -> None:
    sequence = decode(data, UNIT)
    assert dump(load(dump(sequence))) == dump(sequence)
    assert repr(decode(data, UNIT)) == repr(sequence)


@given(data=ANY_BYTES)
def test_decode_takes_missing_bytes_for_zeros_and_ignores_surplus(data: bytes) -> None:
    whole = data.ljust(BYTES, b"\0")[:BYTES]
    assert repr(decode(data, UNIT)) == repr(decode(whole, UNIT))


@pytest.mark.parametrize("data", [b"", bytes(BYTES), bytes(3)])
def test_decode_of_zeros_is_no_step_in_the_simplest_world(data: bytes) -> None:
    sequence = decode(data, UNIT)
    assert sequence.steps == ()
    assert sequence.world.settings.policy is Policy.GRANULE
    assert sequence.world.settings.clear_pooled


@pytest.mark.parametrize("first", range(1, PASSAGES))
def test_decode_of_a_name_and_zeros_is_an_operation_without_faults(first: int) -> None:
    steps = decode(bytes(WORLD_BYTES) + bytes([first]), UNIT).steps
    assert 1 <= len(steps) <= 2, "with the reservation that it needs"
    assert all(step.faults is NO_FAULTS for step in steps)


SHARING = 6
"""The byte that says whether memory is shared."""


@given(data=st.integers().map(drawn), number=st.integers(0, LENGTH - 1))
def test_decode_with_a_step_of_zeros_leaves_the_other_steps(data: bytes, number: int) -> None:
    """Where nothing is shared: what is shared depends on what the model says is there by then."""
    data = data[:SHARING] + b"\0" + data[SHARING + 1 :]
    whole, less = kept(decode(data, UNIT)), kept(decode(without(data, number), UNIT))
    gone = len(whole) - len(less)
    assert gone >= 0
    assert any(less == whole[:at] + whole[at + gone :] for at in range(len(less) + 1))


@given(data=ANY_BYTES, most=st.integers(1, 16))
def test_decode_with_most_sets_no_limit_above_it(data: bytes, most: int) -> None:
    sequence = decode(data, UNIT, most=most)
    assert sequence.world.limit <= most
    for step in sequence.steps:
        match step.operation:
            case SetLimit(int() as size) if size < 1 << 70:
                assert size <= most * UNIT
            case _:
                pass


@given(data=ANY_BYTES)
def test_decode_without_faults_plans_none(data: bytes) -> None:
    assert not any(step.faults.specs for step in decode(data, UNIT, with_faults=False).steps)


@given(byte=st.integers(0, 255), stop=st.integers(1, 5 << 20))
def test_choices_from_bytes_stay_in_bounds_and_begin_with_the_simplest(
    byte: int, stop: int
) -> None:
    for value, simplest in ((byte, False), (0, True)):
        choices = FromBytes(bytes([value] * WORLD_BYTES))
        choices.turn(Part.WORLD)
        assert 0 <= choices.randrange(stop) < stop
        assert not (simplest and (choices.randrange(stop) or choices.seldom(0.9)))
        assert not (simplest and not choices.usually(0.1))
        assert not choices.seldom(0)
        assert choices.usually(1)
        assert 0 < choices.random() <= 1


# --- the form -------------------------------------------------------------------------------------


def test_batch_with_faults_shows_no_divergence_and_reaches_what_the_swarm_does() -> None:
    reached = Reached()
    compare = batch(Backend, simulated, UNIT, note=reached.note)
    number = 0
    while reached.operations < 80_000:
        explore_batch(compare, number=number, examples=100, shrink=False)
        number += 1
    assert reached.faults_fired > reached.operations // 50
    assert len(reached.never()) <= 6, reached.never()


def test_batch_without_faults_shows_no_divergence() -> None:
    reached = Reached()
    ends: list[object] = []
    compare = batch(
        Backend, simulated, UNIT, with_faults=False, note=reached.note, ended=ends.append
    )
    explore_batch(compare, number=1, examples=400, shrink=False)
    assert reached.faults_planned == 0
    assert reached.never(faults=False) == []
    assert len(ends) == 400


def test_explore_batch_with_the_same_number_runs_the_same_sequences() -> None:
    def run_of(number: int) -> list[str]:
        seen: list[str] = []

        def compare(data: bytes) -> None:
            seen.append(repr(decode(data, UNIT)))

        explore_batch(compare, number=number, examples=40, shrink=False)
        return seen

    first = run_of(11)
    assert len(set(first)) > 30
    assert first == run_of(11)
    assert first != run_of(12)


@pytest.mark.parametrize("canary", canaries(faults=True), ids=lambda canary: canary.name)
def test_batch_over_a_planted_bug_finds_a_sequence_that_shows_it(canary: Canary) -> None:
    sequence, divergence = found_by(canary, 3, shrink=False)
    again = fails(canary.plant(Backend), simulated, load(dump(sequence)))
    assert again is not None
    assert again.kind == divergence.kind


@pytest.mark.parametrize("canary", canaries(faults=False), ids=lambda canary: canary.name)
def test_batch_that_shrinks_ends_with_a_few_steps(canary: Canary) -> None:
    sequence, _ = found_by(canary, 3, shrink=True)
    assert len(sequence.steps) <= 4, "what Hypothesis made of it"
    short, _ = shortest(canary.plant(Backend), simulated, sequence)
    assert len(short.steps) <= 2
    assert not any(step.faults.specs for step in short.steps)


def test_batch_with_a_database_keeps_what_failed_and_tries_it_first() -> None:
    database = InMemoryExampleDatabase()
    canary = canaries(faults=False)[0]
    opened: list[World] = []

    def open_driver(world: World) -> Driver:
        opened.append(world)
        return simulated(world)

    findings = Findings()
    compare = batch(canary.plant(Backend), open_driver, UNIT, findings=findings)
    with pytest.raises(Divergence):
        explore_batch(compare, number=3, examples=400, shrink=True, database=database)
    first = findings.last
    opened.clear()
    with pytest.raises(Divergence):
        explore_batch(compare, number=4, examples=400, shrink=False, database=database)
    assert first is not None
    assert findings.last is not None
    assert findings.last[0] == first[0]
    assert len(opened) <= 3, "the kept one, and the same again to make sure"
