"""fork, when its undoing fails as well: the parent is as it was, the child gone or listed."""

import pytest

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.machine import Operation
from kvvmm_model.vocabulary import Code, Ledger, Policy, Refusal, Standing, Step

from support.bench import (
    GRANULE,
    PART,
    WITH,
    WITHOUT,
    Bench,
    MakeBench,
    close,
    commit,
    fails,
    fork,
    publish,
    reclaim,
    release,
    seal,
    set_limit,
)
from support.ending import everything_ends

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])

LENGTH = 2 * GRANULE + 5


def parent(bench: Bench) -> int:
    """Two sealed windows, and one behind them that can be written."""
    owner, _ = bench.shared(2, more=1)
    bench.write(owner, 2, 0x77)
    return owner


def still_whole(bench: Bench, owner: int) -> None:
    """The parent is as it was, and can be forked."""
    assert bench.committed(owner) == [0, 1, 2]
    assert bench.read(owner, 2) == 0x77
    child = bench.done(fork((owner, LENGTH)))
    assert isinstance(child, tuple)
    everything_ends(bench)


@EITHER
@pytest.mark.parametrize(("nth", "window"), [(1, 2), (2, 1), (3, 0)])
def test_fork_whose_undoing_unmap_fails_leaves_that_window_only(
    bench: Bench, nth: int, window: int, manner: Manner
) -> None:
    owner = parent(bench)
    failed = bench.failed(
        fork((owner, LENGTH)), fails(Step.COPY), fails(Step.UNMAP, nth, manner=manner)
    )
    if manner is WITH:
        assert failed.undone
        assert 2 not in bench.observe().ranges
    else:
        own = int(nth == 1)  # its memory stays with it; what is shared was there before
        assert failed.residue.ledger == Ledger(charged=own, owned=own, mapped=1)
        assert bench.quarantined(2) == [window]
        assert bench.observe().ranges[2].standing is Standing.CLOSED
    still_whole(bench, owner)


def test_fork_whose_undoing_cannot_ask_leaves_the_window_though_it_is_gone(bench: Bench) -> None:
    owner = parent(bench)
    _ = bench.failed(
        fork((owner, LENGTH)), fails(Step.COPY), fails(Step.UNMAP, manner=WITH), fails(Step.QUERY)
    )
    assert bench.quarantined(2) == [2]
    assert bench.done(reclaim(2)) == 1
    assert bench.steps == [Step.FENCE, Step.QUERY, Step.RELEASE, Step.ADDRESS_FREE]
    still_whole(bench, owner)


@EITHER
def test_fork_whose_undoing_release_fails_keeps_the_handle_charged(
    bench: Bench, manner: Manner
) -> None:
    owner = parent(bench)
    failed = bench.failed(
        fork((owner, LENGTH)), fails(Step.SET_ACCESS, 2), fails(Step.RELEASE, manner=manner)
    )
    assert not failed.undone
    assert failed.residue.ledger == Ledger(charged=1, owned=1, quarantined=1)
    assert 2 not in bench.observe().ranges
    still_whole(bench, owner)


@EITHER
def test_fork_whose_undoing_address_free_fails_lists_the_range(
    bench: Bench, manner: Manner
) -> None:
    owner = parent(bench)
    _ = bench.failed(
        fork((owner, LENGTH)), fails(Step.FENCE), fails(Step.ADDRESS_FREE, manner=manner)
    )
    assert bench.observe().ranges[2].standing is Standing.QUARANTINED
    assert bench.done(fork((owner, LENGTH))) == (3,)
    assert (2 in bench.observe().ranges) is (manner is WITHOUT)  # its addresses came again
    everything_ends(bench)


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("step", [Step.SET_ACCESS, Step.COPY], ids=str)
def test_fork_of_which_a_run_works_in_part_is_undone(
    make_bench: MakeBench, step: Step, part: int
) -> None:
    """The copy goes into handles of two and one; the rights are for two that are shared."""
    bench = make_bench(policy=Policy.RUN)
    owner = bench.reserved(8)
    for operation in (commit(1, 0, 1), commit(1, 1, 1), publish(1, 2), seal(1), commit(1, 2, 4)):
        _ = bench.done(operation)
    before = bench.observe()
    spec = FaultSpec(step, PART, Code.UNKNOWN, part=part)
    failed = bench.failed(fork((owner, 5 * GRANULE)), spec)
    assert failed.undone
    assert bench.observe() == before
    everything_ends(bench)


def test_fork_over_a_broken_driver_goes_on_undoing_to_the_end(bench: Bench) -> None:
    owner = parent(bench)
    failed = bench.failed(
        fork((owner, LENGTH)),
        fails(Step.COPY),
        fails(Step.UNMAP, lasting=True),
        fails(Step.QUERY, lasting=True),
    )
    assert bench.steps[-7:] == [Step.FENCE, *[Step.UNMAP, Step.QUERY] * 3]
    assert len(failed.cleanup_faults) == 6
    assert bench.quarantined(2) == [0, 1, 2]
    assert bench.ledger.charged == bench.physical == 4
    still_whole(bench, owner)


# --- groups -------------------------------------------------------------------------------------


def mixed(bench: Bench) -> tuple[int, Operation]:
    """A fork of three: one child shares, one shares and copies, one copies only."""
    owner = parent(bench)
    plain = bench.filled(8, 0)
    lengths = ((owner, 2 * GRANULE), (owner, LENGTH), (plain, 9))
    return owner, fork(*lengths)


CALLS = [
    *((Step.FENCE, 1), *((Step.MAP, nth) for nth in range(1, 7)), (Step.SET_ACCESS, 1)),
    *((Step.SET_ACCESS, 2), (Step.SET_ACCESS, 3), (Step.SET_ACCESS, 4)),
    *((Step.COPY, 1), (Step.COPY, 2), (Step.FENCE, 2)),
]


@EITHER
@pytest.mark.parametrize(("step", "nth"), CALLS, ids=str)
def test_fork_of_a_group_with_any_call_failing_makes_none(
    bench: Bench, step: Step, nth: int, manner: Manner
) -> None:
    owner, operation = mixed(bench)
    before = bench.observe()
    failed = bench.failed(operation, fails(step, nth, manner=manner))
    assert failed.undone
    assert not failed.residue
    assert bench.observe() == before
    assert bench.done(operation) == (6, 7, 8)
    still_whole(bench, owner)


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("code", [Code.OUT_OF_MEMORY, Code.UNKNOWN], ids=str)
def test_fork_of_a_group_with_a_create_failing_makes_none(
    bench: Bench, nth: int, code: Code
) -> None:
    owner, operation = mixed(bench)
    failed = bench.failed(operation, fails(Step.CREATE, nth, code=code))
    doubt = int(code == Code.UNKNOWN)
    assert failed.residue.ledger == Ledger(charged=doubt, unattributed=doubt)
    assert bench.steps.count(Step.RELEASE) == nth - 1
    assert bench.steps.count(Step.ADDRESS_FREE) == 3
    still_whole(bench, owner)


def test_fork_of_a_group_undoes_newest_first_across_its_children(bench: Bench) -> None:
    _, operation = mixed(bench)
    _ = bench.failed(operation, fails(Step.COPY, 2))
    undone = bench.lines[bench.steps.index(Step.COPY) + 4 :]
    assert undone == [
        "fence() -> ok",
        "unmap(range5, 1g) -> ok",
        "unmap(range4+2g, 1g) -> ok",
        "release(handle6) -> ok",
        "release(handle5) -> ok",
        "unmap(range4+1g, 1g) -> ok",
        "unmap(range4, 1g) -> ok",
        "unmap(range3+1g, 1g) -> ok",
        "unmap(range3, 1g) -> ok",
        "address_free(range5, 8g) -> ok",
        "address_free(range4, 8g) -> ok",
        "address_free(range3, 8g) -> ok",
    ]


def test_fork_of_a_group_under_a_copy_closes_every_child_that_has_a_mapping(bench: Bench) -> None:
    _, operation = mixed(bench)
    _ = bench.failed(operation, fails(Step.COPY), fails(Step.FENCE, 2))
    ranges = bench.observe().ranges
    assert [bench.quarantined(child) for child in (3, 4)] == [[0, 1], [0, 1, 2]]
    assert ranges[3].standing is ranges[4].standing is Standing.CLOSED
    assert 5 not in ranges  # nothing was mapped there yet
    for child in (3, 4):
        assert bench.refused(close(child)) is Refusal.STALE
    everything_ends(bench)


# --- room that is made for it -------------------------------------------------------------------


@EITHER
@pytest.mark.parametrize("nth", [1, 2])
def test_fork_with_a_second_thing_to_give_up_failing_says_what_is_gone(
    make_bench: MakeBench, nth: int, manner: Manner
) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8, limit=8)
    owner = bench.reserved(16)
    for operation in (commit(1, 0, 1), publish(1, 1), seal(1), commit(1, 1, 1)):
        _ = bench.done(operation)
    for window in (4, 8):
        _ = bench.done(commit(owner, window, 2))
    _ = bench.done(release(owner, 4, 12))
    _ = bench.done(set_limit(3))
    failed = bench.failed(fork((owner, GRANULE + 1)), fails(Step.RELEASE, nth, manner=manner))
    assert bench.steps == [Step.RELEASE] * nth
    lost = 2 * (nth - 1)
    assert failed.residue.ledger == Ledger(
        charged=-lost, owned=-lost, pooled=-lost - 2, quarantined=2
    )
    assert bench.ledger.granted == 0
    everything_ends(bench)


def test_fork_short_of_room_gives_up_all_it_needs_and_no_hit(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8, limit=7)
    owner = bench.reserved(16)
    for operation in (commit(1, 0, 1), publish(1, 1), seal(1), commit(1, 1, 2)):
        _ = bench.done(operation)
    for window, size in ((4, 1), (8, 2)):
        _ = bench.done(commit(owner, window, size))
    _ = bench.done(release(owner, 4, 12))
    _ = bench.done(set_limit(5))
    assert bench.done(fork((owner, GRANULE + 1), (owner, GRANULE + 1))) == (2, 3)
    assert bench.steps[0] is Step.RELEASE
    assert bench.steps.count(Step.CREATE) == 1  # the other child has the hit
    assert bench.ledger == Ledger(limit=5, charged=5, owned=5, mapped=7)
    everything_ends(bench)
