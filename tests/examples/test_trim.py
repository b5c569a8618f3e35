"""trim: the pool goes back to the driver, and nothing else does."""

import pytest

from kvvmm_model.faulting import Manner
from kvvmm_model.machine import Trim
from kvvmm_model.vocabulary import Fault, Ledger, Policy, Step

from support.bench import (
    GRANULE,
    WITH,
    WITHOUT,
    Bench,
    MakeBench,
    commit,
    fails,
    release,
    set_limit,
    trim,
)


@pytest.fixture
def full(make_bench: MakeBench) -> Bench:
    """Handles 1 to 3 of one granule in the pool, handle 4 in window 7 of reservation 1."""
    bench = make_bench(retention=3)
    serial = bench.filled(8, 0, 1, 2, 7)
    assert bench.done(release(serial, 0, 3))
    return bench


def test_trim_releases_the_oldest_first(full: Bench) -> None:
    assert full.done(trim(2)) == 2
    assert full.lines == ["release(handle1) -> ok", "release(handle2) -> ok"]
    assert full.pool == [3]
    assert full.ledger == Ledger(limit=64, charged=2, owned=2, mapped=1, pooled=1)


@pytest.mark.parametrize("size_bytes", [4 * GRANULE, 1 << 70])
def test_trim_of_more_than_is_pooled_leaves_what_is_mapped(full: Bench, size_bytes: int) -> None:
    """Scenario 41.  Memory in use is none of its business."""
    full.write(1, 7, 21)
    assert full.done(Trim(size_bytes)) == 3
    assert full.pool == []
    assert full.committed(1) == [7]
    assert full.read(1, 7) == 21


@pytest.mark.parametrize(("size_bytes", "granules"), [(0, 0), (1, 1), (GRANULE + 1, 2)])
def test_trim_of_bytes_gives_at_least_as_many(full: Bench, size_bytes: int, granules: int) -> None:
    assert full.done(Trim(size_bytes)) == granules


def test_trim_of_an_empty_pool_calls_nothing(bench: Bench) -> None:
    assert bench.done(trim(8)) == 0
    assert bench.calls == []


def test_trim_of_large_handles_gives_whole_handles(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8)
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 0, 4)) == 4
    assert bench.done(release(serial, 0, 4))
    assert bench.done(trim(1)) == 4


@pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])
def test_trim_with_a_release_failing_goes_on(full: Bench, manner: Manner) -> None:
    """Scenario 41.  Only what is confirmed counts towards the wish."""
    failed = full.failed(trim(2), fails(Step.RELEASE, manner=manner))
    assert full.steps == [Step.RELEASE] * 3
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, pooled=-3, quarantined=1)
    assert full.done(trim(8)) == 0
    assert full.calls == []


def test_trim_with_every_release_failing_ends(full: Bench) -> None:
    failed = full.failed(trim(1), fails(Step.RELEASE, lasting=True))
    assert failed.cleanup_faults == (failed.fault, failed.fault)
    assert full.pool == []
    assert full.ledger.quarantined == 3
    assert isinstance(failed.fault, Fault)


def test_trim_after_the_limit_was_lowered_reopens_admission(full: Bench) -> None:
    assert full.done(set_limit(2)) is None
    assert full.done(trim(3)) == 3
    assert full.done(commit(1, 0, 1)) == 1
