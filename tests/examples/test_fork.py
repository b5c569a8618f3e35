"""fork: a child that begins as its parent does.  All or none."""

import pytest

from kvvmm_model.machine import Fork
from kvvmm_model.vocabulary import Fault, Ledger, Policy, Refusal, Rights, Step, refused

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fails,
    fork,
    publish,
    release,
    retire,
    seal,
    set_limit,
)


def test_fork_shares_what_is_sealed_and_copies_the_bytes_behind(bench: Bench) -> None:
    owner, _ = bench.shared(2, more=1)
    bench.write(owner, 2, 0x11223344)
    assert bench.done(fork((owner, 2 * GRANULE + 8))) == (2,)
    assert bench.lines == [
        "address_reserve(8g) -> range2",
        "fence() -> ok",
        "map(range2, 1g, handle1) -> ok",
        "map(range2+1g, 1g, handle2) -> ok",
        "set_access(range2, 2g, READ) -> ok",
        "create(1g) -> handle4",
        "map(range2+2g, 1g, handle4) -> ok",
        "set_access(range2+2g, 1g, RW) -> ok",
        "copy(range2+2g, range1+2g, 8 bytes) -> ok",
        "fence() -> ok",
    ]
    assert bench.rights(2) == [Rights.READ, Rights.READ, Rights.RW]
    assert bench.read(2, 2) == 0x11223344
    assert bench.driver.read(bench.address(2, 2) + 8) == 0
    assert bench.ledger == Ledger(limit=64, charged=4, owned=4, mapped=6)


def test_parent_and_child_write_on_apart(bench: Bench) -> None:
    owner, _ = bench.shared(1, more=1)
    bench.write(owner, 1, 5)
    assert bench.done(fork((owner, 2 * GRANULE - 1))) == (2,)
    bench.write(2, 1, 6)
    assert (bench.read(owner, 1), bench.read(2, 1)) == (5, 6)
    bench.write(owner, 1, 7)
    assert (bench.read(owner, 1), bench.read(2, 1)) == (7, 6)
    _ = bench.done(close(owner))
    assert bench.read(2, 1) == 6


def test_fork_at_the_end_of_a_handle_copies_nothing(bench: Bench) -> None:
    owner, _ = bench.shared(2)
    assert bench.done(fork((owner, 2 * GRANULE))) == (2,)
    assert bench.steps == [
        *(Step.ADDRESS_RESERVE, Step.FENCE, Step.MAP, Step.MAP, Step.SET_ACCESS),
    ]


def test_fork_inside_the_first_handle_shares_nothing(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    owner = bench.reserved(8)
    _ = bench.done(commit(owner, 0, 2))
    bench.write(owner, 0, 3)
    assert bench.done(fork((owner, GRANULE))) == (2,)
    assert bench.steps == [
        *(Step.ADDRESS_RESERVE, Step.FENCE, Step.CREATE, Step.MAP, Step.SET_ACCESS),
        *(Step.COPY, Step.FENCE),
    ]
    assert bench.committed(2) == [0]
    assert bench.read(2, 0) == 3


def test_fork_into_several_handles_copies_once(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN)
    owner = bench.reserved(8)
    _ = bench.done(commit(owner, 0, 4))
    for window in range(3):
        bench.write(owner, window, window + 1)
    assert bench.done(fork((owner, 3 * GRANULE))) == (2,)
    assert bench.steps.count(Step.CREATE) == 2
    assert bench.steps.count(Step.COPY) == 1
    assert [bench.read(2, window) for window in range(3)] == [1, 2, 3]


def test_fork_of_a_group_reserves_fences_and_copies_for_all(bench: Bench) -> None:
    owner, _ = bench.shared(1, more=1)
    other, _ = bench.shared(1)
    assert bench.done(fork((owner, GRANULE + 1), (other, GRANULE), (owner, GRANULE + 2))) == (
        *(3, 4, 5),
    )
    assert bench.steps == [
        *([Step.ADDRESS_RESERVE] * 3),
        Step.FENCE,
        *([Step.MAP, Step.SET_ACCESS] * 3),
        *([Step.CREATE] * 2),
        *([Step.MAP, Step.SET_ACCESS, Step.COPY] * 2),
        Step.FENCE,
    ]


def test_fork_of_a_child_outlives_everybody(bench: Bench) -> None:
    owner, prefix = bench.shared(2, more=1)
    _ = bench.done(fork((owner, 2 * GRANULE + 4)))
    _ = bench.done(fork((2, GRANULE), (2, 2 * GRANULE + 4)))
    _ = bench.done(close(owner))
    _ = bench.done(close(2))
    _ = bench.done(retire(prefix))
    _ = bench.done(close(3))
    assert bench.ledger == Ledger(limit=64, charged=3, owned=3, mapped=3)
    _ = bench.done(close(4))
    assert bench.physical == bench.ledger.charged == 0


def test_fork_shares_sealed_memory_whose_prefix_was_retired(bench: Bench) -> None:
    owner, prefix = bench.shared(1)
    _ = bench.done(retire(prefix))
    assert bench.done(fork((owner, GRANULE))) == (2,)
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=2)


def test_fork_takes_what_it_copies_into_from_the_pool(make_bench: MakeBench) -> None:
    bench = make_bench(retention=4)
    owner, _ = bench.shared(1, more=2)
    _ = bench.done(release(owner, 2, 1))
    assert bench.done(fork((owner, GRANULE + 1))) == (2,)
    assert Step.CREATE not in bench.steps
    assert bench.pool == []


def test_fork_gives_up_pooled_memory_before_anything_else(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=8, limit=8)
    owner = bench.reserved(8)
    _ = bench.done(commit(owner, 0, 1))
    _ = bench.done(publish(owner, 1))
    _ = bench.done(seal(1))
    _ = bench.done(commit(owner, 1, 1))
    _ = bench.done(commit(owner, 4, 2))
    _ = bench.done(release(owner, 4, 2))
    _ = bench.done(set_limit(4))
    assert bench.done(fork((owner, GRANULE + 1))) == (2,)
    assert bench.steps[:2] == [Step.RELEASE, Step.ADDRESS_RESERVE]


# --- refusals, in their order -------------------------------------------------------------------


def test_fork_of_nothing_is_refused(bench: Bench) -> None:
    assert bench.refusal(Fork(())) == refused(Refusal.RANGE, parents=0)


@pytest.mark.parametrize("serial", [0, 9, None, True])
def test_fork_of_no_open_reservation_is_stale(bench: Bench, serial: object) -> None:
    refusal = bench.refusal(Fork(((serial, 0),)))
    assert refusal == refused(Refusal.STALE, reservation=serial)


@pytest.mark.parametrize("length", [-1, 0, 8 * GRANULE + 1, None, True, 2.5])
def test_fork_at_what_is_no_length_is_refused(bench: Bench, length: object) -> None:
    owner = bench.filled(8, 0)
    refusal = bench.refusal(Fork(((owner, length),)))
    assert refusal == refused(Refusal.RANGE, length_bytes=length, reservation_bytes=8 * GRANULE)


def test_fork_over_a_quarantined_window_is_refused(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    bench.quarantine(owner, 1)
    refusal = bench.refusal(fork((owner, GRANULE + 1)))
    assert refusal == refused(Refusal.QUARANTINED, offsets_bytes=(GRANULE,))


def test_fork_over_windows_of_unknown_rights_is_refused(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 1))
    _ = bench.failed(seal(1), fails(Step.SET_ACCESS, lasting=True))
    refusal = bench.refusal(fork((owner, 2 * GRANULE)))
    assert refusal == refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(0,))


def test_fork_of_what_can_still_be_written_is_unsealed(bench: Bench) -> None:
    owner, _ = bench.shared(1, more=1)
    refusal = bench.refusal(fork((owner, 3 * GRANULE)))  # and a hole, which comes later
    assert refusal == refused(Refusal.UNSEALED, offset_bytes=GRANULE, length_bytes=3 * GRANULE)


@pytest.mark.parametrize(("attached", "hole"), [(1, 0), (0, 1)])
def test_fork_over_a_hole_is_refused(bench: Bench, attached: int, hole: int) -> None:
    _, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, attached)))
    refusal = bench.refusal(fork((sharer, 2 * GRANULE)))
    assert refusal == refused(
        Refusal.NOT_COMMITTED, offset_bytes=hole * GRANULE, length_bytes=2 * GRANULE
    )


def test_fork_beyond_the_limit_is_refused(make_bench: MakeBench) -> None:
    bench = make_bench(limit=3)
    owner, _ = bench.shared(1, more=1)
    refusal = bench.refusal(fork((owner, GRANULE + 1), (owner, GRANULE + 1)))
    assert refusal == refused(
        Refusal.BUDGET,
        needed_bytes=2 * GRANULE,
        free_bytes=GRANULE,
        reclaimable_bytes=0,
    )
    assert bench.done(fork((owner, GRANULE + 1), (owner, GRANULE))) == (2, 3)


def test_write_to_what_a_child_shares_fails_softly(bench: Bench) -> None:
    owner, _ = bench.shared(1)
    bench_word = bench.read(owner, 0)
    _ = bench.done(fork((owner, GRANULE)))
    assert isinstance(bench.driver.write(bench.address(2), GRANULE, 9), Fault)
    assert bench.read(owner, 0) == bench.read(2, 0) == bench_word
