"""commit, where every driver call works."""

import pytest

from kvvmm_model.machine import Commit
from kvvmm_model.vocabulary import Code, Ledger, Policy, Refusal, Rights, Step, refused

from support.bench import GRANULE, Bench, MakeBench, close, commit, release, set_limit


def test_commit_one_byte_charges_one_granule(bench: Bench) -> None:
    """Scenario 2.  Memory comes in granules."""
    serial = bench.reserved(8)
    assert bench.done(Commit(serial, 5, 1)) == 1
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)
    assert bench.lines == [
        "create(1g) -> handle1",
        "map(range1, 1g, handle1) -> ok",
        "set_access(range1, 1g, RW) -> ok",
    ]


@pytest.mark.parametrize(
    ("offset_bytes", "size_bytes", "windows"),
    [
        (GRANULE - 1, 2, [0, 1]),
        (GRANULE, GRANULE, [1]),
        (GRANULE - 1, GRANULE + 2, [0, 1, 2]),
        (8 * GRANULE - 1, 1, [7]),
        (0, 8 * GRANULE, list(range(8))),
    ],
)
def test_commit_of_bytes_backs_every_window_touched(
    bench: Bench, offset_bytes: int, size_bytes: int, windows: list[int]
) -> None:
    """Scenario 2.  A range that straddles a boundary takes both sides, an exact one no more."""
    serial = bench.reserved(8)
    assert bench.done(Commit(serial, offset_bytes, size_bytes)) == len(windows)
    assert bench.committed(serial) == windows
    assert bench.ledger.charged == bench.physical == len(windows)


def test_commit_of_what_is_committed_calls_nothing(bench: Bench) -> None:
    """Scenario 3.  Doing it again costs nothing."""
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 2, 3)) == 3
    before = bench.observe()
    assert bench.done(Commit(serial, 2 * GRANULE + 1, GRANULE)) == 0
    assert bench.calls == []
    assert bench.observe() == before


def test_commit_of_what_is_half_committed_creates_the_rest(bench: Bench) -> None:
    """Scenario 3.  Two holes around what is there; rights are given once for each."""
    serial = bench.filled(8, 2)
    assert bench.done(commit(serial, 1, 4)) == 3
    assert bench.lines == [
        "create(1g) -> handle2",
        "create(1g) -> handle3",
        "create(1g) -> handle4",
        "map(range1+1g, 1g, handle2) -> ok",
        "map(range1+3g, 1g, handle3) -> ok",
        "map(range1+4g, 1g, handle4) -> ok",
        "set_access(range1+1g, 1g, RW) -> ok",
        "set_access(range1+3g, 2g, RW) -> ok",
    ]


def test_commit_and_release_in_turn_keeps_address_and_contents(bench: Bench) -> None:
    """Scenario 4.  A thousand rounds of growing and shrinking above a window that is in use."""
    serial = bench.filled(8, 0)
    address = bench.address(serial)
    bench.write(serial, 0, 77)
    for _ in range(1_000):
        assert bench.done(commit(serial, 0, 3)) == 2
        bench.write(serial, 1, 88)
        assert bench.done(release(serial, 1, 2))
    assert bench.address(serial) == address
    assert bench.read(serial, 0) == 77
    assert bench.ledger.charged == bench.physical == 1


@pytest.mark.parametrize(
    ("offset_bytes", "size_bytes"),
    [
        (8 * GRANULE, 1),
        (7 * GRANULE, GRANULE + 1),
        (0, 9 * GRANULE),
        (-1, 1),
        (-GRANULE, 2 * GRANULE),
        (1 << 64, 1),
        ((1 << 64) - GRANULE, GRANULE),
    ],
)
def test_commit_outside_the_reservation_is_refused(
    bench: Bench, offset_bytes: int, size_bytes: int
) -> None:
    """Scenario 5.  Nothing is clamped, and nothing wraps around."""
    serial = bench.reserved(8)
    assert bench.refusal(Commit(serial, offset_bytes, size_bytes)) == refused(
        Refusal.RANGE,
        offset_bytes=offset_bytes,
        size_bytes=size_bytes,
        reservation_bytes=8 * GRANULE,
    )


def test_commit_after_close_is_refused(bench: Bench) -> None:
    """Scenario 5.  A closed reservation is nobody's."""
    serial = bench.reserved(8)
    assert bench.done(close(serial)) == ()
    assert bench.refusal(commit(serial, 0, 1)) == refused(Refusal.STALE, reservation=serial)


def test_commit_of_more_than_the_limit_is_refused(make_bench: MakeBench) -> None:
    """Scenario 7.  Two of four would fit; none is created."""
    bench = make_bench(limit=2)
    serial = bench.reserved(8)
    assert bench.refusal(commit(serial, 0, 4)) == refused(
        Refusal.BUDGET, needed_bytes=4 * GRANULE, free_bytes=2 * GRANULE, reclaimable_bytes=0
    )
    assert bench.physical == 0


def test_commit_of_the_last_granule_is_done(make_bench: MakeBench) -> None:
    bench = make_bench(limit=2)
    serial = bench.filled(8, 0)
    assert bench.done(commit(serial, 1, 1)) == 1
    assert bench.refused(commit(serial, 2, 1)) is Refusal.BUDGET
    assert bench.done(commit(serial, 0, 2)) == 0  # needs nothing, so the limit does not matter


def test_commit_of_more_windows_gives_them_equal_rights(bench: Bench) -> None:
    """Scenario 15.  What has grown can be written like the rest."""
    serial = bench.filled(8, 0, 1)
    assert bench.done(commit(serial, 0, 4)) == 2
    assert [bench.driver.query(bench.address(serial, window)) for window in range(5)] == [
        *[Rights.RW] * 4,
        None,
    ]
    for window in range(4):
        bench.write(serial, window, 100 + window)
    assert [bench.read(serial, window) for window in range(4)] == [100, 101, 102, 103]


def test_commit_up_to_the_end_stays_inside(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    first, second = bench.reserved(3), bench.reserved(3)
    assert bench.done(commit(first, 0, 3)) == 3
    assert bench.done(commit(second, 0, 3)) == 3
    assert bench.driver.oddities == []


# --- cutting runs into handles ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "windows", "sizes"),
    [
        (64, 7, [4, 2, 1]),
        (64, 8, [8]),
        (2, 7, [2, 2, 2, 1]),
        (3, 7, [2, 2, 2, 1]),  # a bound that is no power of two
        (1, 3, [1, 1, 1]),
    ],
)
def test_commit_by_runs_cuts_into_powers_of_two(
    make_bench: MakeBench, longest: int, windows: int, sizes: list[int]
) -> None:
    bench = make_bench(policy=Policy.RUN, longest_run=longest)
    serial = bench.reserved(16)
    assert bench.done(commit(serial, 0, windows)) == windows
    handles = bench.observe().handles
    assert [handles[number].size for number in sorted(handles)] == sizes


def test_commit_by_runs_never_covers_what_is_committed(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    serial = bench.filled(8, 3)
    assert bench.done(commit(serial, 0, 8)) == 7
    mappings = bench.observe().mappings
    assert [(window, view.size) for (_, window), view in sorted(mappings.items())] == [
        (0, 2),
        (2, 1),
        (3, 1),
        (4, 4),
    ]


def test_commit_that_begins_inside_a_handle_backs_what_follows_it(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 0, 4)) == 4
    assert bench.done(commit(serial, 2, 3)) == 1
    assert bench.committed(serial) == [0, 1, 2, 3, 4]


# --- the pool -----------------------------------------------------------------------------------


def test_commit_with_a_pool_takes_the_newest_of_the_size(make_bench: MakeBench) -> None:
    bench = make_bench(retention=2)
    serial = bench.filled(8, 0, 1)
    assert bench.done(release(serial, 0, 2))
    assert bench.pool == [1, 2]
    assert bench.done(commit(serial, 4, 1)) == 1
    assert bench.lines == [
        "map(range1+4g, 1g, handle2) -> ok",
        "set_access(range1+4g, 1g, RW) -> ok",
    ]
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=1, pooled=1)


def test_commit_with_a_pool_needs_no_budget_for_what_it_takes(make_bench: MakeBench) -> None:
    bench = make_bench(retention=2, limit=2)
    serial = bench.filled(8, 0, 1)
    assert bench.done(release(serial, 0, 2))
    assert bench.done(commit(serial, 4, 2)) == 2
    assert Step.CREATE not in bench.steps


def test_commit_with_other_sizes_pooled_makes_room(make_bench: MakeBench) -> None:
    """Scenario 61.  Room is where the pool keeps what does not fit."""
    bench = make_bench(policy=Policy.RUN, retention=4, limit=4)
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 0, 4)) == 4
    assert bench.done(release(serial, 0, 4))
    assert bench.done(commit(serial, 0, 1)) == 1
    assert bench.lines[:2] == ["release(handle1) -> ok", "create(1g) -> handle2"]
    assert bench.ledger == Ledger(limit=4, charged=1, owned=1, mapped=1)


def test_commit_with_everything_in_use_is_refused(make_bench: MakeBench) -> None:
    """Scenario 61.  What somebody uses gives no room."""
    bench = make_bench(policy=Policy.RUN, retention=4, limit=4)
    serial = bench.reserved(8)
    assert bench.done(commit(serial, 0, 4)) == 4
    assert bench.refused(commit(serial, 4, 1)) is Refusal.BUDGET


def test_commit_that_the_whole_pool_cannot_serve_is_refused(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=2, limit=3)
    serial = bench.filled(8, 0, 2, 4)
    assert bench.done(release(serial, 0, 1))
    assert bench.done(release(serial, 2, 1))
    assert bench.refusal(commit(serial, 5, 3)) == refused(
        Refusal.BUDGET,  # one of the two hits is taken; the other alone is too little
        needed_bytes=2 * GRANULE,
        free_bytes=0,
        reclaimable_bytes=GRANULE,
    )
    assert bench.pool == [1, 2]


def test_commit_that_needs_a_hit_and_room_takes_one_and_gives_one(make_bench: MakeBench) -> None:
    """Scenario 67.  The older of two hits goes, the newer is used."""
    bench = make_bench(policy=Policy.RUN, retention=2, limit=3)
    serial = bench.filled(8, 0, 2)
    assert bench.done(release(serial, 0, 3))
    assert bench.done(commit(serial, 4, 3)) == 3
    assert bench.lines == [
        "release(handle1) -> ok",
        "create(2g) -> handle3",
        "map(range1+4g, 2g, handle3) -> ok",
        "map(range1+6g, 1g, handle2) -> ok",
        "set_access(range1+4g, 3g, RW) -> ok",
    ]
    assert bench.ledger == Ledger(limit=3, charged=3, owned=3, mapped=3)


def test_commit_on_a_full_driver_gives_up_the_pool_and_repeats(make_bench: MakeBench) -> None:
    """Scenario 67.  The same where the driver, not the limit, is short of memory."""
    bench = make_bench(policy=Policy.RUN, retention=2, capacity=3)
    serial = bench.filled(8, 0, 2)
    assert bench.done(release(serial, 0, 3))
    assert bench.done(commit(serial, 4, 3)) == 3
    assert bench.lines[:3] == [
        "create(2g) -> OUT_OF_MEMORY",
        "release(handle1) -> ok",
        "create(2g) -> handle3",
    ]
    assert bench.ledger == Ledger(limit=64, charged=3, owned=3, mapped=3)


def test_commit_on_a_full_driver_without_a_pool_fails(make_bench: MakeBench) -> None:
    bench = make_bench(capacity=2)
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 3))
    assert failed.fault.code == Code.OUT_OF_MEMORY
    assert not failed.residue
    assert bench.lines == [
        "create(1g) -> handle1",
        "create(1g) -> handle2",
        "create(1g) -> OUT_OF_MEMORY",
        "release(handle2) -> ok",
        "release(handle1) -> ok",
    ]


def test_commit_on_a_full_driver_gives_up_once(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=1, capacity=4)
    serial = bench.filled(16, 0)
    assert bench.done(release(serial, 0, 1))
    failed = bench.failed(commit(serial, 0, 12))
    assert bench.lines == [
        "create(8g) -> OUT_OF_MEMORY",
        "release(handle1) -> ok",
        "create(8g) -> OUT_OF_MEMORY",
    ]
    assert [fault.code for fault in failed.cleanup_faults] == [Code.OUT_OF_MEMORY]
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, pooled=-1)


def test_commit_short_of_the_limit_does_not_give_up_for_the_driver_too(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(policy=Policy.RUN, retention=2, limit=3, capacity=3)
    serial = bench.filled(8, 0, 2)
    assert bench.done(release(serial, 0, 3))
    bench.driver.capacity_bytes = 2 * GRANULE
    failed = bench.failed(commit(serial, 4, 2))
    assert bench.lines == ["release(handle1) -> ok", "create(2g) -> OUT_OF_MEMORY"]
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, pooled=-1)
    assert bench.pool == [2]


def test_commit_after_the_limit_was_lowered_pays_the_excess_first(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8, limit=8)
    serial = bench.reserved(16)
    for window in (0, 2, 4):
        assert bench.done(commit(serial, window, 2)) == 2
    assert bench.done(release(serial, 0, 6))
    assert bench.done(set_limit(4)) is None
    assert bench.ledger.free == -2
    assert bench.done(commit(serial, 0, 1)) == 1
    assert bench.steps[:3] == [Step.RELEASE, Step.RELEASE, Step.CREATE]
    assert bench.ledger.charged == 3


# --- contents -----------------------------------------------------------------------------------


def test_commit_from_the_pool_reads_zero(make_bench: MakeBench) -> None:
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0)
    bench.write(serial, 0, 0xDEAD)
    assert bench.done(release(serial, 0, 1))
    assert bench.done(commit(serial, 5, 1)) == 1
    assert Step.CREATE not in bench.steps
    assert bench.read(serial, 5) == 0


def test_commit_from_an_uncleared_pool_may_read_old_bytes(make_bench: MakeBench) -> None:
    bench = make_bench(retention=1, clear_pooled=False)
    serial = bench.filled(8, 0)
    bench.write(serial, 0, 0xDEAD)
    assert bench.done(release(serial, 0, 1))
    assert bench.steps == [Step.FENCE, Step.UNMAP]
    assert bench.done(commit(serial, 5, 1)) == 1
    assert bench.read(serial, 5) == 0xDEAD
