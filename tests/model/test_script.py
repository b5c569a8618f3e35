"""Every answer of every call of one operation: with a script there are finitely many."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kvvmm_model.invariants import broken
from kvvmm_model.machine import Close, Commit, Operation, Reclaim, Release, Reserve, Trim, apply
from kvvmm_model.script import Answer, Script, ScriptEnded
from kvvmm_model.state import State, Transition, initial
from kvvmm_model.vocabulary import Code, Done, Failed, Fault, Policy, Rights, Settings, Step

ADDRESS, VALUE = 1 << 40, 7


def answers(step: Step, number: int) -> Iterator[Answer]:
    """Success, and a fault that leaves the effect open; a query has two answers."""
    if step is Step.QUERY:
        yield Rights.RW
    if step is Step.ADDRESS_RESERVE:
        yield ADDRESS + 100
    elif step is Step.CREATE:
        yield VALUE + number  # no two live handles have one value
    else:
        yield None
    yield Fault(step, Code.UNKNOWN)


class Told(NamedTuple):
    """What an operation asked, and what it was answered."""

    calls: list[tuple[Step, tuple[int, ...]]]
    given: tuple[Answer, ...]


def every_transition(
    state: State, operation: Operation, begin: tuple[Answer, ...] = ()
) -> Iterator[tuple[Told, Transition]]:
    """Run the operation on every script that begins so and is as long as it needs to be."""
    script = Script(begin)
    try:
        transition = apply(state, operation, script)
    except ScriptEnded as ended:
        for answer in answers(ended.step, len(begin)):
            yield from every_transition(state, operation, (*begin, answer))
    else:
        assert len(script.calls) == len(begin), "no answer is left over"
        yield Told(script.calls, begin), transition


def state_with(windows: int, retention: int = 0) -> State:
    """Reservation 1 of four windows, the first of them committed; a granule is a byte."""
    settings = Settings(1, Policy.GRANULE, retention=retention)
    state = initial(settings, limit=8).reserved(ADDRESS, 4)
    if windows:
        committed: list[Answer] = [*range(1, windows + 1), *[None] * windows, None]
        transition = apply(state, Commit(1, 0, windows), Script(committed))
        assert transition.outcome == Done(windows)
        state = transition.state
    return state


def test_commit_of_one_window_on_every_script_has_22_outcomes() -> None:
    leaves = list(every_transition(state_with(0), Commit(1, 0, 1)))
    # create fails: 1.  All succeed: 1.  set_access fails: the unmap works and the release does or
    # does not (2), or it fails and the question has three answers (2 + 1 + 1).  map fails: the
    # same three answers: not mapped (2), mapped or open, which go on like set_access (6 + 6).
    assert len(leaves) == 1 + 1 + 6 + 2 + 6 + 6
    assert [transition.outcome for _, transition in leaves].count(Done(1)) == 1


def test_commit_of_one_window_on_every_script_is_charged_for_what_may_exist() -> None:
    for told, transition in every_transition(state_with(0), Commit(1, 0, 1)):
        steps = [step for step, _ in told.calls]
        released = steps[-1] is Step.RELEASE and isinstance(transition.outcome, Failed)
        ledger = transition.state.ledger
        assert (ledger.charged == 0) is (released and ledger.quarantined == 0)
        if Step.MAP not in steps:
            assert ledger.unattributed == 1


@pytest.mark.parametrize(
    ("state", "operation"),
    [
        (state_with(0), Reserve(1)),
        (state_with(0), Commit(1, 0, 1)),
        (state_with(0), Commit(1, 1, 2)),
        (state_with(1), Commit(1, 0, 3)),
        (state_with(1), Release(1, 0, 1)),
        (state_with(1, retention=1), Release(1, 0, 1)),
        (state_with(2, retention=1), Release(1, 0, 2)),
        (state_with(1, retention=1), Close(1)),
        (state_with(2), Close(1)),
        (state_with(1), Reclaim()),
        (state_with(1), Trim(1)),
    ],
)
def test_any_operation_on_every_script_is_done_or_failed(
    state: State, operation: Operation
) -> None:
    number = 0
    for told, transition in every_transition(state, operation):
        number += 1
        outcome = transition.outcome
        scripted = [answer for answer in told.given if isinstance(answer, Fault)]
        if isinstance(outcome, Failed):
            assert [outcome.fault, *outcome.cleanup_faults] == scripted
        else:
            assert isinstance(outcome, Done)
            assert scripted == []
        assert broken(transition.state) == []
    assert 0 < number < 5_000


def test_every_transition_of_equal_scripts_is_equal() -> None:
    state = state_with(1, retention=1)
    one = [transition for _, transition in every_transition(state, Release(1, 0, 1))]
    other = [transition for _, transition in every_transition(state, Release(1, 0, 1))]
    assert one == other
    assert [hash(t.state) for t in one] == [hash(t.state) for t in other]


def test_script_that_is_too_short_names_the_call_it_lacks() -> None:
    with pytest.raises(ScriptEnded, match="no answer left for map") as ended:
        _ = apply(state_with(0), Commit(1, 0, 1), Script([VALUE]))
    assert ended.value.step is Step.MAP


def test_script_tells_what_was_asked() -> None:
    script = Script([VALUE, None, None])
    assert apply(state_with(0), Commit(1, 2, 1), script).outcome == Done(1)
    assert script.calls == [
        (Step.CREATE, (1,)),
        (Step.MAP, (ADDRESS + 2, 1, VALUE)),
        (Step.SET_ACCESS, (ADDRESS + 2, 1, Rights.RW)),
    ]


def test_script_with_an_answer_of_another_kind_objects() -> None:
    with pytest.raises(AssertionError, match="create is answered by a number"):
        _ = Script([None]).create(1)
    with pytest.raises(AssertionError, match="unmap: 3"):
        _ = Script([3]).unmap(ADDRESS, 1)
    with pytest.raises(AssertionError, match="copy: 3"):
        _ = Script([3]).copy(ADDRESS, ADDRESS + 1, 1)
    with pytest.raises(AssertionError, match="query: 17"):
        _ = Script([17]).query(ADDRESS)
