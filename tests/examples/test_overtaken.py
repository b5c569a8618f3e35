"""The backend where another thread was faster between a check and a lock, or during a call.

The model has no threads.  The other thread is played by a call at the very moment that counts, so
that nothing depends on a scheduler.
"""

from collections.abc import Callable
from threading import Lock
from types import TracebackType

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.machine import Operation
from kvvmm_model.vocabulary import Done, Fault, Ledger, Policy, Refusal, Step, refused

from support.bench import (
    Bench,
    Side,
    close,
    commit,
    fails,
    publish,
    reclaim,
    release,
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
