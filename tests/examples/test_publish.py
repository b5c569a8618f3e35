"""publish: an owner's leading memory becomes a prefix."""

import pytest

from kvvmm_model.machine import Publish
from kvvmm_model.vocabulary import Ledger, Policy, PrefixView, Refusal, Step, refused

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fails,
    publish,
    release,
    seal,
)


def test_publish_makes_no_call_and_charges_nothing(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1, 2)
    before = bench.ledger
    assert bench.done(publish(owner, 2)) == 1
    assert bench.calls == []
    assert bench.ledger == before
    assert bench.observe().prefixes == {1: PrefixView(1, owner, (1, 2), sealed=False)}


def test_publish_twice_gives_two_prefixes(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    assert bench.done(publish(owner, 2)) == 1
    assert bench.done(publish(owner, 1)) == 2
    assert bench.done(seal(2)) == 1
    assert bench.done(seal(1)) == 1


@pytest.mark.parametrize("over", [0, 1, GRANULE - 1])
def test_publish_of_part_of_a_window_leaves_it_private(bench: Bench, over: int) -> None:
    owner = bench.filled(8, 0, 1, 2)
    assert bench.done(Publish(owner, 2 * GRANULE + over)) == 1
    assert bench.observe().prefixes[1].handles == (1, 2)


def test_publish_by_a_sharer_takes_its_own_continuation_along(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0)))
    _ = bench.done(commit(sharer, 2, 1))
    assert bench.done(publish(sharer, 3)) == 2
    assert bench.done(seal(2)) == 1
    assert bench.lines == ["fence() -> ok", "set_access(range2+2g, 1g, READ) -> ok"]
    third = bench.reserved(8)
    assert bench.done(attach((third, 2, 1))) == 3
    assert bench.ledger == Ledger(limit=64, charged=3, owned=3, mapped=8)


# --- refusals, in their order -------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, 0, 8 * GRANULE + 1, None, True, 1.5])
def test_publish_of_what_is_no_size_is_refused(bench: Bench, size: object) -> None:
    owner = bench.filled(8, 0)
    numbers = {"offset_bytes": 0, "size_bytes": size, "reservation_bytes": 8 * GRANULE}
    assert bench.refusal(Publish(owner, size)) == refused(Refusal.RANGE, **numbers)


def test_publish_of_a_closed_reservation_is_stale(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(close(owner))
    assert bench.refusal(publish(owner, 1)) == refused(Refusal.STALE, reservation=owner)


def test_publish_that_cuts_a_handle_says_where_handles_end(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    owner = bench.reserved(8)
    _ = bench.done(commit(owner, 0, 1))
    _ = bench.done(commit(owner, 1, 4))
    refusal = bench.refusal(publish(owner, 3))
    assert refusal == refused(Refusal.STRADDLING, fits_bytes=GRANULE, next_bytes=5 * GRANULE)
    assert bench.done(publish(owner, 5)) == 1


@pytest.mark.parametrize(("windows", "fits", "following"), [((0,), 0, 1), ((), 0, 1)])
def test_publish_of_less_than_a_window_is_refused(
    bench: Bench, windows: tuple[int, ...], fits: int, following: int
) -> None:
    owner = bench.filled(8, *windows)
    refusal = bench.refusal(Publish(owner, GRANULE - 1))
    assert refusal == refused(
        Refusal.STRADDLING, fits_bytes=fits * GRANULE, next_bytes=following * GRANULE
    )


def test_publish_over_a_quarantined_window_is_refused(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    bench.quarantine(owner, 1)
    refusal = bench.refusal(publish(owner, 3))  # a hole comes later in the order
    assert refusal == refused(Refusal.QUARANTINED, offsets_bytes=(GRANULE,))


def test_publish_of_windows_of_unknown_rights_is_refused(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    _ = bench.failed(seal(1), fails(Step.SET_ACCESS, lasting=True))
    refusal = bench.refusal(publish(owner, 3))
    assert refusal == refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(0, GRANULE))


def test_publish_of_a_handle_that_lies_there_twice_is_refused(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0), (sharer, prefix, 2)))
    refusal = bench.refusal(publish(sharer, 5))
    assert refusal == refused(Refusal.REPEATED, fits_bytes=2 * GRANULE)
    assert bench.done(publish(sharer, 2)) == 2


@pytest.mark.parametrize(("windows", "hole"), [((), 0), ((0, 2), 1), ((1,), 0), ((0, 1), 2)])
def test_publish_over_a_hole_is_refused(bench: Bench, windows: tuple[int, ...], hole: int) -> None:
    owner = bench.filled(8, *windows)
    refusal = bench.refusal(publish(owner, 3))
    assert refusal == refused(Refusal.NOT_COMMITTED, offset_bytes=hole * GRANULE)


# --- before it is sealed ------------------------------------------------------------------------


def test_release_of_a_published_window_cancels_the_prefixes_it_touches(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1, 2)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(publish(owner, 2))
    _ = bench.done(release(owner, 1, 1))
    assert list(bench.observe().prefixes) == [1]
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=2)
    _ = bench.done(commit(owner, 1, 1))
    assert bench.refused(seal(2)) is Refusal.STALE
    assert bench.done(seal(1)) == 1


def test_release_with_the_first_fence_failing_cancels_nothing(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    assert not bench.failed(release(owner, 0, 1), fails(Step.FENCE)).residue
    assert list(bench.observe().prefixes) == [1]


def test_release_cancels_before_it_chooses_what_to_pool(make_bench: MakeBench) -> None:
    bench = make_bench(retention=4)
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(release(owner, 0, 1))
    assert bench.pool == [1]


def test_close_cancels_whatever_follows(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    failed = bench.failed(close(owner), fails(Step.FENCE))
    assert PrefixView(1, owner, (1,), sealed=False) in failed.residue.gone
    assert bench.observe().prefixes == {}
