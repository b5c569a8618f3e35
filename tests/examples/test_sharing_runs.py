"""Sharing memory in handles of several windows, as policy ``run`` makes them."""

import pytest

from kvvmm_model.machine import Close
from kvvmm_model.vocabulary import Ledger, Policy, Refusal, Released, Rights, Step, refused

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fork,
    publish,
    release,
    retire,
    seal,
)


@pytest.fixture
def wide(make_bench: MakeBench) -> Bench:
    """Reservation 1: handles of four, two and one window, the first two sealed as prefix 1."""
    bench = make_bench(policy=Policy.RUN)
    _ = bench.reserved(8)
    _ = bench.done(commit(1, 0, 7))
    _ = bench.done(publish(1, 6))
    assert bench.done(seal(1)) == 6
    return bench


def test_attach_of_large_handles_maps_each_once(wide: Bench) -> None:
    sharer = wide.reserved(8)
    assert wide.done(attach((sharer, 1, 1))) == 6
    assert wide.lines == [
        "map(range2+1g, 4g, handle1) -> ok",
        "map(range2+5g, 2g, handle2) -> ok",
        "set_access(range2+1g, 6g, READ) -> ok",
    ]
    assert wide.done(release(sharer, 2, 6)) == Released(2, (2, 3, 4))
    assert wide.refused(release(sharer, 2, 2)) is Refusal.NOT_COMMITTED
    assert wide.refusal(attach((sharer, 1, 2))).reason is Refusal.OCCUPIED


def test_fork_inside_a_sealed_large_handle_copies_from_its_begin(wide: Bench) -> None:
    assert wide.done(fork((1, 5 * GRANULE))) == (2,)
    assert wide.steps.count(Step.COPY) == 1
    assert wide.rights(2) == [Rights.READ, Rights.RW]
    assert wide.committed(2) == [0, 1, 2, 3, 4]


def test_child_of_a_cut_large_handle_has_no_hole(wide: Bench) -> None:
    """It is cut as a commit would be: three windows of the copy are handles of two and one."""
    assert wide.done(fork((1, 3 * GRANULE))) == (2,)
    assert wide.committed(2) == [0, 1, 2]
    assert wide.rights(2) == [Rights.RW, Rights.RW]
    assert wide.done(commit(2, 0, 4)) == 1


@pytest.mark.parametrize(("size", "fits", "following"), [(1, 0, 4), (3, 0, 4), (5, 4, 6)], ids=str)
def test_publish_by_a_sharer_that_cuts_a_handle_says_where_handles_end(
    wide: Bench, size: int, fits: int, following: int
) -> None:
    sharer = wide.reserved(8)
    _ = wide.done(attach((sharer, 1, 0)))
    refusal = wide.refusal(publish(sharer, size))
    assert refusal == refused(
        Refusal.STRADDLING, fits_bytes=fits * GRANULE, next_bytes=following * GRANULE
    )


def test_close_of_nothing_but_shared_windows_fences_and_frees(wide: Bench) -> None:
    sharer = wide.reserved(8)
    _ = wide.done(attach((sharer, 1, 0)))
    assert wide.done(Close(sharer)) == ()
    assert wide.steps == [Step.FENCE, Step.UNMAP, Step.ADDRESS_FREE]


def test_release_in_the_middle_of_a_shared_handle_takes_what_lies_wholly_inside(
    wide: Bench,
) -> None:
    """The owner's own last window goes, and a sealed handle; the straddling one is kept."""
    assert wide.done(release(1, 2, 6)) == Released(3, (2, 3))
    assert wide.lines[:2] == ["fence() -> ok", "unmap(range1+4g, 3g) -> ok"]
    assert wide.ledger == Ledger(limit=64, charged=6, owned=6, mapped=4, held=2)
    assert wide.committed(1) == [0, 1, 2, 3]
    assert wide.done(retire(1)) == 2
    assert wide.done(commit(1, 4, 1)) == 1


def test_child_may_outlive_a_handle_of_which_it_copied_a_part(wide: Bench) -> None:
    _ = wide.done(fork((1, 5 * GRANULE)))
    for leaves in (close(1), retire(1)):
        _ = wide.done(leaves)
    assert wide.ledger == Ledger(limit=64, charged=5, owned=5, mapped=5)
    assert wide.physical == 5
    assert wide.done(close(2)) == ()
    assert wide.physical == 0
