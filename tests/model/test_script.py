"""Every answer of every call of one operation: with a script there are finitely many."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kvvmm_model.invariants import broken
from kvvmm_model.machine import (
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
    Trim,
    apply,
)
from kvvmm_model.script import Answer, Script, ScriptEnded
from kvvmm_model.state import State, Transition, initial
from kvvmm_model.vocabulary import Code, Done, Failed, Fault, Policy, Rights, Settings, Step

ADDRESS, VALUE = 1 << 40, 7


def answers(step: Step, number: int) -> Iterator[Answer]:
    """Success, and a fault that leaves the effect open; a query has two answers."""
    if step is Step.QUERY:
        yield Rights.RW
    if step is Step.ADDRESS_RESERVE:
        yield ADDRESS + 100 * (number + 1)  # no two ranges overlap
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


def sharing(windows: int, *operations: Operation) -> State:
    """Windows 0 to 2 of reservation 1 backed, so many of them sealed; reservation 2 is empty."""
    state = state_with(3).reserved(ADDRESS + 50, 4)
    for operation in (Publish(1, windows), Seal(1), *operations):
        transition = apply(state, operation, Script([None] * 20))
        assert isinstance(transition.outcome, Done)
        state = transition.state
    return state


def cut() -> State:
    """Window 0 of reservation 1 is sealed, and one handle fills the two behind it."""
    state = initial(Settings(1, Policy.RUN), limit=8).reserved(ADDRESS, 4)
    for operation in (Commit(1, 0, 1), Publish(1, 1), Seal(1), Commit(1, 1, 2)):
        script = [state.next_handle, None, None] if isinstance(operation, Commit) else [None] * 2
        transition = apply(state, operation, Script(script))
        assert isinstance(transition.outcome, Done)
        state = transition.state
    return state


ATTACHED = Attach(((2, 1, 0),))
SPLIT = Fork(((1, 2),))


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


def test_seal_of_two_windows_on_every_script_has_6_outcomes() -> None:
    leaves = list(every_transition(state_with(2).published(1, (1, 2)), Seal(1)))
    # fence fails: 1.  All succeed: 1.  set_access fails: each of two is given back or is not.
    assert len(leaves) == 1 + 1 + 2 * 2
    sealed = [transition.state.prefixes[1].sealed for _, transition in leaves]
    assert sealed.count(True) == 1


def test_attach_of_one_window_on_every_script_has_14_outcomes() -> None:
    leaves = list(every_transition(sharing(1), ATTACHED))
    # All succeed: 1.  set_access fails: the unmap works, or fails and has three answers to the
    # question after it (1 + 3).  map fails: not mapped (1); mapped or open go on so (4 + 4).
    assert len(leaves) == 1 + 4 + 1 + 4 + 4
    for _, transition in leaves:
        mapped = len(transition.state.reservations[2].mappings)
        assert transition.state.handles[1].mappings == 1 + mapped
        assert transition.state.ledger.charged == 3


def test_fork_on_every_script_has_204_outcomes_and_leaves_the_parent_as_it_was() -> None:
    """Whatever is answered to every call of it, undoing and questions included."""
    state = cut()
    leaves = list(every_transition(state, SPLIT))
    # Undoing the range: 2.  The shared mapping too: gone in 2 ways, then the range, or it stays in
    # 2 ways.  A private handle that is not mapped: released or not.  One that is: gone in 2 ways,
    # and released or not, or it stays in 2 ways, and then the range does so as well.
    free = 2
    shared = 2 * free + 2
    handle = 2 * shared
    private = 2 * 2 * shared + 2 * 4
    # In the order of the calls: a map that fails is not mapped, or mapped, or open.
    begun = 1 + free + (free + 2 * shared) + shared
    backed = shared + (handle + 2 * private) + private
    copied = 2 * (private + 1)  # the copy or its fence fails; then the fence of the undoing
    assert len(leaves) == begun + backed + copied + 1 == 204
    for told, transition in leaves:
        assert transition.state.reservations[1] == state.reservations[1]
        assert transition.state.prefixes == state.prefixes
        steps = [step for step, _ in told.calls]
        if Step.UNMAP in steps and Step.COPY in steps:  # never under a copy that may still land
            assert Step.FENCE in steps[steps.index(Step.COPY) : steps.index(Step.UNMAP)]


@pytest.mark.parametrize(
    ("state", "operation"),
    [
        (state_with(2).published(1, (1, 2)), Publish(1, 2)),
        (state_with(2).published(1, (1, 2)), Seal(1)),
        (
            state_with(3)
            .published(1, (1, 2, 3))
            .rights(state_with(3).reservations[1].mappings[:1], Rights.READ),
            Seal(1),
        ),
        (state_with(2, retention=1).published(1, (1,)), Release(1, 0, 2)),
        (state_with(2, retention=1).published(1, (1, 2)), Close(1)),
        (sharing(1), ATTACHED),
        (sharing(2), ATTACHED),
        (sharing(1), Attach(((2, 1, 0), (2, 1, 2)))),
        (sharing(1), Retire(1)),
        (sharing(2, Close(1)), Retire(1)),
        (sharing(2, ATTACHED), Close(1)),
        (sharing(2, ATTACHED, Close(1), Retire(1)), Close(2)),
        (sharing(2, ATTACHED, Close(1), Retire(1)), Release(2, 0, 2)),
        (sharing(2), SPLIT),
        (sharing(1), Fork(((1, 1), (1, 1)))),
        (cut(), SPLIT),
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
