"""close: the end of a reservation, also where it cannot be a clean one."""

import pytest

from kvvmm_model.faulting import Manner
from kvvmm_model.vocabulary import Fault, Ledger, Policy, Refusal, Standing, Step, refused

from support.bench import (
    WITH,
    WITHOUT,
    Bench,
    MakeBench,
    close,
    commit,
    fails,
    reclaim,
)

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


def test_close_of_an_empty_range_only_frees_it(bench: Bench) -> None:
    serial = bench.reserved(8)
    assert bench.done(close(serial)) == ()
    assert bench.lines == ["address_free(range1, 8g) -> ok"]
    assert bench.driver.live_ranges() == {}


def test_close_unmaps_disposes_and_frees(make_bench: MakeBench) -> None:
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0, 1, 4)
    assert bench.done(close(serial)) == ()
    assert bench.lines == [
        "fence() -> ok",
        "clear(range1, 1g) -> ok",
        "fence() -> ok",
        "unmap(range1, 2g) -> ok",
        "unmap(range1+4g, 1g) -> ok",
        "release(handle2) -> ok",
        "release(handle3) -> ok",
        "address_free(range1, 8g) -> ok",
    ]
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, pooled=1)


def test_close_again_is_refused(bench: Bench) -> None:
    serial = bench.reserved(8)
    assert bench.done(close(serial)) == ()
    assert bench.refusal(close(serial)) == refused(Refusal.STALE, reservation=serial)


def test_close_leaves_other_reservations_alone(bench: Bench) -> None:
    first, second = bench.filled(4, 0), bench.filled(4, 0)
    bench.write(second, 0, 12)
    assert bench.done(close(first)) == ()
    assert bench.read(second, 0) == 12


def test_close_around_quarantine_keeps_the_range(bench: Bench) -> None:
    serial = bench.filled(8, 0)
    bench.quarantine(serial, 3)
    assert bench.done(close(serial)) == (3,)
    assert bench.lines == ["fence() -> ok", "unmap(range1, 1g) -> ok", "release(handle1) -> ok"]
    assert bench.observe().ranges[serial].standing is Standing.CLOSED


def test_close_of_nothing_but_quarantine_calls_nothing(bench: Bench) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 3)
    assert bench.done(close(serial)) == (3,)
    assert bench.calls == []
    assert bench.refused(close(serial)) is Refusal.STALE


# --- fences -------------------------------------------------------------------------------------


@EITHER
def test_close_with_the_fence_failing_takes_nothing_down(
    make_bench: MakeBench, manner: Manner
) -> None:
    """Scenario 36.  All stays charged until a reclaim succeeds, and then all of it goes."""
    bench = make_bench(retention=4)
    serial = bench.filled(8, 0, 1, 4)
    failed = bench.failed(close(serial), fails(Step.FENCE, manner=manner))
    assert bench.steps == [Step.FENCE]
    assert not any(failed.residue.ledger)
    assert bench.quarantined(serial) == [0, 1, 4]
    assert bench.ledger.charged == 3
    assert bench.refused(close(serial)) is Refusal.STALE
    assert bench.done(reclaim(serial)) == 3
    assert bench.ledger == Ledger(limit=64)
    assert bench.driver.live_ranges() == {}


@EITHER
def test_close_with_the_second_fence_failing_unmaps_nothing(
    make_bench: MakeBench, manner: Manner
) -> None:
    """Scenario 62.  What a clear may still be writing to keeps its mapping, the rest does too."""
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(close(serial), fails(Step.FENCE, 2, manner=manner))
    assert bench.steps == [Step.FENCE, Step.CLEAR, Step.FENCE]
    assert failed.fault.step is Step.FENCE
    assert bench.quarantined(serial) == [0, 1]
    assert bench.done(reclaim()) == 2
    assert bench.pool == []


def test_close_with_the_clear_failing_goes_on(make_bench: MakeBench) -> None:
    bench = make_bench(retention=2)
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(close(serial), fails(Step.CLEAR, part=1))
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, mapped=-2)
    assert bench.steps[-1] is Step.ADDRESS_FREE
    assert bench.observe().ranges == {}


# --- unmaps -------------------------------------------------------------------------------------


def test_close_with_an_unmap_failing_keeps_the_range(bench: Bench) -> None:
    """Scenario 37.  A mapping that is still there holds its addresses."""
    serial = bench.filled(8, 0, 2)
    failed = bench.failed(close(serial), fails(Step.UNMAP))
    assert Step.ADDRESS_FREE not in bench.steps
    assert bench.quarantined(serial) == [0]
    assert bench.observe().ranges[serial].standing is Standing.CLOSED
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, mapped=-1)
    assert bench.done(reclaim(serial)) == 1
    assert bench.lines == [
        "fence() -> ok",
        "query(range1) -> RW",
        "unmap(range1, 1g) -> ok",
        "release(handle1) -> ok",
        "address_free(range1, 8g) -> ok",
    ]


def test_close_with_an_unmap_failing_though_it_worked_frees_the_range(bench: Bench) -> None:
    """Scenario 14.  Both mappings are confirmed gone, so nothing keeps the range."""
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(close(serial), fails(Step.UNMAP, manner=WITH))
    assert bench.steps[-1] is Step.ADDRESS_FREE
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, mapped=-2)
    assert bench.driver.live_ranges() == {}


@EITHER
def test_close_with_an_unmap_and_its_question_failing_quarantines(
    bench: Bench, manner: Manner
) -> None:
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(
        close(serial), fails(Step.UNMAP, manner=manner), fails(Step.QUERY, lasting=True)
    )
    assert len(failed.cleanup_faults) == 2
    assert bench.quarantined(serial) == [0, 1]
    bench.settle()
    assert bench.done(reclaim()) == 2
    assert bench.physical == 0


# --- releases and address_free -------------------------------------------------------------------


@EITHER
def test_close_with_a_dispose_failing_quarantines_the_handle_alone(
    bench: Bench, manner: Manner
) -> None:
    """Scenario 37.  The range is freed all the same."""
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(close(serial), fails(Step.RELEASE, manner=manner))
    assert bench.steps[-1] is Step.ADDRESS_FREE
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, mapped=-2, quarantined=1)
    assert bench.observe().ranges == {}
    assert bench.done(reclaim()) == 0  # a release is never repeated
    assert bench.calls == []


@EITHER
def test_close_with_address_free_failing_lists_the_range(bench: Bench, manner: Manner) -> None:
    """Scenario 37.  It is not tried again; only the driver can end the entry."""
    serial = bench.filled(8, 0)
    failed = bench.failed(close(serial), fails(Step.ADDRESS_FREE, manner=manner))
    assert failed.fault.step is Step.ADDRESS_FREE
    assert bench.observe().ranges[serial].standing is Standing.QUARANTINED
    assert bench.ledger == Ledger(limit=64)
    assert bench.refused(close(serial)) is Refusal.STALE
    assert bench.done(reclaim(serial)) == 0
    assert bench.calls == []
    bench.settle()
    assert bench.reserved(8) == 2
    assert set(bench.observe().ranges) == {2}  # the same addresses: the old range was freed


def test_close_with_several_faults_names_them_in_order(bench: Bench) -> None:
    serial = bench.filled(8, 0, 2)
    failed = bench.failed(
        close(serial),
        fails(Step.UNMAP, manner=WITH),
        fails(Step.RELEASE, lasting=True),
        fails(Step.ADDRESS_FREE),
    )
    assert failed.fault.step is Step.UNMAP
    assert [fault.step for fault in failed.cleanup_faults] == [
        Step.RELEASE,
        Step.RELEASE,
        Step.ADDRESS_FREE,
    ]
    assert all(isinstance(fault, Fault) for fault in failed.cleanup_faults)
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, quarantined=2)


def test_close_of_large_handles_names_where_each_begins(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    serial = bench.reserved(8)
    _ = bench.failed(commit(serial, 0, 6), fails(Step.SET_ACCESS), fails(Step.UNMAP, lasting=True))
    assert bench.done(close(serial)) == (0, 4)
    assert bench.quarantined(serial) == [0, 1, 2, 3, 4, 5]
