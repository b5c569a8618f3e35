"""Release, close and reclaim of shared memory, when their calls fail.

Whatever fails, others keep what they have, and at the end nothing is left but what is listed.
"""

import pytest

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.vocabulary import (
    Code,
    Ledger,
    PrefixView,
    Refusal,
    Released,
    Rights,
    Step,
)

from support.bench import (
    PART,
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
from support.ending import everything_ends

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])
RUN = pytest.mark.parametrize("part", [0, 1, 2], ids="part of {}".format)


def two(bench: Bench, more: int = 0) -> tuple[int, int, int]:
    """An owner, its sealed prefix of three windows, and a sharer with so many of its own behind."""
    owner, prefix = bench.shared(3)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0)))
    for window in range(3, 3 + more):
        _ = bench.done(commit(sharer, window, 1))
    return owner, prefix, sharer


# --- a sharer that leaves -----------------------------------------------------------------------


@EITHER
def test_release_by_a_sharer_with_the_fence_failing_changes_nothing(
    bench: Bench, manner: Manner
) -> None:
    _, _, sharer = two(bench)
    failed = bench.failed(release(sharer, 0, 3), fails(Step.FENCE, manner=manner))
    assert bench.steps == [Step.FENCE]
    assert not failed.residue
    assert bench.done(release(sharer, 0, 3)) == Released(3, ())
    everything_ends(bench)


@RUN
def test_release_by_a_sharer_with_an_unmap_failing_in_part_gives_up_what_is_gone(
    bench: Bench, part: int
) -> None:
    """What is confirmed still mapped stays, is still READ, and may be released again."""
    owner, prefix, sharer = two(bench)
    spec = FaultSpec(Step.UNMAP, PART, Code.UNKNOWN, part=part)
    failed = bench.failed(release(sharer, 0, 3), spec)
    assert bench.steps == [Step.FENCE, Step.UNMAP, *[Step.QUERY] * 3]
    assert failed.residue.ledger == Ledger(mapped=-part)
    assert bench.committed(sharer) == list(range(part, 3))
    assert bench.rights(sharer) == [Rights.READ] * (3 - part)
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    assert bench.physical == bench.ledger.charged == 3 - part
    assert bench.done(release(sharer, 0, 3)) == Released(3 - part, ())
    everything_ends(bench)


def test_release_by_a_sharer_that_nobody_can_ask_about_keeps_its_references(bench: Bench) -> None:
    owner, prefix, sharer = two(bench)
    _ = bench.failed(
        release(sharer, 0, 3), fails(Step.UNMAP, manner=WITH), fails(Step.QUERY, lasting=True)
    )
    assert bench.quarantined(sharer) == [0, 1, 2]
    assert bench.refused(attach((sharer, prefix, 0))) is Refusal.QUARANTINED
    assert bench.refused(commit(sharer, 0, 1)) is Refusal.QUARANTINED
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    assert bench.ledger == Ledger(limit=64, charged=3, owned=3, mapped=3)
    assert bench.done(reclaim(sharer)) == 3
    assert bench.steps == [Step.FENCE, *[Step.QUERY, Step.RELEASE] * 3]
    everything_ends(bench)


def test_release_of_private_and_shared_with_the_second_fence_failing_keeps_the_shared(
    make_bench: MakeBench,
) -> None:
    """Only what the clear was called on is in doubt; sealed memory is never cleared."""
    bench = make_bench(retention=8)
    _, _, sharer = two(bench, more=1)
    _ = bench.failed(release(sharer, 0, 4), fails(Step.FENCE, 2))
    assert bench.steps == [Step.FENCE, Step.CLEAR, Step.FENCE]
    assert bench.quarantined(sharer) == [3]
    assert bench.committed(sharer) == [0, 1, 2]
    everything_ends(bench)


@EITHER
def test_close_of_a_sharer_with_the_fence_failing_quarantines_its_mappings_only(
    bench: Bench, manner: Manner
) -> None:
    owner, prefix, sharer = two(bench, more=1)
    _ = bench.failed(close(sharer), fails(Step.FENCE, manner=manner))
    assert bench.quarantined(sharer) == [0, 1, 2, 3]
    third = bench.reserved(8)
    assert bench.done(attach((third, prefix, 0))) == 3  # the quarantine is the mapping's
    assert bench.committed(owner) == [0, 1, 2]
    assert bench.done(reclaim()) == 4
    everything_ends(bench)


@EITHER
def test_close_of_the_last_with_a_release_failing_goes_on_with_the_others(
    bench: Bench, manner: Manner
) -> None:
    owner, prefix, sharer = two(bench)
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    failed = bench.failed(close(sharer), fails(Step.RELEASE, 2, manner=manner))
    assert bench.steps == [
        *(Step.FENCE, Step.UNMAP, Step.RELEASE, Step.RELEASE, Step.RELEASE, Step.ADDRESS_FREE)
    ]
    assert failed.residue.ledger == Ledger(charged=-2, owned=-2, mapped=-3, quarantined=1)
    everything_ends(bench)


def test_close_of_a_handle_mapped_twice_with_one_unmap_failing_keeps_it(bench: Bench) -> None:
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.done(attach((sharer, prefix, 0), (sharer, prefix, 4)))
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    _ = bench.failed(close(sharer), fails(Step.UNMAP, 2))
    assert Step.RELEASE not in bench.steps
    assert bench.quarantined(sharer) == [4]
    assert bench.done(reclaim()) == 1
    assert bench.steps[-2:] == [Step.RELEASE, Step.ADDRESS_FREE]
    everything_ends(bench)


# --- an owner that leaves -----------------------------------------------------------------------


def test_release_of_published_windows_cancels_though_the_unmap_fails(bench: Bench) -> None:
    """Still mapped, still writable, and no longer published."""
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    failed = bench.failed(release(owner, 1, 1), fails(Step.UNMAP))
    assert failed.residue.gone == {PrefixView(1, owner, (1, 2), sealed=False)}
    assert bench.committed(owner) == [0, 1]
    assert bench.rights(owner) == [Rights.RW] * 2
    assert bench.done(publish(owner, 2)) == 2
    assert bench.done(seal(2)) == 2
    everything_ends(bench)


def test_release_of_published_windows_cancels_though_the_clear_may_still_land(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(retention=8)
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    _ = bench.failed(release(owner, 0, 1), fails(Step.FENCE, 2))
    assert bench.observe().prefixes == {}
    assert bench.quarantined(owner) == [0]
    assert bench.refused(publish(owner, 1)) is Refusal.QUARANTINED
    everything_ends(bench)


def test_close_of_an_owner_with_an_unmap_failing_keeps_the_prefix_usable(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    _ = bench.failed(close(owner), fails(Step.UNMAP), fails(Step.QUERY, 2))
    assert bench.quarantined(owner) == [0, 1]
    sharer = bench.reserved(8)
    assert bench.done(attach((sharer, prefix, 0))) == 2
    assert bench.done(retire(prefix)) == 0
    assert bench.done(close(sharer)) == ()
    assert bench.physical == bench.ledger.charged == 2  # the quarantine keeps it
    assert bench.done(reclaim()) == 2
    assert bench.physical == 0
    everything_ends(bench)


def test_retire_of_what_is_in_quarantine_elsewhere_releases_nothing(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    _ = bench.failed(close(owner), fails(Step.FENCE))
    assert bench.done(retire(prefix)) == 0
    assert bench.calls == []
    everything_ends(bench)
