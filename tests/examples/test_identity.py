"""Serials are ours and never come back; addresses and handle values are the driver's and do."""

import pytest

from kvvmm_model.machine import Operation, Reserve
from kvvmm_model.vocabulary import Ledger, Policy, Refusal, Standing, Step, refused

from support.bench import (
    GRANULE,
    WITH,
    WITHOUT,
    Bench,
    MakeBench,
    close,
    commit,
    fails,
    reclaim,
    release,
    trim,
)


def test_reserve_at_a_recycled_address_ends_the_old_record(bench: Bench) -> None:
    """Scenario 51.  The new range is whole, and a reclaim of the old one touches nothing of it."""
    old = bench.filled(8, 0)
    address = bench.address(old)
    _ = bench.failed(close(old), fails(Step.ADDRESS_FREE, manner=WITH))
    assert bench.observe().ranges[old].standing is Standing.QUARANTINED
    new = bench.reserved(8)
    assert bench.address(new) == address
    assert set(bench.observe().ranges) == {new}
    assert bench.done(commit(new, 0, 2)) == 2
    bench.write(new, 0, 31)
    assert bench.done(reclaim(old)) == 0
    assert bench.calls == []
    assert bench.read(new, 0) == 31
    assert bench.done(close(new)) == ()
    assert bench.ledger == Ledger(limit=64)


def test_reserve_of_part_of_a_recycled_range_ends_the_old_record(bench: Bench) -> None:
    """Scenario 51.  One common granule is proof enough."""
    old = bench.reserved(8)
    _ = bench.failed(close(old), fails(Step.ADDRESS_FREE, manner=WITH))
    new = bench.reserved(2)
    assert set(bench.observe().ranges) == {new}


def test_reserve_in_the_middle_of_a_recycled_range_ends_the_old_record(bench: Bench) -> None:
    """Scenario 51.  The addresses need not begin where the old ones did."""
    first, old = bench.reserved(1), bench.reserved(8)
    address = bench.address(old)
    _ = bench.failed(close(old), fails(Step.ADDRESS_FREE, manner=WITH))
    assert bench.done(Reserve(2 * GRANULE, 4 * GRANULE)) == 3
    assert address < bench.address(3) < address + 8 * GRANULE
    assert set(bench.observe().ranges) == {first, 3}


def test_reserve_elsewhere_proves_nothing(bench: Bench) -> None:
    old = bench.reserved(8)
    _ = bench.failed(close(old), fails(Step.ADDRESS_FREE, manner=WITHOUT))
    new = bench.reserved(8)
    assert set(bench.observe().ranges) == {old, new}
    assert bench.address(old) != bench.address(new)


def test_reserve_after_close_gives_the_address_but_not_the_serial(bench: Bench) -> None:
    old = bench.reserved(8)
    address = bench.address(old)
    assert bench.done(close(old)) == ()
    new = bench.reserved(8)
    assert bench.address(new) == address
    assert new != old
    assert bench.refusal(commit(old, 0, 1)) == refused(Refusal.STALE, reservation=old)


def test_commit_with_a_recycled_value_ends_the_old_charge(bench: Bench) -> None:
    """Scenario 52.  Two handles with one value never clash: the older was released."""
    serial = bench.filled(8, 0)
    value = next(iter(bench.driver.live_handles()))
    _ = bench.failed(release(serial, 0, 1), fails(Step.RELEASE, manner=WITH))
    assert bench.ledger.quarantined == 1
    assert bench.done(commit(serial, 3, 1)) == 1
    assert next(iter(bench.driver.live_handles())) == value
    assert set(bench.observe().handles) == {2}
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)


def test_commit_with_another_value_proves_nothing(bench: Bench) -> None:
    serial = bench.filled(8, 0)
    _ = bench.failed(release(serial, 0, 1), fails(Step.RELEASE, manner=WITHOUT))
    assert bench.done(commit(serial, 3, 1)) == 1
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=1, quarantined=1)


@pytest.mark.parametrize(
    "operation", [release(1, 1, 1), close(1), trim(2)], ids=["release", "close", "trim"]
)
def test_commit_with_a_value_recycled_from_anywhere_ends_the_old_charge(
    make_bench: MakeBench, operation: Operation
) -> None:
    """Scenario 52.  Wherever the release failed: the bytes count once again."""
    bench = make_bench(retention=1)
    serial, other = bench.filled(8, 0, 1), bench.reserved(8)
    assert bench.done(release(serial, 0, 1))
    _ = bench.failed(operation, fails(Step.RELEASE, manner=WITH))
    assert bench.ledger.quarantined == 1
    assert bench.done(commit(other, 0, 2)) == 2  # a hit is taken where there is one
    assert bench.ledger.quarantined == 0
    assert bench.ledger.charged == bench.physical


def test_commit_recycling_a_value_within_itself_stays_true(make_bench: MakeBench) -> None:
    """Scenario 52.  A larger handle takes over the value of a smaller one."""
    bench = make_bench(policy=Policy.RUN)
    serial = bench.filled(8, 0)
    _ = bench.failed(release(serial, 0, 1), fails(Step.RELEASE, manner=WITH))
    assert bench.done(commit(serial, 0, 4)) == 4
    assert bench.ledger == Ledger(limit=64, charged=4, owned=4, mapped=4)


def test_commit_that_fails_after_recycling_a_value_reports_the_old_handle_gone(
    bench: Bench,
) -> None:
    serial = bench.filled(8, 0)
    _ = bench.failed(release(serial, 0, 1), fails(Step.RELEASE, manner=WITH))
    failed = bench.failed(commit(serial, 0, 1), fails(Step.MAP))
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, quarantined=-1)
    assert bench.observe().handles == {}


def test_commit_counts_a_quarantined_handle_against_the_limit(make_bench: MakeBench) -> None:
    bench = make_bench(limit=2)
    serial = bench.filled(8, 0)
    _ = bench.failed(release(serial, 0, 1), fails(Step.RELEASE, manner=WITH))
    assert bench.refused(commit(serial, 0, 2)) is Refusal.BUDGET
    assert bench.done(commit(serial, 0, 1)) == 1  # the value comes back, and so does the budget
    assert bench.done(commit(serial, 1, 1)) == 1
