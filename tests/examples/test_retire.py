"""retire, and who leaves when: the last one disposes, whoever it is."""

from itertools import permutations

import pytest

from kvvmm_model.faulting import Manner
from kvvmm_model.machine import Operation, Retire
from kvvmm_model.vocabulary import Code, Ledger, Refusal, Standing, Step, refused

from support.bench import (
    GRANULE,
    WITH,
    WITHOUT,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fails,
    publish,
    reclaim,
    release,
    retire,
    seal,
)

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


def test_retire_of_what_is_mapped_makes_no_call(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    assert bench.done(retire(prefix)) == 0
    assert bench.calls == []
    assert bench.committed(owner) == [0, 1]
    assert bench.refusal(retire(prefix)) == refused(Refusal.STALE, prefix=prefix)


def test_retire_of_an_unsealed_prefix_cancels_it(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    assert bench.done(retire(1)) == 0
    assert bench.done(commit(owner, 0, 1)) == 0


def test_prefix_keeps_the_memory_of_a_closed_owner_until_it_is_retired(bench: Bench) -> None:
    owner, prefix = bench.shared(2, more=1)
    _ = bench.done(close(owner))
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, held=2)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0)))
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=2)
    _ = bench.done(release(sharer, 0, 1))
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=1, held=1)
    assert bench.done(retire(prefix)) == 1
    assert bench.lines == ["release(handle1) -> ok"]
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_memory_is_released_once_with_the_last_who_leaves(
    bench: Bench, order: tuple[int, ...]
) -> None:
    owner, prefix = bench.shared(1)
    sharers = [bench.reserved(8), bench.reserved(8)]
    for sharer in sharers:
        _ = bench.done(attach((sharer, prefix, 1)))
    leave: list[Operation] = [
        close(owner),
        retire(prefix),
        release(sharers[0], 0, 8),
        close(sharers[1]),
    ]
    for place in order:
        assert bench.physical == bench.ledger.charged == 1
        _ = bench.done(leave[place])
    assert bench.steps.count(Step.RELEASE) == 1
    assert bench.physical == bench.ledger.charged == 0


@pytest.mark.parametrize("by", ["release", "close"])
def test_handle_attached_twice_in_one_reservation_is_disposed_once(bench: Bench, by: str) -> None:
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0), (sharer, prefix, 4)))
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    _ = bench.done(release(sharer, 0, 8) if by == "release" else close(sharer))
    assert bench.steps.count(Step.RELEASE) == 1
    assert bench.physical == bench.ledger.charged == 0


def test_handle_attached_twice_whose_release_fails_is_not_tried_again(bench: Bench) -> None:
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0), (sharer, prefix, 4)))
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    _ = bench.failed(release(sharer, 0, 8), fails(Step.RELEASE))
    assert bench.steps.count(Step.RELEASE) == 1
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, quarantined=1)


@pytest.mark.parametrize("prefix", [0, 3, -1, None, True, 1.0])
def test_retire_of_no_live_prefix_is_stale(bench: Bench, prefix: object) -> None:
    _ = bench.shared(1)
    assert bench.refusal(Retire(prefix)) == refused(Refusal.STALE, prefix=prefix)


@EITHER
def test_retire_with_a_release_failing_goes_on_with_the_others(
    bench: Bench, manner: Manner
) -> None:
    owner, prefix = bench.shared(2)
    _ = bench.done(close(owner))
    failed = bench.failed(retire(prefix), fails(Step.RELEASE, manner=manner))
    assert bench.steps == [Step.RELEASE, Step.RELEASE]
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, held=-2, quarantined=1)
    assert bench.refused(retire(prefix)) is Refusal.STALE


def test_retire_that_loses_the_device_keeps_everything_charged(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    _ = bench.done(close(owner))
    _ = bench.failed(retire(prefix), fails(Step.RELEASE, code=Code.LAUNCH_FAILED))
    assert bench.steps == [Step.RELEASE]
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, quarantined=2)


def test_doubtful_mapping_of_a_sharer_outlives_all_others(bench: Bench) -> None:
    """Its reference keeps the memory; no rights are changed and nothing is pooled by reclaim."""
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.failed(
        attach((sharer, prefix, 0)),
        fails(Step.MAP, manner=WITH),
        fails(Step.QUERY, lasting=True),
        fails(Step.UNMAP),
    )
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    assert bench.done(close(sharer)) == (0,)
    assert bench.observe().ranges[sharer].standing is Standing.CLOSED
    assert bench.physical == bench.ledger.charged == 1
    assert bench.done(reclaim(sharer)) == 1
    assert bench.steps == [
        *(Step.FENCE, Step.QUERY, Step.UNMAP, Step.RELEASE, Step.ADDRESS_FREE),
    ]
    assert bench.physical == bench.ledger.charged == 0


def test_prefix_of_pooled_memory_has_its_true_size(make_bench: MakeBench) -> None:
    bench = make_bench(retention=8)
    first = bench.filled(8, 0, 1)
    _ = bench.done(release(first, 0, 2))
    assert len(bench.pool) == 2
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    _ = bench.done(seal(1))
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=2)
    assert bench.physical * GRANULE == 2 * GRANULE
