"""What is printed is read again as the same sequence, and reads as a person would write it."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.ingredients import BAD
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner, all_specs
from kvvmm_model.language import parse, parse_statement, show, show_fault, show_operation
from kvvmm_model.machine import (
    OPERATIONS,
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
    SetLimit,
    Trim,
)
from kvvmm_model.sequence import NAN, Sequence, Step, World
from kvvmm_model.vocabulary import Code, Policy, Settings

UNIT = 2 << 20


Said = tuple[str, FaultPlan]


def said(step: Step) -> Said:
    """What a step says: 1 and true are equal, nan and nan are not, and their names tell them."""
    return repr(step.operation), step.faults


def assert_read_again(sequence: Sequence) -> None:
    again = parse(show(sequence)).sequence
    assert again.world == sequence.world
    assert list(map(said, again.steps)) == list(map(said, sequence.steps))


# --- round trips --------------------------------------------------------------------------------

AMOUNTS = (
    st.integers(-4, 12).map(lambda number: number * UNIT)
    | st.integers()
    | st.sampled_from(BAD)
    | st.floats(allow_nan=False)
    | st.text()
)
SERIALS = st.none() | st.integers(-3, 9) | AMOUNTS
ARGUMENTS: dict[str, st.SearchStrategy[object]] = {
    "reservation": SERIALS,
    "prefix": SERIALS,
    "targets": st.lists(st.tuples(SERIALS, SERIALS, AMOUNTS), max_size=3).map(tuple),
    "parents": st.lists(st.tuples(SERIALS, AMOUNTS), max_size=3).map(tuple),
}


def operations() -> st.SearchStrategy[Operation]:
    """Any operation with any arguments."""
    kinds: list[st.SearchStrategy[Operation]] = []
    for kind in OPERATIONS.values():
        arguments = [
            ARGUMENTS.get(name, AMOUNTS) for name in cast("tuple[str, ...]", kind.__match_args__)
        ]
        kinds.append(st.builds(kind, *arguments))
    return st.one_of(kinds)


@st.composite
def fault_specs(draw: st.DrawFn) -> FaultSpec:
    """Any fault that can be planned, of codes that have no name as well."""
    kind = draw(st.sampled_from(list(Kind)))
    manner, code = draw(st.sampled_from(list(all_specs(kind))))
    if draw(st.booleans()):
        code = draw(st.integers(1000, 1 << 31))
    return FaultSpec(
        kind,
        manner,
        code,
        nth=draw(st.integers(1, 1 << 40)),
        part=draw(st.integers(0, 9)) if manner is Manner.IN_PART else 0,
        lasting=draw(st.booleans()),
    )


STEPS = st.builds(Step, operations(), st.lists(fault_specs(), max_size=3).map(tuple).map(FaultPlan))
WORLDS = st.builds(
    World,
    st.builds(
        Settings,
        st.integers(0, 70).map(lambda power: 1 << power) | st.integers(1),
        st.sampled_from(Policy),
        st.integers(1),
        st.integers(0),
        st.booleans(),
    ),
    limit=st.integers(0),
    capacity=st.integers(1),
)


@given(st.builds(Sequence, WORLDS, st.lists(STEPS, max_size=4).map(tuple)))
def test_any_sequence_is_read_again(sequence: Sequence) -> None:
    assert_read_again(sequence)


@given(STEPS, st.sampled_from([1, 7, 4096, UNIT]))
def test_any_step_is_read_again_alone(step: Step, unit: int) -> None:
    text = "; ".join([*map(show_fault, step.faults.specs), show_operation(step.operation, unit)])
    assert said(parse_statement(text, unit)) == said(step)


@pytest.mark.parametrize("unit", [4096, UNIT])
def test_random_sequences_are_read_again(unit: int) -> None:
    seen: set[type[Operation]] = set()
    for seed in range(200):
        sequence = Swarm(seed, granularity_bytes=unit).sequence()
        assert_read_again(sequence)
        seen.update(type(step.operation) for step in sequence.steps)
    assert seen == set(OPERATIONS.values())


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_every_bad_argument_is_read_again_in_every_place(bad: object) -> None:
    steps = (
        *(Reserve(bad), Reserve(UNIT, bad), Commit(bad, bad, bad), Commit(1, bad, UNIT)),
        *(Commit(1, UNIT, bad), Release(bad, 0, UNIT), Release(1, bad, bad), Close(bad)),
        *(Trim(bad), Reclaim(bad), SetLimit(bad)),
        *(Publish(bad, bad), Seal(bad), Retire(bad), Attach(((bad, bad, bad),))),
        *(Fork(((bad, bad), (1, bad))), Attach(()), Fork(())),
    )
    world = World(Settings(UNIT), limit=4, capacity=4)
    assert_read_again(Sequence(world, tuple(Step(operation) for operation in steps)))


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.value)
def test_every_fault_is_read_again(kind: Kind) -> None:
    for manner, code in all_specs(kind):
        for part in (0, 1, 3) if manner is Manner.IN_PART else (0,):
            for nth, lasting in ((1, False), (1, True), (5, False)):
                spec = FaultSpec(kind, manner, code, nth, part, lasting)
                step = parse_statement(f"{show_fault(spec)}; trim 0", UNIT)
                assert step.faults.specs == (spec,)


# --- how it looks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (Reserve(4 * UNIT), "reserve 4"),
        (Reserve(4 * UNIT + 1), "reserve 8388609B"),
        (Reserve(5 << 20, 1 << 30), "reserve 5MiB align 512"),
        (Reserve(1 << 50, 4096), "reserve 536870912 align 4KiB"),
        (Reserve("4096", False), 'reserve "4096" align false'),
        (Reserve('a"b\\\n;#', None), 'reserve "a\\"b\\\\\\n;#" align none'),
        (Commit(2, 0, 3 * UNIT), "commit r2 0..3"),
        (Commit(1, UNIT, 0), "commit r1 1..1"),
        (Commit(1, 1, 4095), "commit r1 1B..4KiB"),
        (Commit(1, -1, UNIT), "commit r1 at -1B size 1"),
        (Commit(1, -UNIT, -3 << 20), "commit r1 at -1 size -3MiB"),
        (Release(1, True, 1.5), "release r1 at true size 1.5"),
        (Release(-1, 0, UNIT), "release r=-1 0..1"),
        (Close(0), "close r0"),
        (Close(None), "close r=none"),
        (Close("a b"), 'close r="a b"'),
        (Close(1 << 70), "close r1180591620717411303424"),
        (Reclaim(), "reclaim"),
        (Reclaim(3), "reclaim r3"),
        (Reclaim(True), "reclaim r=true"),
        (Trim(0), "trim 0"),
        (Trim(NAN), "trim nan"),
        (Trim(float("inf")), "trim inf"),
        (SetLimit(3 << 40), "set_limit 1572864"),
        (SetLimit(-1024), "set_limit -1KiB"),
        (Publish(1, 4 * UNIT), "publish r1 4"),
        (Publish(None, UNIT + 1), "publish r=none 2097153B"),
        (Seal(1), "seal p1"),
        (Seal(None), "seal p=none"),
        (Retire(0), "retire p0"),
        (Retire("1"), 'retire p="1"'),
        (Attach(((2, 1, 0),)), "attach r2 p1 0"),
        (Attach(((2, 1, 3 * UNIT), (3, 2, 4096))), "attach r2 p1 3 and r3 p2 4KiB"),
        (Attach(((-1, True, NAN),)), "attach r=-1 p=true nan"),
        (Attach(()), "attach nothing"),
        (Fork(((1, 5 << 20),)), "fork r1 5MiB"),
        (Fork(((1, 3 * UNIT), (2, 3 * UNIT))), "fork r1 3 and r2 3"),
        (Fork(((None, None),)), "fork r=none none"),
        (Fork(()), "fork nothing"),
    ],
)
def test_operation_is_printed_as_a_person_would_write_it(operation: Operation, text: str) -> None:
    assert show_operation(operation, UNIT) == text
    assert repr(parse_statement(text, UNIT).operation) == repr(operation)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (FaultSpec(Kind.MAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN), "fault map UNKNOWN"),
        (
            FaultSpec(Kind.CREATE, Manner.WITHOUT_EFFECT, Code.OUT_OF_MEMORY, 3),
            "fault create 3 OUT_OF_MEMORY",
        ),
        (
            FaultSpec(Kind.UNMAP, Manner.WITH_EFFECT, 77, lasting=True),
            "fault unmap code=77 effect lasting",
        ),
        (
            FaultSpec(Kind.SET_ACCESS, Manner.IN_PART, Code.INVALID_VALUE, 2, 0),
            "fault set_access 2 INVALID_VALUE part=0",
        ),
    ],
)
def test_fault_is_printed_as_a_person_would_write_it(spec: FaultSpec, text: str) -> None:
    assert show_fault(spec) == text


def test_sequence_is_printed_a_line_a_step_after_its_world() -> None:
    settings = Settings(4096, Policy.RUN, longest_run=8, retention=2, clear_pooled=False)
    plan = FaultPlan(
        (
            FaultSpec(Kind.MAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN, 2),
            FaultSpec(Kind.UNMAP, Manner.WITH_EFFECT, Code.UNKNOWN),
        )
    )
    steps = (Step(Reserve(8192)), Step(Commit(1, 0, 8192), plan), Step(Reclaim()))
    assert show(Sequence(World(settings, limit=3, capacity=5), steps)) == (
        "world granularity=4KiB policy=run longest_run=8 retention=2 clear_pooled=no"
        " limit=3 capacity=5\n"
        "reserve 2\n"
        "fault map 2 UNKNOWN; fault unmap UNKNOWN effect; commit r1 0..2\n"
        "reclaim\n"
    )
