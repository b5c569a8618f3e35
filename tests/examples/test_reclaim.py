"""reclaim: a quarantine ends with proof, or not at all."""

from random import Random

import pytest

from kvvmm_model.faulting import FaultSpec, Manner, all_specs
from kvvmm_model.machine import Operation
from kvvmm_model.vocabulary import Ledger, Policy, Refusal, Standing, Step

from support.bench import (
    PART,
    WITH,
    WITHOUT,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fails,
    reclaim,
    release,
    reserve,
    trim,
)

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


@pytest.mark.parametrize("which", [None, 1])
def test_reclaim_with_nothing_to_do_calls_nothing(bench: Bench, which: int | None) -> None:
    _ = bench.filled(8, 0)
    assert bench.done(reclaim(which)) == 0
    assert bench.calls == []


def test_reclaim_of_what_is_over_calls_nothing(bench: Bench) -> None:
    serial = bench.reserved(8)
    assert bench.done(close(serial)) == ()
    assert bench.done(reclaim(serial)) == 0
    assert bench.calls == []


def test_reclaim_of_what_never_was_is_refused(bench: Bench) -> None:
    serial = bench.reserved(8)
    assert bench.refused(reclaim(serial + 1)) is Refusal.STALE


def test_reclaim_of_a_mapped_window_unmaps_it(bench: Bench) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 2)
    assert bench.done(reclaim(serial)) == 1
    assert bench.lines == [
        "fence() -> ok",
        "query(range1+2g) -> NONE",
        "unmap(range1+2g, 1g) -> ok",
        "release(handle1) -> ok",
    ]
    assert bench.ledger == Ledger(limit=64)
    assert bench.done(commit(serial, 2, 1)) == 1


def test_reclaim_of_a_window_that_is_gone_only_asks(bench: Bench) -> None:
    serial = bench.filled(8, 2)
    lost_answer = fails(Step.UNMAP, manner=WITH), fails(Step.QUERY)
    _ = bench.failed(release(serial, 2, 1), *lost_answer)
    assert bench.done(reclaim(serial)) == 1
    assert bench.steps == [Step.FENCE, Step.QUERY, Step.RELEASE]
    assert bench.ledger == Ledger(limit=64)


def test_reclaim_without_an_argument_fences_once_for_all(bench: Bench) -> None:
    first, second, _ = bench.reserved(4), bench.reserved(4), bench.reserved(4)
    for serial, window in ((second, 1), (first, 3), (first, 0)):
        bench.quarantine(serial, window)
    assert bench.done(close(first)) == (0, 3)
    assert bench.done(reclaim()) == 3
    assert bench.lines == [
        "fence() -> ok",
        "query(range1) -> NONE",
        "unmap(range1, 1g) -> ok",
        "release(handle3) -> ok",
        "query(range1+3g) -> NONE",
        "unmap(range1+3g, 1g) -> ok",
        "release(handle2) -> ok",
        "address_free(range1, 4g) -> ok",
        "query(range2+1g) -> NONE",
        "unmap(range2+1g, 1g) -> ok",
        "release(handle1) -> ok",
    ]


def test_reclaim_of_one_leaves_the_others(bench: Bench) -> None:
    first, second = bench.reserved(4), bench.reserved(4)
    for serial in (first, second):
        bench.quarantine(serial, 0)
    assert bench.done(reclaim(second)) == 1
    assert bench.quarantined(first) == [0]
    assert bench.quarantined(second) == []


def test_reclaim_never_pools(make_bench: MakeBench) -> None:
    bench = make_bench(retention=8)
    serial = bench.filled(8, 0)
    _ = bench.failed(close(serial), fails(Step.FENCE))
    assert bench.done(reclaim()) == 1
    assert bench.pool == []


def test_reclaim_of_memory_that_somebody_else_holds_only_unmaps(bench: Bench) -> None:
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.failed(attach((sharer, prefix, 0)), fails(Step.SET_ACCESS), fails(Step.UNMAP))
    assert bench.done(reclaim()) == 1
    assert bench.steps == [Step.FENCE, Step.QUERY, Step.UNMAP]
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)
    assert bench.committed(owner) == [0]


# --- faults -------------------------------------------------------------------------------------


@EITHER
def test_reclaim_with_the_fence_failing_changes_nothing(bench: Bench, manner: Manner) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    failed = bench.failed(reclaim(), fails(Step.FENCE, manner=manner))
    assert not failed.residue
    assert bench.steps == [Step.FENCE]
    assert bench.done(reclaim()) == 1


def test_reclaim_with_a_query_failing_goes_on_with_the_next(bench: Bench) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    bench.quarantine(serial, 1)
    failed = bench.failed(reclaim(), fails(Step.QUERY))
    assert bench.steps == [Step.FENCE, Step.QUERY, Step.QUERY, Step.UNMAP, Step.RELEASE]
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, mapped=-1)
    assert bench.quarantined(serial) == [0]


@pytest.mark.parametrize(("manner", "stays"), [(WITHOUT, [0]), (WITH, [])])
def test_reclaim_with_an_unmap_failing_asks_again(
    bench: Bench, manner: Manner, stays: list[int]
) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    _ = bench.failed(reclaim(), fails(Step.UNMAP, manner=manner))
    assert bench.steps[:4] == [Step.FENCE, Step.QUERY, Step.UNMAP, Step.QUERY]
    assert bench.quarantined(serial) == stays
    assert (bench.steps[4:] == []) is bool(stays)


@EITHER
def test_reclaim_with_an_unmap_and_both_questions_open_changes_nothing(
    bench: Bench, manner: Manner
) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    failed = bench.failed(reclaim(), fails(Step.UNMAP, manner=manner), fails(Step.QUERY, 2))
    assert not failed.residue
    assert [fault.step for fault in failed.cleanup_faults] == [Step.QUERY]
    assert bench.done(reclaim()) == 1


@EITHER
def test_reclaim_with_a_release_failing_quarantines_the_handle(
    bench: Bench, manner: Manner
) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    failed = bench.failed(reclaim(), fails(Step.RELEASE, manner=manner))
    assert failed.residue.ledger == Ledger(mapped=-1, quarantined=1)
    assert bench.done(reclaim()) == 0
    assert bench.calls == []
    assert bench.done(commit(serial, 0, 1)) == 1


@EITHER
def test_reclaim_with_address_free_failing_lists_the_range(bench: Bench, manner: Manner) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    assert bench.done(close(serial)) == (0,)
    failed = bench.failed(reclaim(), fails(Step.ADDRESS_FREE, manner=manner))
    assert failed.fault.step is Step.ADDRESS_FREE
    assert bench.observe().ranges[serial].standing is Standing.QUARANTINED
    assert bench.done(reclaim()) == 0
    assert bench.calls == []


# --- the end of everything ----------------------------------------------------------------------


def _some_fault(random: Random) -> FaultSpec:
    step = random.choice(list(Step))
    manner, code = random.choice(list(all_specs(step)))
    part = random.randint(1, 2) if manner is PART else 0
    spec = FaultSpec(step, manner, code, random.randint(1, 3), part, random.random() < 0.1)
    return spec if not spec.sticky else _some_fault(random)


def _some_operation(random: Random) -> Operation:
    serial, window, size = random.randint(1, 4), random.randint(0, 7), random.randint(1, 6)
    return random.choice(
        [
            reserve(8),
            commit(serial, window, size),
            commit(serial, window, size),
            release(serial, window, size),
            release(serial, window, size),
            close(serial),
            trim(size),
            reclaim(),
        ]
    )


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("seed", range(10))
def test_reclaim_after_a_random_run_leaves_only_what_is_listed(
    make_bench: MakeBench, seed: int, policy: Policy
) -> None:
    """Scenario 42.  Everything closed, trimmed and reclaimed, the driver holds nothing."""
    random = Random(seed)
    bench = make_bench(policy=policy, retention=5, limit=20, capacity=16)
    for _ in range(80):
        faults = [_some_fault(random) for _ in range(random.randint(0, 2))]
        _ = bench.run(_some_operation(random), *faults, all_fire=False)
    bench.settle()
    for view in list(bench.observe().ranges.values()):
        if view.standing is Standing.OPEN:
            assert isinstance(bench.done(close(view.reservation)), tuple)
    pooled = bench.ledger.pooled
    assert bench.done(trim(64)) == pooled
    _ = bench.done(reclaim())
    end = bench.observe()
    assert end.mappings == {}
    assert bench.pool == []
    assert all(handle.quarantined for handle in end.handles.values())
    assert all(view.standing is Standing.QUARANTINED for view in end.ranges.values())
    assert end.ledger.charged == end.ledger.quarantined + end.ledger.unattributed
    assert bench.physical == 0
    assert bench.driver.live_mappings() == {}
    assert bench.driver.live_ranges() == {}
