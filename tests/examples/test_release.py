"""release: memory goes, the address stays."""

import pytest

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.machine import Release
from kvvmm_model.vocabulary import Code, Fault, Ledger, Policy, Refusal, Released, Step, refused

from support.bench import GRANULE, WITH, WITHOUT, Bench, MakeBench, close, commit, fails, release

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


# --- what is taken ------------------------------------------------------------------------------


def test_release_unmaps_runs_and_then_disposes(bench: Bench) -> None:
    serial = bench.filled(8, 0, 1, 4)
    assert bench.done(release(serial, 0, 8)) == Released(3, ())
    assert bench.lines == [
        "fence() -> ok",
        "unmap(range1, 2g) -> ok",
        "unmap(range1+4g, 1g) -> ok",
        "release(handle1) -> ok",
        "release(handle2) -> ok",
        "release(handle3) -> ok",
    ]
    assert bench.ledger == Ledger(limit=64)
    assert bench.address(serial)


@pytest.mark.parametrize(
    ("offset_bytes", "size_bytes", "stays"),
    [
        (1, 3 * GRANULE, [0, 3]),
        (GRANULE, 2 * GRANULE - 1, [0, 2, 3]),
        (GRANULE - 1, GRANULE + 1, [0, 2, 3]),
        (GRANULE, 2 * GRANULE, [0, 3]),
    ],
)
def test_release_of_bytes_takes_only_whole_windows(
    bench: Bench, offset_bytes: int, size_bytes: int, stays: list[int]
) -> None:
    serial = bench.filled(8, 0, 1, 2, 3)
    assert bench.done(Release(serial, offset_bytes, size_bytes))
    assert bench.committed(serial) == stays


def test_release_of_part_of_a_handle_reports_what_it_keeps(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 0, 2)) == 2
    assert bench.done(commit(serial, 2, 1)) == 1
    assert bench.done(commit(serial, 3, 4)) == 4
    assert bench.done(release(serial, 1, 3)) == Released(1, kept=(1, 3))
    assert bench.committed(serial) == [0, 1, 3, 4, 5, 6]


# --- refusals -----------------------------------------------------------------------------------


def test_release_again_is_refused(bench: Bench) -> None:
    """Scenario 34.  What is gone cannot go twice."""
    serial = bench.filled(8, 0)
    assert bench.done(release(serial, 0, 1)) == Released(1, ())
    assert bench.refusal(release(serial, 0, 1)) == refused(
        Refusal.NOT_COMMITTED, offset_bytes=0, size_bytes=GRANULE
    )


def test_release_of_what_was_never_committed_is_refused(bench: Bench) -> None:
    """Scenario 34.  Nothing lies there."""
    serial = bench.filled(8, 0)
    assert bench.refused(release(serial, 1, 7)) is Refusal.NOT_COMMITTED


@pytest.mark.parametrize("size_bytes", [GRANULE - 1, 1])
def test_release_of_less_than_a_window_is_refused(bench: Bench, size_bytes: int) -> None:
    """Scenario 34.  A size that holds no whole mapping."""
    serial = bench.filled(8, 0)
    assert bench.refused(Release(serial, 0, size_bytes)) is Refusal.NOT_COMMITTED


def test_release_of_half_a_handle_is_refused(make_bench: MakeBench) -> None:
    """Scenario 34.  A handle goes whole."""
    bench = make_bench(policy=Policy.RUN)
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 0, 4)) == 4
    assert bench.refused(release(serial, 0, 2)) is Refusal.NOT_COMMITTED
    assert bench.refused(release(serial, 2, 2)) is Refusal.NOT_COMMITTED


def test_release_beyond_the_end_is_refused(bench: Bench) -> None:
    """Scenario 34.  Nothing is cut down to what would fit."""
    serial = bench.filled(8, 7)
    assert bench.refused(release(serial, 7, 2)) is Refusal.RANGE
    assert bench.committed(serial) == [7]


def test_release_after_close_is_refused(bench: Bench) -> None:
    serial = bench.filled(8, 0)
    assert bench.done(close(serial)) == ()
    assert bench.refused(release(serial, 0, 1)) is Refusal.STALE


def test_release_of_a_quarantined_window_is_refused(bench: Bench) -> None:
    """Scenario 35.  Commit refuses it as well, and both name the place."""
    serial = bench.filled(8, 0)
    bench.quarantine(serial, 2)
    where = refused(Refusal.QUARANTINED, offsets_bytes=(2 * GRANULE,))
    assert bench.refusal(release(serial, 0, 4)) == where
    assert bench.refusal(commit(serial, 0, 4)) == where
    assert bench.done(release(serial, 0, 2)) == Released(1, ())


# --- the pool -----------------------------------------------------------------------------------


def test_release_into_the_pool_clears_before_it_unmaps(make_bench: MakeBench) -> None:
    bench = make_bench(retention=8)
    serial = bench.filled(8, 0, 1, 4)
    assert bench.done(release(serial, 0, 8)) == Released(3, ())
    assert bench.lines == [
        "fence() -> ok",
        "clear(range1, 2g) -> ok",
        "clear(range1+4g, 1g) -> ok",
        "fence() -> ok",
        "unmap(range1, 2g) -> ok",
        "unmap(range1+4g, 1g) -> ok",
    ]
    assert bench.pool == [1, 2, 3]
    assert bench.ledger == Ledger(limit=64, charged=3, owned=3, pooled=3)


def test_release_with_no_retention_keeps_nothing(bench: Bench) -> None:
    """Scenario 41.  A bound of zero: no clear, no pool."""
    serial = bench.filled(8, 0)
    assert bench.done(release(serial, 0, 1))
    assert bench.steps == [Step.FENCE, Step.UNMAP, Step.RELEASE]
    assert bench.pool == []


def test_release_above_the_retention_releases_the_rest(make_bench: MakeBench) -> None:
    """Scenario 41.  In window order, each that still fits: not the second, but the third."""
    bench = make_bench(policy=Policy.RUN, retention=3)
    serial = bench.reserved(8)
    for window, size in ((0, 1), (1, 4), (5, 2)):
        assert bench.done(commit(serial, window, size)) == size
    assert bench.done(release(serial, 0, 8)) == Released(7, ())
    assert bench.pool == [1, 3]
    assert bench.lines[-1] == "release(handle2) -> ok"
    assert bench.done(commit(serial, 0, 1)) == 1
    assert bench.pool == [3]


# --- faults of fences ---------------------------------------------------------------------------


@EITHER
def test_release_with_the_first_fence_failing_changes_nothing(
    make_bench: MakeBench, manner: Manner
) -> None:
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0)
    failed = bench.failed(release(serial, 0, 1), fails(Step.FENCE, manner=manner))
    assert not failed.residue
    assert bench.steps == [Step.FENCE]
    assert bench.done(release(serial, 0, 1)) == Released(1, ())


@EITHER
def test_release_with_the_second_fence_failing_quarantines_what_it_clears(
    make_bench: MakeBench, manner: Manner
) -> None:
    """Scenario 62.  The clear may still be running; what it was not called on stays in use."""
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(release(serial, 0, 2), fails(Step.FENCE, 2, manner=manner))
    assert bench.steps == [Step.FENCE, Step.CLEAR, Step.FENCE]
    assert bench.quarantined(serial) == [0]
    assert bench.committed(serial) == [1]
    assert not any(failed.residue.ledger)
    bench.write(serial, 1, 9)
    assert bench.driver.fence() is None
    assert bench.read(serial, 1) == 9


# --- faults of clears ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [fails(Step.CLEAR, 2), fails(Step.CLEAR, 2, manner=WITH)], ids=["no effect", "effect"]
)
def test_release_with_the_second_clear_failing_pools_the_first(
    make_bench: MakeBench, fault: FaultSpec
) -> None:
    """Scenario 54.  The first is in flight, so a fence comes before any unmap."""
    bench = make_bench(retention=2)
    serial = bench.filled(8, 0, 2)
    failed = bench.failed(release(serial, 0, 3), fault)
    assert failed.fault == Fault(Step.CLEAR, Code.UNKNOWN)
    assert bench.lines == [
        "fence() -> ok",
        "clear(range1, 1g) -> ok",
        "clear(range1+2g, 1g) -> UNKNOWN",
        "fence() -> ok",
        "unmap(range1, 1g) -> ok",
        "unmap(range1+2g, 1g) -> ok",
        "release(handle2) -> ok",
    ]
    assert bench.pool == [1]
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, mapped=-2, pooled=1)


def test_release_with_the_only_clear_failing_still_fences(make_bench: MakeBench) -> None:
    bench = make_bench(retention=2)
    serial = bench.filled(8, 0)
    _ = bench.failed(release(serial, 0, 1), fails(Step.CLEAR, manner=WITH))
    assert bench.steps == [Step.FENCE, Step.CLEAR, Step.FENCE, Step.UNMAP, Step.RELEASE]


@pytest.mark.parametrize(
    "fault",
    [
        fails(Step.CLEAR, lasting=True),
        fails(Step.CLEAR, manner=WITH, lasting=True),
        fails(Step.CLEAR, part=1, lasting=True),
    ],
    ids=["no effect", "effect", "in part"],
)
def test_release_with_every_clear_failing_hands_no_bytes_on(
    make_bench: MakeBench, fault: FaultSpec
) -> None:
    """Scenario 58.  Memory that is not known to be clean does not enter the pool."""
    bench = make_bench(retention=8)
    serial, other = bench.filled(8, 0, 1, 4), bench.reserved(8)
    for window in (0, 1, 4):
        bench.write(serial, window, 0xDEAD)
    _ = bench.failed(release(serial, 0, 8), fault)
    assert bench.pool == []
    assert bench.done(commit(other, 0, 3)) == 3
    assert [bench.read(other, window) for window in range(3)] == [0, 0, 0]


# --- faults of unmaps ---------------------------------------------------------------------------


@pytest.mark.parametrize(("nth", "window"), [(1, 0), (2, 2), (3, 4)])
def test_release_with_an_unmap_failing_keeps_that_run_committed(
    bench: Bench, nth: int, window: int
) -> None:
    """Scenario 32.  Confirmed still mapped: it stays, the others go, and release works again."""
    serial = bench.filled(8, 0, 2, 4)
    bench.write(serial, window, 6)
    failed = bench.failed(release(serial, 0, 8), fails(Step.UNMAP, nth))
    assert bench.steps[-2:] == [Step.RELEASE] * 2
    assert bench.committed(serial) == [window]
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, mapped=-2)
    assert bench.read(serial, window) == 6
    assert bench.done(release(serial, 0, 8)) == Released(1, ())


def test_release_with_an_unmap_failing_though_it_worked_takes_all(bench: Bench) -> None:
    """Scenario 14.  Every mapping of the run is asked about, in order, and is gone."""
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(release(serial, 0, 2), fails(Step.UNMAP, manner=WITH))
    assert bench.lines[2:] == [
        "query(range1) -> not mapped",
        "query(range1+1g) -> not mapped",
        "release(handle1) -> ok",
        "release(handle2) -> ok",
    ]
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, mapped=-2)


@pytest.mark.parametrize("part", [1, 2])
def test_release_with_an_unmap_failing_in_part_keeps_the_rest(bench: Bench, part: int) -> None:
    serial = bench.filled(8, 0, 1, 2)
    _ = bench.failed(release(serial, 0, 3), fails(Step.UNMAP, part=part))
    assert bench.committed(serial) == [0, 1, 2][part:]
    assert bench.quarantined(serial) == []
    assert bench.ledger.charged == bench.physical == 3 - part


@EITHER
def test_release_with_an_unmap_and_its_question_failing_quarantines(
    bench: Bench, manner: Manner
) -> None:
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(
        release(serial, 0, 2), fails(Step.UNMAP, manner=manner), fails(Step.QUERY, 2)
    )
    assert bench.quarantined(serial) == [1]
    assert bench.committed(serial) == ([] if manner is WITH else [0])
    assert [fault.step for fault in failed.cleanup_faults] == [Step.QUERY]


def test_release_with_an_unmap_failing_after_a_clear_reads_zero(make_bench: MakeBench) -> None:
    bench = make_bench(retention=4)
    serial = bench.filled(8, 0)
    bench.write(serial, 0, 3)
    _ = bench.failed(release(serial, 0, 1), fails(Step.UNMAP))
    assert bench.committed(serial) == [0]
    assert bench.pool == []
    assert bench.read(serial, 0) in {0, 3}
    assert bench.done(release(serial, 0, 1)) == Released(1, ())
    assert bench.pool == [1]


# --- faults of releases -------------------------------------------------------------------------


@EITHER
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_release_with_a_dispose_failing_quarantines_the_handle(
    bench: Bench, nth: int, manner: Manner
) -> None:
    """Scenario 33.  Mapped goes down once, owned stays, and the others are disposed of."""
    serial = bench.filled(8, 0, 1, 2)
    failed = bench.failed(release(serial, 0, 3), fails(Step.RELEASE, nth, manner=manner))
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, mapped=-3, quarantined=1)
    assert bench.observe().handles[nth].quarantined
    assert bench.steps.count(Step.RELEASE) == 3
    assert bench.done(commit(serial, 0, 3)) == 3


def test_release_with_several_faults_names_the_first(make_bench: MakeBench) -> None:
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0, 2)
    failed = bench.failed(
        release(serial, 0, 3), fails(Step.CLEAR), fails(Step.UNMAP, 2), fails(Step.RELEASE)
    )
    assert failed.fault.step is Step.CLEAR
    assert [fault.step for fault in failed.cleanup_faults] == [Step.UNMAP, Step.RELEASE]
