"""seal and attach, when their undoing fails as well: what is in doubt is named, and can be left."""

import pytest

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.vocabulary import (
    Code,
    Ledger,
    MappingView,
    Refusal,
    Released,
    Rights,
    Standing,
    Step,
)

from support.bench import (
    GRANULE,
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

# --- undoing that fails: seal -------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 1, 2])
def test_seal_that_works_in_part_is_undone_for_all_that_was_tried(bench: Bench, part: int) -> None:
    owner = bench.filled(8, 0, 1, 2)
    _ = bench.done(publish(owner, 3))
    spec = FaultSpec(Step.SET_ACCESS, PART, Code.UNKNOWN, part=part)
    assert not bench.failed(seal(1), spec).residue
    assert bench.steps == [Step.FENCE, *[Step.SET_ACCESS] * 4]
    for window in range(3):
        bench.write(owner, window, 1)
    everything_ends(bench)


@EITHER
@pytest.mark.parametrize("nth", [2, 3, 4])
def test_seal_whose_undoing_fails_names_the_window_and_restores_the_others(
    bench: Bench, nth: int, manner: Manner
) -> None:
    owner = bench.filled(8, 0, 1, 2)
    _ = bench.done(publish(owner, 3))
    failed = bench.failed(
        seal(1), fails(Step.SET_ACCESS), fails(Step.SET_ACCESS, nth, manner=manner)
    )
    window = 4 - nth  # newest first
    assert failed.residue.new == {
        MappingView(owner, window, window + 1, 1, Rights.UNKNOWN, quarantined=False)
    }
    assert bench.refused(commit(owner, window, 1)) is Refusal.RIGHTS_UNKNOWN
    assert bench.done(seal(1)) == 3  # repeated, it covers all of them again
    everything_ends(bench)


def test_seal_that_fails_for_ever_can_be_left_by_release(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    for _ in range(3):
        _ = bench.failed(seal(1), fails(Step.SET_ACCESS, manner=WITH, lasting=True))
        assert bench.rights(owner) == [Rights.UNKNOWN] * 2
    assert bench.done(release(owner, 0, 1)) == Released(1, ())
    assert bench.refused(seal(1)) is Refusal.STALE
    assert bench.done(commit(owner, 0, 1)) == 1
    assert bench.rights(owner) == [Rights.RW, Rights.UNKNOWN]
    everything_ends(bench)


def test_seal_repeated_over_unknown_rights_may_fail_and_know_them_again(bench: Bench) -> None:
    """The second one is undone: writable is what the windows were, and are now known to be."""
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    _ = bench.failed(seal(1), fails(Step.SET_ACCESS, manner=WITH, lasting=True))
    failed = bench.failed(seal(1), fails(Step.SET_ACCESS))
    assert bench.lines[1:] == [
        "set_access(range1, 2g, READ) -> UNKNOWN",
        "set_access(range1+1g, 1g, RW) -> ok",
        "set_access(range1, 1g, RW) -> ok",
    ]
    assert {fact.rights for fact in failed.residue.new if isinstance(fact, MappingView)} == {
        Rights.RW
    }
    assert bench.done(commit(owner, 0, 3)) == 1
    bench.write(owner, 0, 1)
    everything_ends(bench)


def test_seal_of_a_second_prefix_knows_again_what_the_first_left_open(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(publish(owner, 2))
    _ = bench.failed(seal(1), fails(Step.SET_ACCESS, lasting=True))
    assert bench.done(seal(2)) == 2
    assert bench.lines[1:] == ["set_access(range1, 2g, READ) -> ok"]
    assert bench.done(seal(1)) == 0
    assert bench.steps == [Step.FENCE]  # it is READ by now, and readers are left alone
    everything_ends(bench)


# --- undoing that fails: attach -----------------------------------------------------------------


@EITHER
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_attach_whose_undoing_fails_quarantines_what_is_still_mapped(
    make_bench: MakeBench, nth: int, manner: Manner
) -> None:
    """And nothing of the prefix is ever pooled for it."""
    bench = make_bench(retention=8)
    owner, prefix = bench.shared(3)
    sharer = bench.reserved(8)
    failed = bench.failed(
        attach((sharer, prefix, 0)),
        fails(Step.SET_ACCESS),
        fails(Step.UNMAP, nth, manner=manner),
    )
    there = [] if manner is WITH else [3 - nth]
    assert bench.quarantined(sharer) == there
    assert failed.undone is not bool(there)
    assert failed.residue.ledger == Ledger(mapped=len(there))
    assert bench.pool == []
    assert bench.done(reclaim()) == len(there)
    assert bench.done(attach((sharer, prefix, 0))) == 3
    assert bench.committed(owner) == [0, 1, 2]
    everything_ends(bench)


def test_attach_of_a_map_that_nobody_can_ask_about_is_settled_by_its_unmap(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    for manner in (WITH, WITHOUT):  # an unmap of what is not mapped succeeds (D-21)
        failed = bench.failed(
            attach((sharer, prefix, 0)), fails(Step.MAP, 2, manner=manner), fails(Step.QUERY)
        )
        assert failed.undone
        assert not failed.residue
    everything_ends(bench)


def test_attach_over_a_broken_driver_goes_on_undoing_to_the_end(bench: Bench) -> None:
    owner, prefix = bench.shared(3)
    sharer = bench.reserved(8)
    failed = bench.failed(
        attach((sharer, prefix, 0)),
        fails(Step.SET_ACCESS),
        fails(Step.UNMAP, lasting=True),
        fails(Step.QUERY, lasting=True),
    )
    assert len(failed.cleanup_faults) == 6
    assert bench.quarantined(sharer) == [0, 1, 2]
    for leaves in (close(owner), retire(prefix)):
        _ = bench.done(leaves)
    assert bench.done(close(sharer)) == (0, 1, 2)
    assert bench.observe().ranges[sharer].standing is Standing.CLOSED
    assert bench.ledger.charged == bench.physical == 3
    everything_ends(bench)


def test_private_memory_may_follow_an_attach_that_was_undone(bench: Bench) -> None:
    """K attached, V failed: both are as before, so that a caller may go on without sharing."""
    _, keys = bench.shared(2)
    _, values = bench.shared(2)
    sharer = bench.reserved(8)
    failed = bench.failed(
        attach((sharer, keys, 0), (sharer, values, 4)), fails(Step.MAP, 4, manner=WITH)
    )
    assert failed.undone
    assert bench.done(commit(sharer, 0, 6)) == 6
    bench.write(sharer, 0, GRANULE)
    everything_ends(bench)
