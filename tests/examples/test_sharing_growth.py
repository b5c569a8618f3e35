"""Sharers and children that go on: what they are charged, what they may write, publish and fork."""

from kvvmm_model.vocabulary import Ledger, Refusal, Rights, refused

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fork,
    publish,
    retire,
    seal,
    set_limit,
    trim,
)

# --- the limit ----------------------------------------------------------------------------------


def test_sharing_needs_no_room_and_a_copy_does(make_bench: MakeBench) -> None:
    bench = make_bench(limit=3, capacity=3)
    owner, prefix = bench.shared(2, more=1)
    sharer = bench.reserved(8)
    assert bench.done(attach((sharer, prefix, 0), (sharer, prefix, 2))) == 4
    assert bench.done(fork((owner, GRANULE), (sharer, 4 * GRANULE))) == (3, 4)
    assert bench.ledger == Ledger(limit=3, charged=3, owned=3, mapped=12)
    numbers = {"needed_bytes": GRANULE, "free_bytes": 0, "reclaimable_bytes": 0}
    assert bench.refusal(fork((owner, GRANULE + 1))) == refused(Refusal.BUDGET, **numbers)
    assert bench.refusal(commit(sharer, 4, 1)) == refused(Refusal.BUDGET, **numbers)
    _ = bench.done(set_limit(1))
    assert bench.done(attach((sharer, prefix, 4))) == 2  # below what is charged, too
    assert bench.ledger.free == -2


def test_held_memory_is_no_room_and_trim_leaves_it_alone(make_bench: MakeBench) -> None:
    bench = make_bench(limit=2, retention=8)
    owner, prefix = bench.shared(2)
    _ = bench.done(close(owner))
    assert bench.done(trim(8)) == 0
    serial = bench.reserved(8)
    refusal = bench.refusal(commit(serial, 0, 1))
    assert dict(refusal.numbers)["reclaimable_bytes"] == 0
    assert bench.done(retire(prefix)) == 2
    assert bench.done(commit(serial, 0, 2)) == 2


# --- going on -----------------------------------------------------------------------------------


def test_commit_around_what_is_shared_is_refused_with_the_offset_behind_it(bench: Bench) -> None:
    _, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 1), (sharer, prefix, 3)))
    refusal = bench.refusal(commit(sharer, 0, 6))
    assert refusal == refused(Refusal.SHARED, first_offset_bytes=4 * GRANULE)
    assert bench.done(commit(sharer, 4, 2)) == 2
    assert bench.done(commit(sharer, 2, 1)) == 1
    assert bench.done(commit(sharer, 0, 1)) == 1


def test_child_is_as_good_as_an_owner(bench: Bench) -> None:
    """It publishes what it shares and what is its own, and may be forked at any length again."""
    owner, _ = bench.shared(1, more=1)
    _ = bench.done(fork((owner, GRANULE + 4)))
    assert bench.refused(fork((2, 2 * GRANULE))) is Refusal.UNSEALED
    assert bench.done(publish(2, 2)) == 2
    assert bench.done(seal(2)) == 1
    assert bench.done(fork((2, 2 * GRANULE))) == (3,)
    assert bench.rights(3) == [Rights.READ] * 2
    for leaves in (close(owner), retire(1), close(2), retire(2)):
        _ = bench.done(leaves)
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=2)
    assert bench.rights(owner) == []


def test_forks_of_forks_share_one_memory(bench: Bench) -> None:
    owner, _ = bench.shared(2)
    for parent in range(1, 9):
        assert bench.done(fork((parent, 2 * GRANULE))) == (parent + 1,)
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=18)
    for serial in (5, 1, 9, 2, 3, 4, 6, 7):
        _ = bench.done(close(serial))
    _ = bench.done(retire(1))
    assert bench.physical == 2
    _ = bench.done(close(8))
    assert bench.physical == bench.ledger.charged == 0
    assert owner not in bench.observe().ranges
