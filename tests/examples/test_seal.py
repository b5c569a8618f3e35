"""seal: readable for all, writable for nobody."""

import pytest

from kvvmm_model.faulting import Manner
from kvvmm_model.machine import Seal
from kvvmm_model.vocabulary import Code, Fault, Refusal, Rights, Step, refused

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
    fork,
    publish,
    release,
    retire,
    seal,
)

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


def test_seal_fences_and_takes_the_right_to_write(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1, 2)
    bench.write(owner, 0, 7)
    _ = bench.done(publish(owner, 2))
    assert bench.done(seal(1)) == 2
    assert bench.lines == ["fence() -> ok", "set_access(range1, 2g, READ) -> ok"]
    assert bench.rights(owner) == [Rights.READ, Rights.READ, Rights.RW]
    assert bench.read(owner, 0) == 7
    assert isinstance(bench.driver.write(bench.address(owner), GRANULE, 1), Fault)


def test_seal_of_what_is_sealed_makes_no_call(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    assert bench.done(seal(prefix)) == 0
    assert bench.calls == []


def test_commit_over_sealed_windows_is_refused_with_the_first_offset_behind(bench: Bench) -> None:
    owner, _ = bench.shared(2, more=1)
    refusal = bench.refusal(commit(owner, 1, 4))
    assert refusal == refused(Refusal.SHARED, first_offset_bytes=2 * GRANULE)
    assert bench.done(commit(owner, 2, 4)) == 3


def test_release_of_sealed_windows_is_never_pooled(make_bench: MakeBench) -> None:
    bench = make_bench(retention=8)
    owner, prefix = bench.shared(1)
    _ = bench.done(retire(prefix))
    assert bench.rights(owner) == [Rights.READ]  # until it is disposed
    _ = bench.done(release(owner, 0, 1))
    assert bench.pool == []
    assert bench.physical == 0


@pytest.mark.parametrize("prefix", [0, 2, -1, None, True, "1"])
def test_seal_of_no_live_prefix_is_stale(bench: Bench, prefix: object) -> None:
    _ = bench.shared(1)
    assert bench.refusal(Seal(prefix)) == refused(Refusal.STALE, prefix=prefix)


@EITHER
def test_seal_with_the_fence_failing_changes_nothing(bench: Bench, manner: Manner) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    assert not bench.failed(seal(1), fails(Step.FENCE, manner=manner)).residue
    assert bench.steps == [Step.FENCE]
    assert bench.done(seal(1)) == 1


@EITHER
def test_seal_that_fails_makes_its_windows_writable_again(bench: Bench, manner: Manner) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    failed = bench.failed(seal(1), fails(Step.SET_ACCESS, manner=manner))
    assert bench.lines[2:] == [
        "set_access(range1+1g, 1g, RW) -> ok",
        "set_access(range1, 1g, RW) -> ok",
    ]
    assert failed.undone
    assert not failed.residue
    bench.write(owner, 1, 3)
    assert bench.done(seal(1)) == 2


def test_seal_of_several_runs_that_fails_never_touches_what_was_read_only(bench: Bench) -> None:
    """Two prefixes over one handle: the sealed one is never made writable by the other."""
    owner = bench.filled(8, 0, 1, 2)
    _ = bench.done(publish(owner, 1))
    _ = bench.done(publish(owner, 3))
    _ = bench.done(seal(1))
    _ = bench.failed(seal(2), fails(Step.SET_ACCESS))
    assert bench.lines == [
        "fence() -> ok",
        "set_access(range1+1g, 2g, READ) -> UNKNOWN",
        "set_access(range1+2g, 1g, RW) -> ok",
        "set_access(range1+1g, 1g, RW) -> ok",
    ]
    assert bench.rights(owner) == [Rights.READ, Rights.RW, Rights.RW]


def test_seal_of_two_runs_undoes_the_first_when_the_second_fails(bench: Bench) -> None:
    """A sharer's own windows on both sides of what it has attached."""
    _, prefix = bench.shared(1)
    sharer = bench.filled(8, 0)
    _ = bench.done(attach((sharer, prefix, 1)))
    _ = bench.done(commit(sharer, 2, 1))
    _ = bench.done(publish(sharer, 3))
    _ = bench.failed(seal(2), fails(Step.SET_ACCESS, 2))
    assert bench.lines[1:] == [
        "set_access(range2, 1g, READ) -> ok",
        "set_access(range2+2g, 1g, READ) -> UNKNOWN",
        "set_access(range2+2g, 1g, RW) -> ok",
        "set_access(range2, 1g, RW) -> ok",
    ]
    assert bench.rights(sharer) == [Rights.RW, Rights.READ, Rights.RW]
    assert bench.done(seal(2)) == 2


def test_seal_that_cannot_be_undone_names_windows_of_unknown_rights(bench: Bench) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    failed = bench.failed(seal(1), fails(Step.SET_ACCESS, manner=WITH, lasting=True))
    assert not failed.undone
    assert bench.rights(owner) == [Rights.UNKNOWN] * 2
    assert len(failed.cleanup_faults) == 2
    for operation in (commit(owner, 0, 3), fork((owner, GRANULE))):
        refusal = bench.refusal(operation)
        assert refusal.reason is Refusal.RIGHTS_UNKNOWN
    sharer = bench.reserved(8)
    assert bench.refused(attach((sharer, 1, 0))) is Refusal.UNSEALED
    assert bench.done(seal(1)) == 2
    assert bench.done(attach((sharer, 1, 0))) == 2


def test_release_of_windows_of_unknown_rights_is_released_not_pooled(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(retention=8)
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    _ = bench.failed(seal(1), fails(Step.SET_ACCESS, lasting=True))
    _ = bench.done(release(owner, 0, 1))
    assert bench.pool == []
    assert bench.physical == 0


@pytest.mark.parametrize(("nth", "unknown"), [(1, (0, 1)), (2, (0, 1)), (3, (0,))])
def test_seal_that_loses_the_device_leaves_rights_unknown(
    bench: Bench, nth: int, unknown: tuple[int, ...]
) -> None:
    owner = bench.filled(8, 0, 1)
    _ = bench.done(publish(owner, 2))
    first = () if nth == 1 else (fails(Step.SET_ACCESS),)
    lost = fails(Step.SET_ACCESS, nth, code=Code.ILLEGAL_ADDRESS)
    _ = bench.failed(seal(1), *first, lost)
    rights = [Rights.UNKNOWN if window in unknown else Rights.RW for window in (0, 1)]
    assert bench.rights(owner) == rights
    for operation in (seal(1), retire(1), publish(owner, 1), close(owner)):
        assert bench.refused(operation) is Refusal.DEVICE_LOST
