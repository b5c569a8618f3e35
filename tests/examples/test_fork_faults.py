"""fork, when its calls fail: the parent stays as it was, and the child is not there, or listed."""

import pytest

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.vocabulary import Code, Ledger, Policy, Refusal, Standing, Step

from support.bench import (
    GRANULE,
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
)

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])

LENGTH = 2 * GRANULE + 5


def parent(bench: Bench) -> int:
    """Two sealed windows, and one behind them that can be written."""
    owner, _ = bench.shared(2, more=1)
    bench.write(owner, 2, 0x77)
    return owner


@EITHER
@pytest.mark.parametrize(
    ("step", "nth"),
    [
        *((Step.FENCE, 1), (Step.MAP, 1), (Step.MAP, 2), (Step.SET_ACCESS, 1), (Step.MAP, 3)),
        *((Step.SET_ACCESS, 2), (Step.COPY, 1), (Step.FENCE, 2)),
    ],
    ids=str,
)
def test_fork_that_fails_is_undone_and_leaves_the_parent(
    bench: Bench, step: Step, nth: int, manner: Manner
) -> None:
    owner = parent(bench)
    before = bench.observe()
    failed = bench.failed(fork((owner, LENGTH)), fails(step, nth, manner=manner))
    assert failed.undone
    assert not failed.residue
    assert bench.observe() == before
    assert bench.read(owner, 2) == 0x77
    assert bench.done(fork((owner, LENGTH))) == (3,)


def test_fork_that_fails_at_the_copy_fences_once_and_undoes_newest_first(bench: Bench) -> None:
    owner = parent(bench)
    _ = bench.failed(fork((owner, LENGTH)), fails(Step.COPY))
    assert bench.lines[9:] == [
        "fence() -> ok",
        "unmap(range2+2g, 1g) -> ok",
        "release(handle4) -> ok",
        "unmap(range2+1g, 1g) -> ok",
        "unmap(range2, 1g) -> ok",
        "address_free(range2, 8g) -> ok",
    ]


@EITHER
def test_fork_whose_create_fails_with_doubt_charges_it(bench: Bench, manner: Manner) -> None:
    owner = parent(bench)
    failed = bench.failed(fork((owner, LENGTH)), fails(Step.CREATE, manner=manner))
    assert not failed.undone
    assert failed.residue.ledger == Ledger(charged=1, unattributed=1)


def test_fork_out_of_memory_is_undone(bench: Bench) -> None:
    owner = parent(bench)
    full = fails(Step.CREATE, code=Code.OUT_OF_MEMORY)
    assert bench.failed(fork((owner, LENGTH)), full).undone


@pytest.mark.parametrize(
    ("code", "doubtful"), [(Code.OUT_OF_MEMORY, 0), (Code.UNKNOWN, 8)], ids=str
)
def test_fork_without_a_range_makes_nothing(bench: Bench, code: Code, doubtful: int) -> None:
    owner = parent(bench)
    failed = bench.failed(fork((owner, LENGTH)), fails(Step.ADDRESS_RESERVE, code=code))
    assert bench.steps == [Step.ADDRESS_RESERVE]
    assert failed.residue.ledger == Ledger(unattributed_addresses=doubtful)
    assert failed.undone is not bool(doubtful)


def test_fork_of_a_group_whose_second_range_fails_frees_the_first(bench: Bench) -> None:
    owner = parent(bench)
    _ = bench.failed(
        fork((owner, LENGTH), (owner, LENGTH)),
        fails(Step.ADDRESS_RESERVE, 2, code=Code.OUT_OF_MEMORY),
    )
    assert bench.steps == [Step.ADDRESS_RESERVE, Step.ADDRESS_RESERVE, Step.ADDRESS_FREE]


def test_fork_of_a_group_whose_second_copy_fails_undoes_both(bench: Bench) -> None:
    owner = parent(bench)
    before = bench.observe()
    _ = bench.failed(fork((owner, LENGTH), (owner, LENGTH)), fails(Step.COPY, 2))
    assert bench.steps.count(Step.FENCE) == 2
    assert bench.observe() == before


@EITHER
def test_child_whose_range_is_not_freed_is_listed(bench: Bench, manner: Manner) -> None:
    owner = parent(bench)
    failed = bench.failed(
        fork((owner, LENGTH)), fails(Step.COPY), fails(Step.ADDRESS_FREE, manner=manner)
    )
    assert not failed.undone
    assert bench.observe().ranges[2].standing is Standing.QUARANTINED


def test_child_that_cannot_be_unmapped_is_closed_and_listed(bench: Bench) -> None:
    owner = parent(bench)
    _ = bench.failed(fork((owner, LENGTH)), fails(Step.SET_ACCESS, 2), fails(Step.UNMAP, 2))
    assert bench.quarantined(2) == [1]
    assert bench.observe().ranges[2].standing is Standing.CLOSED
    assert bench.refused(close(2)) is Refusal.STALE
    assert bench.done(reclaim()) == 1
    assert 2 not in bench.observe().ranges
    assert bench.committed(owner) == [0, 1, 2]


def test_nothing_is_unmapped_under_a_copy_that_may_still_land(bench: Bench) -> None:
    owner = parent(bench)
    _ = bench.failed(fork((owner, LENGTH)), fails(Step.COPY), fails(Step.FENCE, 2))
    assert bench.steps[-2:] == [Step.COPY, Step.FENCE]
    assert bench.quarantined(2) == [0, 1, 2]
    assert bench.done(reclaim()) == 3
    assert bench.observe().ranges.keys() == {owner}


def test_fork_whose_last_fence_fails_twice_quarantines_the_child(bench: Bench) -> None:
    owner = parent(bench)
    fences = (fails(Step.FENCE, 2), fails(Step.FENCE, 3))
    _ = bench.failed(fork((owner, LENGTH)), *fences)
    assert bench.steps.count(Step.FENCE) == 3
    assert bench.quarantined(2) == [0, 1, 2]


# --- the pool -----------------------------------------------------------------------------------


def pooled(make_bench: MakeBench) -> tuple[Bench, int]:
    """A parent, and one handle in the pool."""
    bench = make_bench(retention=4)
    owner, _ = bench.shared(1, more=2)
    bench.write(owner, 1, 0x5EC)
    _ = bench.done(release(owner, 2, 1))
    assert bench.pool == [3]
    return bench, owner


def test_pool_hit_that_was_not_copied_into_goes_back(make_bench: MakeBench) -> None:
    bench, owner = pooled(make_bench)
    failed = bench.failed(fork((owner, GRANULE + 1)), fails(Step.SET_ACCESS, 2))
    assert not failed.residue
    assert bench.pool == [3]


def test_pool_hit_that_a_copy_was_called_on_is_released(make_bench: MakeBench) -> None:
    """It may hold the parent's bytes, and nobody else may read those."""
    bench, owner = pooled(make_bench)
    failed = bench.failed(fork((owner, GRANULE + 1)), fails(Step.COPY, manner=WITH))
    assert failed.undone
    assert bench.pool == []
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, pooled=-1)


def test_pool_hit_stays_quarantined_with_a_mapping_that_stays(make_bench: MakeBench) -> None:
    bench, owner = pooled(make_bench)
    _ = bench.failed(fork((owner, GRANULE + 1)), fails(Step.SET_ACCESS, 2), fails(Step.UNMAP))
    assert bench.quarantined(2) == [1]
    assert bench.pool == []


def test_fork_out_of_memory_gives_up_the_pool_for_the_create(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8)
    owner = bench.reserved(8)
    _ = bench.done(commit(owner, 0, 1))
    _ = bench.done(publish(owner, 1))
    _ = bench.done(seal(1))
    _ = bench.done(commit(owner, 1, 1))
    _ = bench.done(commit(owner, 4, 2))
    _ = bench.done(release(owner, 4, 2))
    full = fails(Step.CREATE, code=Code.OUT_OF_MEMORY)
    assert bench.done(fork((owner, GRANULE + 1)), full) == (2,)
    assert bench.pool == []


def test_fork_with_what_is_given_up_failing_ends_there(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8, limit=4)
    owner = bench.reserved(8)
    _ = bench.done(commit(owner, 0, 1))
    _ = bench.done(publish(owner, 1))
    _ = bench.done(seal(1))
    _ = bench.done(commit(owner, 1, 1))
    _ = bench.done(commit(owner, 4, 2))
    _ = bench.done(release(owner, 4, 2))
    _ = bench.failed(fork((owner, GRANULE + 1)), fails(Step.RELEASE))
    assert bench.steps == [Step.RELEASE]
    assert bench.ledger.quarantined == 2


# --- a lost device ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "lost", "quarantined", "standing"),
    [
        ((), (Step.ADDRESS_RESERVE, 1), [], None),
        ((), (Step.FENCE, 1), [], Standing.QUARANTINED),
        ((), (Step.MAP, 2), [0, 1], Standing.CLOSED),
        ((), (Step.SET_ACCESS, 1), [0, 1], Standing.CLOSED),
        ((), (Step.CREATE, 1), [0, 1], Standing.CLOSED),
        ((), (Step.COPY, 1), [0, 1, 2], Standing.CLOSED),
        ((), (Step.FENCE, 2), [0, 1, 2], Standing.CLOSED),
        ((Step.COPY,), (Step.UNMAP, 1), [0, 1, 2], Standing.CLOSED),
        ((Step.COPY,), (Step.RELEASE, 1), [0, 1], Standing.CLOSED),
        ((Step.COPY,), (Step.UNMAP, 3), [0], Standing.CLOSED),
        ((Step.COPY,), (Step.ADDRESS_FREE, 1), [], Standing.QUARANTINED),
    ],
    ids=str,
)
def test_fork_that_loses_the_device_quarantines_the_child(
    bench: Bench,
    first: tuple[Step, ...],
    lost: tuple[Step, int],
    quarantined: list[int],
    standing: Standing | None,
) -> None:
    owner = parent(bench)
    faults: list[FaultSpec] = [fails(step) for step in first]
    _ = bench.failed(
        fork((owner, LENGTH)), *faults, fails(lost[0], lost[1], code=Code.ILLEGAL_ADDRESS)
    )
    assert bench.quarantined(2) == quarantined
    found = bench.observe().ranges.get(2)
    assert (found and found.standing) is standing
    assert bench.committed(owner) == [0, 1, 2]
    assert bench.refused(fork((owner, LENGTH))) is Refusal.DEVICE_LOST
    assert bench.refused(fork()) is Refusal.DEVICE_LOST


def test_group_that_loses_the_device_freeing_ranges_keeps_the_other(bench: Bench) -> None:
    owner = parent(bench)
    _ = bench.failed(
        fork((owner, 2 * GRANULE), (owner, 2 * GRANULE)),
        fails(Step.MAP, 4),
        fails(Step.ADDRESS_FREE, 2, code=Code.ILLEGAL_ADDRESS),
    )
    ranges = bench.observe().ranges
    assert 3 not in ranges  # freed, being the newer one
    assert ranges[2].standing is Standing.QUARANTINED
