"""A code after which the process is lost to the device: no further call, everything counted."""

from collections.abc import Callable

import pytest
from attrs import frozen

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.machine import Operation
from kvvmm_model.vocabulary import Code, Ledger, Policy, Refusal, Standing, Step, refused

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
    reclaim,
    release,
    reserve,
    retire,
    seal,
    set_limit,
    trim,
)

STICKY = Code.ILLEGAL_ADDRESS
EVERY_OPERATION: list[Operation] = [
    reserve(1),
    commit(1, 0, 1),
    release(1, 0, 1),
    close(1),
    publish(1, 1),
    seal(1),
    attach((1, 1, 0)),
    retire(1),
    fork((1, GRANULE)),
    trim(1),
    reclaim(),
    reclaim(1),
    set_limit(1),
]


@frozen
class Case:
    """What is done, on a bench of which state, and the call at which the device is lost."""

    prepare: Callable[[Bench], object]
    operation: Operation
    last: tuple[Step, int]
    earlier: tuple[FaultSpec, ...] = ()

    def spec(self, manner: Manner) -> FaultSpec:
        step, nth = self.last
        return fails(step, nth, code=STICKY, manner=manner)

    @property
    def may_have_worked(self) -> bool:
        return self.last[0] is not Step.QUERY


def _empty(bench: Bench) -> None:
    _ = bench.reserved(8)


def _pooled(bench: Bench) -> None:
    """Handles 1 and 2 in the pool; 1 is in nobody's way but it is the older."""
    serial = bench.filled(8, 6, 7)
    assert bench.done(release(serial, 6, 2))


def _in_use(bench: Bench) -> None:
    """Windows 0, 1 and 4; two of the three have room in the pool."""
    _ = bench.filled(8, 0, 1, 4)


def _doubtful(bench: Bench) -> None:
    """Closed, with two mappings in quarantine."""
    serial = bench.filled(8, 0, 4)
    _ = bench.failed(close(serial), fails(Step.FENCE))


def _published(bench: Bench) -> None:
    """Prefix 1 is windows 0 and 1 of reservation 1, unsealed; window 2 is its own."""
    serial = bench.filled(8, 0, 1, 2)
    assert bench.done(publish(serial, 2)) == 1


def _sealed(bench: Bench) -> None:
    """The same, sealed; reservation 2 is empty."""
    _published(bench)
    assert bench.done(seal(1)) == 2
    _ = bench.reserved(8)


def _shared(bench: Bench) -> None:
    """Only reservation 2 has it, behind a window of its own, and before another."""
    _sealed(bench)
    _ = bench.done(attach((2, 1, 1)))
    for operation in (commit(2, 0, 1), commit(2, 3, 1), close(1), retire(1), trim(8)):
        _ = bench.done(operation)


def _held(bench: Bench) -> None:
    """Nobody has it but its prefix."""
    _sealed(bench)
    _ = bench.done(close(1))


_UNDO = (fails(Step.SET_ACCESS),)
_BAD_UNMAP = (fails(Step.UNMAP),)
_FORK = fork((1, 2 * GRANULE + 1))
_BAD_COPY = (fails(Step.COPY),)

CASES = {
    "reserve-address_reserve": Case(_empty, reserve(4), (Step.ADDRESS_RESERVE, 1)),
    "commit-create": Case(_empty, commit(1, 0, 3), (Step.CREATE, 2)),
    "commit-map": Case(_pooled, commit(1, 0, 3), (Step.MAP, 2)),
    "commit-query": Case(_empty, commit(1, 0, 3), (Step.QUERY, 1), (fails(Step.MAP, 2),)),
    "commit-set_access": Case(_pooled, commit(1, 0, 3), (Step.SET_ACCESS, 1)),
    "commit-unmap": Case(_empty, commit(1, 0, 3), (Step.UNMAP, 2), _UNDO),
    "commit-undo-query": Case(_empty, commit(1, 0, 3), (Step.QUERY, 1), (*_UNDO, *_BAD_UNMAP)),
    "commit-release": Case(_pooled, commit(1, 0, 4), (Step.RELEASE, 1), _UNDO),
    "release-fence": Case(_in_use, release(1, 0, 8), (Step.FENCE, 1)),
    "release-clear": Case(_in_use, release(1, 0, 8), (Step.CLEAR, 1)),
    "release-second-fence": Case(_in_use, release(1, 0, 8), (Step.FENCE, 2)),
    "release-unmap": Case(_in_use, release(1, 0, 8), (Step.UNMAP, 1)),
    "release-second-unmap": Case(_in_use, release(1, 0, 8), (Step.UNMAP, 2)),
    "release-query": Case(_in_use, release(1, 0, 8), (Step.QUERY, 2), _BAD_UNMAP),
    "release-release": Case(_in_use, release(1, 0, 8), (Step.RELEASE, 1)),
    "close-fence": Case(_in_use, close(1), (Step.FENCE, 1)),
    "close-clear": Case(_in_use, close(1), (Step.CLEAR, 1)),
    "close-second-fence": Case(_in_use, close(1), (Step.FENCE, 2)),
    "close-unmap": Case(_in_use, close(1), (Step.UNMAP, 1)),
    "close-query": Case(_in_use, close(1), (Step.QUERY, 1), _BAD_UNMAP),
    "close-release": Case(_in_use, close(1), (Step.RELEASE, 1)),
    "close-address_free": Case(_in_use, close(1), (Step.ADDRESS_FREE, 1)),
    "release-published-fence": Case(_published, release(1, 0, 2), (Step.FENCE, 1)),
    "release-published-clear": Case(_published, release(1, 0, 2), (Step.CLEAR, 1)),
    "release-published-unmap": Case(_published, release(1, 0, 2), (Step.UNMAP, 1)),
    "release-shared-unmap": Case(_shared, release(2, 0, 8), (Step.UNMAP, 1)),
    "release-shared-query": Case(_shared, release(2, 0, 8), (Step.QUERY, 3), _BAD_UNMAP),
    "release-shared-release": Case(_shared, release(2, 0, 8), (Step.RELEASE, 2)),
    "close-published-fence": Case(_published, close(1), (Step.FENCE, 1)),
    "close-published-unmap": Case(_published, close(1), (Step.UNMAP, 1)),
    "close-shared-clear": Case(_shared, close(2), (Step.CLEAR, 1)),
    "close-shared-second-clear": Case(_shared, close(2), (Step.CLEAR, 2)),
    "close-shared-release": Case(_shared, close(2), (Step.RELEASE, 2)),
    "close-owner-unmap": Case(_sealed, close(1), (Step.UNMAP, 1)),
    "close-owner-address_free": Case(_sealed, close(1), (Step.ADDRESS_FREE, 1)),
    "seal-fence": Case(_published, seal(1), (Step.FENCE, 1)),
    "seal-set_access": Case(_published, seal(1), (Step.SET_ACCESS, 1)),
    "seal-undo-set_access": Case(_published, seal(1), (Step.SET_ACCESS, 2), _UNDO),
    "seal-undo-last-set_access": Case(_published, seal(1), (Step.SET_ACCESS, 3), _UNDO),
    "attach-map": Case(_sealed, attach((2, 1, 0)), (Step.MAP, 1)),
    "attach-second-map": Case(_sealed, attach((2, 1, 0)), (Step.MAP, 2)),
    "attach-query": Case(_sealed, attach((2, 1, 0)), (Step.QUERY, 1), (fails(Step.MAP, 2),)),
    "attach-set_access": Case(_sealed, attach((2, 1, 0), (2, 1, 4)), (Step.SET_ACCESS, 2)),
    "attach-unmap": Case(_sealed, attach((2, 1, 0)), (Step.UNMAP, 2), _UNDO),
    "attach-undo-query": Case(_sealed, attach((2, 1, 0)), (Step.QUERY, 1), (*_UNDO, *_BAD_UNMAP)),
    "attach-held-map": Case(_held, attach((2, 1, 0)), (Step.MAP, 2)),
    "retire-release": Case(_held, retire(1), (Step.RELEASE, 1)),
    "retire-last-release": Case(_held, retire(1), (Step.RELEASE, 2)),
    "fork-address_reserve": Case(_sealed, _FORK, (Step.ADDRESS_RESERVE, 1)),
    "fork-fence": Case(_sealed, _FORK, (Step.FENCE, 1)),
    "fork-map": Case(_sealed, _FORK, (Step.MAP, 2)),
    "fork-query": Case(_sealed, _FORK, (Step.QUERY, 1), (fails(Step.MAP, 3),)),
    "fork-set_access": Case(_sealed, _FORK, (Step.SET_ACCESS, 1)),
    "fork-create": Case(_sealed, _FORK, (Step.CREATE, 1)),
    "fork-private-map": Case(_sealed, _FORK, (Step.MAP, 3)),
    "fork-private-set_access": Case(_sealed, _FORK, (Step.SET_ACCESS, 2)),
    "fork-copy": Case(_sealed, _FORK, (Step.COPY, 1)),
    "fork-last-fence": Case(_sealed, _FORK, (Step.FENCE, 2)),
    "fork-undo-fence": Case(_sealed, _FORK, (Step.FENCE, 2), _BAD_COPY),
    "fork-unmap": Case(_sealed, _FORK, (Step.UNMAP, 2), _BAD_COPY),
    "fork-undo-query": Case(_sealed, _FORK, (Step.QUERY, 1), (*_BAD_COPY, *_BAD_UNMAP)),
    "fork-release": Case(_sealed, _FORK, (Step.RELEASE, 1), _BAD_COPY),
    "fork-address_free": Case(_sealed, _FORK, (Step.ADDRESS_FREE, 1), _BAD_COPY),
    "trim-release": Case(_pooled, trim(2), (Step.RELEASE, 1)),
    "reclaim-fence": Case(_doubtful, reclaim(), (Step.FENCE, 1)),
    "reclaim-query": Case(_doubtful, reclaim(), (Step.QUERY, 1)),
    "reclaim-unmap": Case(_doubtful, reclaim(), (Step.UNMAP, 2)),
    "reclaim-query-again": Case(_doubtful, reclaim(), (Step.QUERY, 2), _BAD_UNMAP),
    "reclaim-release": Case(_doubtful, reclaim(), (Step.RELEASE, 1)),
    "reclaim-last-release": Case(_doubtful, reclaim(), (Step.RELEASE, 2)),
    "reclaim-address_free": Case(_doubtful, reclaim(), (Step.ADDRESS_FREE, 1)),
}


@pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_any_operation_on_a_sticky_code_ends_without_another_call(
    make_bench: MakeBench, case: Case, manner: Manner
) -> None:
    """Scenario 38.  Whichever call it is, it is the last; what was in hand is listed."""
    if manner is WITH and not case.may_have_worked:
        manner = WITHOUT  # a question has no effect
    bench = make_bench(retention=2)
    _ = case.prepare(bench)
    spec = case.spec(manner)
    failed = bench.failed(case.operation, *case.earlier, spec)
    assert bench.steps[-1] is spec.step
    assert bench.steps.count(spec.step) == spec.nth
    faults = (failed.fault, *failed.cleanup_faults)
    assert [fault.sticky for fault in faults] == [*[False] * len(case.earlier), True]
    observed = bench.observe()
    assert observed.lost
    assert observed.ledger.charged >= bench.physical
    # A handle that nothing maps, holds or pools is quarantined, not forgotten.
    mapped = {view.handle for view in observed.mappings.values()}
    held = {handle for view in observed.prefixes.values() for handle in view.handles} - mapped
    for handle in observed.handles.values():
        kept = (mapped, held, observed.pool)
        assert sum([handle.quarantined, *(handle.handle in place for place in kept)]) == 1
    for operation in EVERY_OPERATION:
        assert bench.refusal(operation) == refused(Refusal.DEVICE_LOST, code=STICKY)


@pytest.mark.parametrize("code", [Code.LAUNCH_FAILED, Code.LAUNCH_TIMEOUT, Code.ASSERT])
def test_commit_on_another_sticky_code_is_device_lost_too(bench: Bench, code: Code) -> None:
    """Scenario 38.  The code is told to whoever asks later."""
    serial = bench.reserved(8)
    _ = bench.failed(commit(serial, 0, 1), fails(Step.MAP, code=code))
    assert bench.refusal(close(serial)) == refused(Refusal.DEVICE_LOST, code=code)


def test_commit_on_a_sticky_code_lists_what_was_in_hand(make_bench: MakeBench) -> None:
    """Scenario 59.  One mapping made, one being made, two handles not mapped yet: one a hit."""
    bench = make_bench(retention=1)
    serial = bench.filled(8, 7)
    assert bench.done(release(serial, 7, 1))
    failed = bench.failed(commit(serial, 0, 4), fails(Step.MAP, 2, code=STICKY))
    assert bench.steps == [*[Step.CREATE] * 3, Step.MAP, Step.MAP]
    assert bench.quarantined(serial) == [0, 1]  # window 0 has the hit
    assert [serial for serial, view in bench.observe().handles.items() if view.quarantined] == [
        3,
        4,
    ]
    assert failed.residue.ledger == Ledger(charged=3, owned=3, mapped=2, pooled=-1, quarantined=2)


def test_commit_on_a_sticky_create_quarantines_its_hits(make_bench: MakeBench) -> None:
    """Scenario 59.  A hit that was taken does not return to the pool."""
    bench = make_bench(retention=1)
    serial = bench.filled(8, 7)
    assert bench.done(release(serial, 7, 1))
    failed = bench.failed(commit(serial, 0, 2), fails(Step.CREATE, code=STICKY))
    assert bench.pool == []
    assert failed.residue.ledger == Ledger(charged=1, pooled=-1, quarantined=1, unattributed=1)


def test_commit_giving_up_on_a_sticky_release_keeps_the_rest_pooled(
    make_bench: MakeBench,
) -> None:
    """Scenario 59.  What it had not come to yet is where it was."""
    bench = make_bench(policy=Policy.RUN, retention=2, limit=2)
    serial = bench.filled(8, 0, 2)
    assert bench.done(release(serial, 0, 3))
    _ = bench.failed(commit(serial, 4, 2), fails(Step.RELEASE, code=STICKY))
    assert bench.steps == [Step.RELEASE]
    assert bench.pool == [2]
    assert bench.observe().handles[1].quarantined


def test_release_on_a_sticky_clear_quarantines_all_of_it(make_bench: MakeBench) -> None:
    bench = make_bench(retention=1)
    serial = bench.filled(8, 0, 1, 2)
    _ = bench.failed(release(serial, 0, 2), fails(Step.CLEAR, code=STICKY))
    assert bench.quarantined(serial) == [0, 1]
    assert bench.committed(serial) == [2]


def test_close_on_a_sticky_release_quarantines_the_range(bench: Bench) -> None:
    serial = bench.filled(8, 0, 1)
    failed = bench.failed(close(serial), fails(Step.RELEASE, code=STICKY))
    assert bench.observe().ranges[serial].standing is Standing.QUARANTINED
    assert failed.residue.ledger == Ledger(mapped=-2, quarantined=2)


def test_trim_on_a_sticky_release_keeps_the_rest_pooled(make_bench: MakeBench) -> None:
    bench = make_bench(retention=3)
    _pooled(bench)
    failed = bench.failed(trim(2), fails(Step.RELEASE, code=STICKY))
    assert bench.pool == [2]
    assert failed.residue.ledger == Ledger(pooled=-1, quarantined=1)


def test_reclaim_on_a_sticky_last_release_quarantines_the_range(bench: Bench) -> None:
    _doubtful(bench)
    failed = bench.failed(reclaim(), fails(Step.RELEASE, 2, code=STICKY))
    assert bench.observe().ranges[1].standing is Standing.QUARANTINED
    assert failed.residue.ledger == Ledger(charged=-1, owned=-1, mapped=-2, quarantined=1)


def test_reserve_on_a_sticky_code_lists_address_space(bench: Bench) -> None:
    failed = bench.failed(reserve(4), fails(Step.ADDRESS_RESERVE, code=STICKY))
    assert failed.residue.ledger == Ledger(unattributed_addresses=4)


def test_any_operation_on_a_lost_device_is_refused_whatever_its_arguments(bench: Bench) -> None:
    _ = bench.failed(reserve(4), fails(Step.ADDRESS_RESERVE, code=STICKY))
    for operation in (reserve(0), commit(99, -1, 0), release(99, -1, 0), close(99), trim(-1)):
        assert bench.refused(operation) is Refusal.DEVICE_LOST
    assert bench.refused(reclaim(99)) is Refusal.DEVICE_LOST
    assert bench.refused(set_limit(-1)) is Refusal.DEVICE_LOST
