"""Life in common: what sharers see of each other, what the ledger says, and who leaves when."""

import pytest

from kvvmm_model.machine import Operation, Publish
from kvvmm_model.vocabulary import Fault, Ledger, Refusal, Released, Rights, Step, refused

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
    trim,
)

# --- the ledger, event by event -----------------------------------------------------------------


def test_ledger_follows_a_prefix_through_its_life(bench: Bench) -> None:
    """Each row of the table, in the order in which a prefix meets them."""
    owner = bench.filled(8, 0, 1, 2)
    sharer, other = bench.reserved(8), bench.reserved(8)

    def after(operation: Operation, **counts: int) -> None:
        _ = bench.done(operation)
        assert bench.ledger == Ledger(limit=64, **counts)
        assert bench.physical == counts.get("charged", 0)

    after(publish(owner, 2), charged=3, owned=3, mapped=3)
    after(seal(1), charged=3, owned=3, mapped=3)
    after(attach((sharer, 1, 0)), charged=3, owned=3, mapped=5)
    after(attach((other, 1, 6)), charged=3, owned=3, mapped=7)
    after(commit(sharer, 2, 1), charged=4, owned=4, mapped=8)
    after(close(owner), charged=3, owned=3, mapped=5)
    after(release(sharer, 0, 2), charged=3, owned=3, mapped=3)
    after(close(other), charged=3, owned=3, mapped=1, held=2)
    after(attach((sharer, 1, 4)), charged=3, owned=3, mapped=3)
    after(release(sharer, 4, 1), charged=3, owned=3, mapped=2, held=1)
    after(retire(1), charged=2, owned=2, mapped=2)
    assert bench.lines == ["release(handle1) -> ok"]
    after(close(sharer))


def test_two_prefixes_of_one_memory_hold_it_each_for_itself(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(publish(owner, 2))
    _ = bench.done(seal(2))
    assert bench.done(seal(1)) == 0  # all of it is READ by now; the fence alone
    assert bench.steps == [Step.FENCE]
    _ = bench.done(close(owner))
    assert bench.done(retire(2)) == 1
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, held=1)
    assert bench.done(retire(1)) == 1
    assert bench.physical == 0


def test_prefixes_of_several_owners_lie_side_by_side_in_one_reservation(bench: Bench) -> None:
    first, _ = bench.shared(2)
    second, _ = bench.shared(1)
    sharer = bench.reserved(8)
    assert bench.done(attach((sharer, 1, 0))) == 2
    assert bench.done(attach((sharer, 2, 2))) == 1
    _ = bench.done(commit(sharer, 3, 1))
    assert bench.done(publish(sharer, 4)) == 3
    assert bench.done(seal(3)) == 1
    for leaves in (close(first), close(second), retire(1), retire(2), close(sharer)):
        _ = bench.done(leaves)
    assert bench.ledger == Ledger(limit=64, charged=4, owned=4, held=4)
    assert bench.done(retire(3)) == 4


# --- what they see of each other ----------------------------------------------------------------


def test_sharer_grows_past_its_prefix_and_nobody_notices(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    bench.write(owner, 0, 11)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(seal(1))
    sharers = [bench.reserved(8) for _ in range(3)]
    _ = bench.done(attach(*((sharer, 1, 0) for sharer in sharers)))
    before = {serial: bench.address(serial) for serial in sharers}
    for word, sharer in enumerate(sharers):
        _ = bench.done(commit(sharer, 1, 2))
        bench.write(sharer, 1, word)
    assert [bench.read(sharer, 0) for sharer in sharers] == [11] * 3
    assert [bench.read(sharer, 1) for sharer in sharers] == [0, 1, 2]
    assert {serial: bench.address(serial) for serial in sharers} == before
    _ = bench.done(close(sharers[0]))
    assert [bench.read(serial, 0) for serial in (owner, *sharers[1:])] == [11] * 3


def test_write_through_any_alias_fails_softly_and_changes_nobodys_bytes(bench: Bench) -> None:
    owner = bench.filled(8, 0, 4)
    bench.write(owner, 0, 7)
    bench.write(owner, 4, 9)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(seal(1))
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, 1, 0)))
    source = bench.address(owner, 4)
    for address in (bench.address(owner), bench.address(sharer)):
        assert isinstance(bench.driver.write(address, GRANULE, 1), Fault)
        assert isinstance(bench.driver.clear(address, GRANULE), Fault)
        assert isinstance(bench.driver.copy(address, source, GRANULE), Fault)
    assert bench.driver.fence() is None
    assert bench.read(owner, 0) == bench.read(sharer, 0) == 7


@pytest.mark.parametrize("tokens", [1, 1023, 1024, 1025, 2047, 2048])
def test_publish_of_a_fragment_flips_once_where_it_fills_a_window(
    bench: Bench, tokens: int
) -> None:
    """Of 2 KiB a token: below 1,024 of them nothing can be shared, and the refusal says so."""
    owner = bench.filled(8, 0, 1)
    size = tokens * 2048
    if tokens < 1024:
        refusal = bench.refusal(Publish(owner, size))
        assert refusal == refused(Refusal.STRADDLING, fits_bytes=0, next_bytes=GRANULE)
    else:
        assert bench.done(Publish(owner, size)) == 1
        assert len(bench.observe().prefixes[1].handles) == tokens // 1024


LENGTHS = [
    *(1, 4, GRANULE - 1, GRANULE, GRANULE + 1, 2 * GRANULE - 4),
    *(2 * GRANULE, 2 * GRANULE + 1, 2 * GRANULE + 4096, 3 * GRANULE - 1),
]


@pytest.mark.parametrize("length", LENGTHS)
def test_parent_and_child_of_any_length_read_the_same_below_it_and_write_apart(
    bench: Bench, length: int
) -> None:
    """Two windows are sealed.  What is cut off reads zero, also within the last word."""
    owner = bench.filled(8, 0, 1, 2)
    for window in range(3):
        bench.write(owner, window, 0x0101_0101 * (window + 1))
    _ = bench.done(publish(owner, 2))
    _ = bench.done(seal(1))
    assert bench.done(fork((owner, length))) == (2,)
    whole, over = divmod(length, GRANULE)
    assert bench.committed(2) == list(range(whole + bool(over)))
    assert bench.rights(2) == [Rights.READ] * whole + [Rights.RW] * bool(over)
    assert [bench.read(2, window) for window in range(whole)] == [
        0x0101_0101 * (window + 1) for window in range(whole)
    ]
    if over:
        start, words = bench.address(2, whole), over // 4
        if words:
            assert bench.driver.read(start + 4 * (words - 1)) == 0x0101_0101 * (whole + 1)
        rest = 0x0101_0101 * (whole + 1) & ((1 << 8 * (over % 4)) - 1)
        assert bench.driver.read(start + 4 * words) == rest
        bench.write(2, whole, 0xC)
        assert bench.read(owner, whole) == 0x0101_0101 * (whole + 1)
    assert bench.rights(owner) == [Rights.READ, Rights.READ, Rights.RW]
    _ = bench.done(commit(2, 3, 1))
    _ = bench.done(commit(owner, 3, 1))
    bench.write(2, 3, 5)
    assert (bench.read(owner, 3), bench.read(2, 3)) == (0, 5)


# --- leaving ------------------------------------------------------------------------------------


def test_release_by_a_sharer_takes_only_its_own_mapping(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 3)))
    assert bench.done(release(sharer, 0, 8)) == Released(2, ())
    assert bench.lines == ["fence() -> ok", "unmap(range2+3g, 2g) -> ok"]
    assert bench.committed(owner) == [0, 1]
    assert bench.rights(owner) == [Rights.READ] * 2
    assert bench.done(attach((sharer, prefix, 0))) == 2


def test_release_by_the_owner_leaves_the_prefix_to_be_attached(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    _ = bench.done(release(owner, 0, 1))
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=1, held=1)
    _ = bench.done(commit(owner, 0, 1))
    bench.write(owner, 0, 3)  # memory of its own, that nobody else sees
    sharer = bench.reserved(8)
    assert bench.done(attach((sharer, prefix, 0))) == 2
    assert bench.read(sharer, 0) == 0


def test_owner_attaches_its_own_prefix_where_it_was(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    _ = bench.done(release(owner, 0, 2))
    assert bench.done(attach((owner, prefix, 0))) == 2
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=2)


def test_owner_attaches_its_own_prefix_a_second_time(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    assert bench.done(attach((owner, prefix, 4))) == 2
    _ = bench.done(retire(prefix))
    _ = bench.done(close(owner))
    assert bench.steps.count(Step.RELEASE) == 2
    assert bench.physical == bench.ledger.charged == 0


@pytest.mark.parametrize("windows", [(0, 1), (4, 1)])
def test_release_of_one_of_two_mappings_of_a_handle_keeps_it(
    bench: Bench, windows: tuple[int, int]
) -> None:
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0), (sharer, prefix, 4)))
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    assert bench.done(release(sharer, *windows)) == Released(1, ())
    assert Step.RELEASE not in bench.steps
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)
    _ = bench.done(release(sharer, 0, 8))
    assert bench.physical == bench.ledger.charged == 0


# --- the pool -----------------------------------------------------------------------------------


def test_sharer_that_closes_pools_its_own_and_never_what_was_shared(make_bench: MakeBench) -> None:
    bench = make_bench(retention=8)
    owner, prefix = bench.shared(2)
    sharer = bench.filled(8, 0, 3)
    _ = bench.done(attach((sharer, prefix, 1)))
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    _ = bench.done(close(sharer))
    assert bench.lines == [
        "fence() -> ok",
        "clear(range2, 1g) -> ok",
        "clear(range2+3g, 1g) -> ok",
        "fence() -> ok",
        "unmap(range2, 4g) -> ok",
        "release(handle1) -> ok",
        "release(handle2) -> ok",
        "address_free(range2, 8g) -> ok",
    ]
    assert bench.pool == [3, 4]
    assert bench.done(trim(8)) == 2


def test_published_memory_is_not_pooled_while_another_prefix_holds_it(
    make_bench: MakeBench,
) -> None:
    """The release cancels what it touches; a prefix that ends before it goes on."""
    bench = make_bench(retention=8)
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(publish(owner, 2))
    _ = bench.done(release(owner, 1, 1))
    assert bench.pool == [2]
    assert list(bench.observe().prefixes) == [1]
    _ = bench.done(close(owner))
    assert bench.pool == [2, 1]
    assert bench.observe().prefixes == {}


def test_childs_own_memory_is_pooled_and_serves_the_next_fork(make_bench: MakeBench) -> None:
    bench = make_bench(retention=4)
    owner, _ = bench.shared(1, more=1)
    bench.write(owner, 1, 0x5EC)
    _ = bench.done(fork((owner, GRANULE + 8)))
    _ = bench.done(close(2))
    assert bench.pool == [3]
    assert bench.done(fork((owner, GRANULE + 4))) == (3,)
    assert Step.CREATE not in bench.steps
    start = bench.address(3, 1)
    assert (bench.driver.read(start), bench.driver.read(start + 4)) == (0x5EC, 0)
