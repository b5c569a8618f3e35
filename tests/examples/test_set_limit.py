"""set_limit: how much may be charged from now on."""

import pytest

from kvvmm_model.machine import SetLimit
from kvvmm_model.vocabulary import Refusal

from support.bench import GRANULE, Bench, MakeBench, commit, release, set_limit


def test_set_limit_below_use_takes_nothing_back(bench: Bench) -> None:
    """Scenario 20.  The excess is visible, and nothing new is admitted until it is gone."""
    serial = bench.filled(8, 0, 1, 2)
    bench.write(serial, 2, 4)
    assert bench.done(set_limit(1)) is None
    assert bench.calls == []
    assert bench.ledger.free == -2
    assert bench.read(serial, 2) == 4
    assert bench.refused(commit(serial, 4, 1)) is Refusal.BUDGET
    assert bench.done(release(serial, 0, 3))
    assert bench.done(commit(serial, 4, 1)) == 1


def test_set_limit_above_use_admits_more(make_bench: MakeBench) -> None:
    bench = make_bench(limit=1)
    serial = bench.filled(8, 0)
    assert bench.refused(commit(serial, 1, 1)) is Refusal.BUDGET
    assert bench.done(set_limit(2)) is None
    assert bench.done(commit(serial, 1, 1)) == 1


@pytest.mark.parametrize(
    ("size_bytes", "limit"),
    [(0, 0), (GRANULE - 1, 0), (3 * GRANULE + 1, 3), (1 << 70, (1 << 70) // GRANULE)],
)
def test_set_limit_of_bytes_rounds_down(bench: Bench, size_bytes: int, limit: int) -> None:
    assert bench.done(SetLimit(size_bytes)) is None
    assert bench.ledger.limit == limit


def test_set_limit_to_zero_still_lets_what_needs_nothing_pass(make_bench: MakeBench) -> None:
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0, 1)
    assert bench.done(release(serial, 1, 1))
    assert bench.done(set_limit(0)) is None
    assert bench.done(commit(serial, 0, 1)) == 0
    assert bench.done(commit(serial, 5, 1)) == 1  # a pool hit is charged already
    assert bench.refused(commit(serial, 6, 1)) is Refusal.BUDGET
