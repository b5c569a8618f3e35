"""The backend where another thread was faster between a check and a lock, or during a call.

The model has no threads.  The other thread is played by a call at the very moment that counts, so
that nothing depends on a scheduler.
"""

from collections.abc import Callable
from threading import Lock
from types import TracebackType

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.faulting import FaultPlan
from kvvmm_model.machine import Attach, Operation
from kvvmm_model.vocabulary import (
    Code,
    Done,
    Failed,
    Fault,
    Ledger,
    Policy,
    Refusal,
    Released,
    Standing,
    Step,
    refused,
)

from support.bench import (
    GRANULE,
    Bench,
    Side,
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
)


class Overtaking:
    """In place of a reservation's lock: lets something happen just before it is taken."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._lock = Lock()

    def __enter__(self) -> None:
        self._before()
        _ = self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()


@pytest.fixture
def bench() -> Bench:
    return Bench(Side.BACKEND)


def backend_of(bench: Bench) -> Backend:
    assert isinstance(bench.subject, Backend)
    return bench.subject


@pytest.mark.parametrize("last", [seal(1), retire(1)])
def test_operation_on_a_prefix_overtaken_by_a_retire_is_stale(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, last: Operation
) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    backend = backend_of(bench)
    found = backend.records.reservations[owner]
    lock = found.lock

    def retire_first() -> None:
        monkeypatch.setattr(found, "lock", lock)
        assert backend.apply(retire(1)) == Done(0)

    monkeypatch.setattr(found, "lock", Overtaking(retire_first))
    assert backend.apply(last) == refused(Refusal.STALE, prefix=1)


@pytest.mark.parametrize("last", [commit(1, 0, 1), release(1, 0, 1), close(1), publish(1, 1)])
def test_operation_overtaken_by_a_close_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, last: Operation
) -> None:
    serial = bench.filled(8, 0)
    backend = backend_of(bench)
    found = backend.records.reservations[serial]
    lock = found.lock

    def close_first() -> None:
        monkeypatch.setattr(found, "lock", lock)
        assert backend.apply(close(serial)) == Done(())

    monkeypatch.setattr(found, "lock", Overtaking(close_first))
    assert backend.apply(last) == refused(Refusal.STALE, reservation=serial)
    assert bench.recorder.calls[-1].step is Step.ADDRESS_FREE
    assert bench.ledger == Ledger(limit=64)


@pytest.mark.parametrize("closed", [False, True])
def test_reclaim_overtaken_by_another_finds_nothing_left(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, closed: bool
) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    bench.quarantine(serial, 1)
    if closed:
        assert bench.done(close(serial)) == (0, 1)
    backend = backend_of(bench)

    def reclaim_first() -> Fault | None:
        monkeypatch.undo()
        assert backend.apply(reclaim()) == Done(2)
        return bench.recorder.fence()

    monkeypatch.setattr(bench.recorder, "fence", reclaim_first)
    assert backend.apply(reclaim()) == Done(0)
    steps = [call.step for call in bench.recorder.take()]
    assert steps.count(Step.UNMAP) == steps.count(Step.RELEASE) == 2
    assert steps.count(Step.ADDRESS_FREE) == closed
    assert bench.ledger == Ledger(limit=64)


def test_reclaim_after_another_lost_the_device_makes_no_further_call(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    backend = backend_of(bench)

    def lost_first() -> Fault | None:
        monkeypatch.undo()
        backend.records.lost = 700
        return None

    monkeypatch.setattr(bench.recorder, "fence", lost_first)
    failed = bench.failed(reclaim())
    assert failed.fault == Fault(Step.QUERY, 700)
    assert bench.calls == []
    assert bench.quarantined(serial) == [0]


# --- sharing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("works", [True, False], ids=["attached", "undone"])
def test_attach_that_all_others_leave_meanwhile_keeps_or_disposes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    """Its references were counted ahead, so that whoever is last by then is the attach itself."""
    owner, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    backend, map_ = backend_of(bench), bench.recorder.map

    def all_leave_first(address: int, size_bytes: int, handle: int) -> Fault | None:
        monkeypatch.undo()
        assert backend.apply(close(owner)) == Done(())
        assert backend.apply(retire(prefix)) == Done(0)
        assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=1, held=1)
        return map_(address, size_bytes, handle)

    monkeypatch.setattr(bench.recorder, "map", all_leave_first)
    if works:
        assert backend.apply(attach((sharer, prefix, 0))) == Done(2)
        assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=2)
        _ = bench.done(close(sharer))
    else:
        bench.faulting.arm(FaultPlan((fails(Step.SET_ACCESS),)))
        outcome = backend.apply(attach((sharer, prefix, 0)))
        assert isinstance(outcome, Failed)
        assert outcome.residue.ledger == Ledger(charged=-2, owned=-2, held=-1)
    assert bench.physical == bench.ledger.charged == 0


@pytest.mark.parametrize("operation", [attach((2, 1, 0)), fork((1, GRANULE))])
def test_operation_on_a_group_overtaken_by_a_close_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    """Whichever of its reservations it is."""
    _ = bench.shared(1)
    _ = bench.reserved(8)
    named = 2 if isinstance(operation, Attach) else 1
    backend = backend_of(bench)
    found = backend.records.reservations[named]
    lock = found.lock

    def close_first() -> None:
        monkeypatch.setattr(found, "lock", lock)
        assert backend.apply(close(named)) == Done(())

    monkeypatch.setattr(found, "lock", Overtaking(close_first))
    assert backend.apply(operation) == refused(Refusal.STALE, reservation=named)


def test_attach_overtaken_by_a_retire_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    backend = backend_of(bench)
    found = backend.records.reservations[sharer]
    lock = found.lock

    def retire_first() -> None:
        monkeypatch.setattr(found, "lock", lock)
        assert backend.apply(retire(prefix)) == Done(0)

    monkeypatch.setattr(found, "lock", Overtaking(retire_first))
    assert backend.apply(attach((sharer, prefix, 0))) == refused(Refusal.STALE, prefix=prefix)


# --- values that come again before the answer ---------------------------------------------------


@pytest.mark.parametrize("says", [None, Code.UNKNOWN], ids=["success", "error"])
def test_release_whose_value_comes_again_before_its_answer_has_worked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, says: Code | None
) -> None:
    """Whatever it answers then: another thread has the value, so that it was given back."""
    first, second = bench.filled(8, 0), bench.reserved(8)
    backend, release_ = backend_of(bench), bench.recorder.release
    value = backend.records.handles[1].value

    def create_meanwhile(handle: int) -> Fault | None:
        monkeypatch.undo()
        assert release_(handle) is None
        assert backend.apply(commit(second, 0, 1)) == Done(1)
        return None if says is None else Fault(Step.RELEASE, says)

    monkeypatch.setattr(bench.recorder, "release", create_meanwhile)
    outcome = backend.apply(release(first, 0, 1))
    assert isinstance(outcome, Done if says is None else Failed)
    assert [handle.value for handle in backend.records.handles.values()] == [value]
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)
    assert bench.done(release(second, 0, 1)) == Released(1, ())


@pytest.mark.parametrize("says", [None, Code.UNKNOWN], ids=["success", "error"])
def test_address_free_whose_range_comes_again_before_its_answer_has_worked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, says: Code | None
) -> None:
    first = bench.reserved(8)
    address = bench.address(first)
    backend, free = backend_of(bench), bench.recorder.address_free

    def reserve_meanwhile(address: int, size_bytes: int) -> Fault | None:
        monkeypatch.undo()
        assert free(address, size_bytes) is None
        assert backend.apply(reserve(8)) == Done(2)
        return None if says is None else Fault(Step.ADDRESS_FREE, says)

    monkeypatch.setattr(bench.recorder, "address_free", reserve_meanwhile)
    outcome = backend.apply(close(first))
    assert isinstance(outcome, Done if says is None else Failed)
    assert {view.reservation: view.address for view in bench.observe().ranges.values()} == {
        2: address
    }
    assert bench.done(close(2)) == ()


@pytest.mark.parametrize("during", ["unmap", "release"])
def test_close_after_another_lost_the_device_keeps_what_it_has_in_hand(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    """A handle that nothing maps any more, or a range that nothing is in, is listed."""
    serial = bench.filled(8, 0)
    backend = backend_of(bench)
    call: Callable[..., Fault | None] = getattr(bench.recorder, during)

    def lost_meanwhile(*arguments: int) -> Fault | None:
        monkeypatch.undo()
        backend.records.lost = 700
        return call(*arguments)

    monkeypatch.setattr(bench.recorder, during, lost_meanwhile)
    outcome = backend.apply(close(serial))
    assert isinstance(outcome, Failed)
    assert bench.recorder.calls[-1].step.value == during
    assert bench.observe().ranges[serial].standing is Standing.QUARANTINED
    kept = int(during == "unmap")
    assert bench.ledger == Ledger(limit=64, charged=kept, owned=kept, quarantined=kept)


def test_commit_after_the_limit_was_lowered_never_grants_what_is_not_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Somebody who looks during the create finds no budget handed out twice."""
    bench = Bench(Side.BACKEND, policy=Policy.RUN, retention=8, limit=8)
    serial = bench.reserved(16)
    for window in (0, 2, 4):
        assert bench.done(commit(serial, window, 2)) == 2
    assert bench.done(release(serial, 0, 6))
    assert bench.done(set_limit(3)) is None
    create, seen = bench.recorder.create, list[Ledger]()

    def look(size_bytes: int) -> int | Fault:
        seen.append(bench.ledger)
        return create(size_bytes)

    monkeypatch.setattr(bench.recorder, "create", look)
    assert bench.done(commit(serial, 0, 1)) == 1
    assert [(ledger.charged, ledger.granted, ledger.free) for ledger in seen] == [(2, 1, 0)]


def test_fault_of_one_bench_never_fires_on_another() -> None:
    first, second = Bench(Side.BACKEND), Bench(Side.BACKEND)
    _ = first.failed(commit(first.reserved(1), 0, 1), fails(Step.MAP))
    assert second.done(commit(second.reserved(1), 0, 1)) == 1
