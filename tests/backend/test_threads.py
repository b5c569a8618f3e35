"""Several threads at once, on a driver that gives way inside every call."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import sleep
from typing import cast

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.ingredients import INJECTABLE
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Reclaim,
    Release,
    Reserve,
    Retire,
    Seal,
    SetLimit,
    Trim,
)
from kvvmm_model.vocabulary import (
    MAX_BYTES,
    Code,
    Done,
    Failed,
    Fault,
    Observation,
    Policy,
    Refusal,
    Refused,
    Rights,
    Settings,
    Standing,
    Step,
)
from kvvmm_model.yielding import YieldingDriver

UNIT = 4096
WINDOWS = 6
SETTINGS = Settings(UNIT, Policy.RUN, longest_run=4, retention=4)


def together(*works: Callable[[], None]) -> None:
    """Run them at once; raises what any of them raises."""
    with ThreadPoolExecutor(len(works)) as pool:
        for running in [pool.submit(work) for work in works]:
            running.result(timeout=60)


def check(seen: Observation, driver: DriverModel) -> None:
    """The books agree with themselves and with what the driver holds."""
    ledger = seen.ledger
    assert ledger.granted == 0
    assert ledger.charged == ledger.owned + ledger.unattributed
    assert ledger.owned == sum(handle.size for handle in seen.handles.values())
    assert ledger.mapped == sum(mapping.size for mapping in seen.mappings.values())
    assert ledger.pooled == sum(seen.handles[serial].size for serial in seen.pool)
    doubtful = ledger.quarantined + ledger.unattributed
    physical = driver.physical_bytes() // UNIT
    assert ledger.charged - doubtful <= physical <= ledger.charged
    live = driver.live_mappings()
    for mapping in seen.mappings.values():
        address = seen.ranges[mapping.reservation].address + mapping.window * UNIT
        there = live.pop(address, None)
        if not mapping.quarantined:
            assert there is not None
            assert mapping.rights in (there.rights, Rights.UNKNOWN)
    assert not live
    mapped = Counter(mapping.handle for mapping in seen.mappings.values())
    holding = {handle for prefix in seen.prefixes.values() for handle in prefix.handles}
    assert not (mapped.keys() | holding) & set(seen.pool)
    assert ledger.held == sum(seen.handles[h].size for h in holding - mapped.keys())
    for mapping in seen.mappings.values():
        assert mapped[mapping.handle] == 1 or mapping.rights is not Rights.RW
    for handle in seen.handles.values():
        kept = mapped[handle.handle] or handle.handle in holding or handle.handle in seen.pool
        assert bool(kept) is not handle.quarantined


def some_operation(random: Random, serials: list[int]) -> Operation:
    serial = random.choice(serials)
    first = random.randrange(WINDOWS)
    size = random.randint(1, WINDOWS - first)
    span = (first * UNIT, size * UNIT)
    kinds: tuple[Operation, ...] = (
        Commit(serial, *span),
        Commit(serial, *span),
        Release(serial, *span),
        Trim(UNIT),
        Reclaim(random.choice((serial, None))),
        SetLimit(random.choice((8, 12)) * UNIT),
    )
    return random.choice(kinds)


def some_faults(random: Random) -> Iterator[FaultSpec]:
    """One of each kind."""
    for step in (
        *(Step.MAP, Step.SET_ACCESS, Step.UNMAP, Step.RELEASE),
        *(Step.CREATE, Step.CLEAR, Step.COPY),
    ):
        manner, code = random.choice(INJECTABLE[step])
        part = 1 if manner is Manner.IN_PART else 0
        yield FaultSpec(step, manner, code, random.randint(1, 20), part)


def end(backend: Backend, faulting: FaultingDriver, model: DriverModel) -> None:
    """Everything is given back but what nobody would confirm, and that agrees with the driver."""
    check(backend.observe(), model)
    _ = backend.apply(Reclaim())
    for serial in tuple(backend.records.reservations):
        _ = backend.apply(Close(serial))
    for prefix in tuple(backend.records.prefixes):
        _ = backend.apply(Retire(prefix))
    _ = backend.apply(Trim(MAX_BYTES))
    _ = backend.apply(Reclaim())
    seen = backend.observe()
    check(seen, model)
    assert seen.ledger.charged == seen.ledger.quarantined + seen.ledger.unattributed
    assert all(found.standing is Standing.QUARANTINED for found in seen.ranges.values())
    assert faulting.settle() == ()
    assert model.physical_bytes() == 0
    assert not model.live_ranges()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("faults", [False, True], ids=["no faults", "faults"])
def test_threads_on_shared_and_own_reservations_leave_true_books(seed: int, faults: bool) -> None:
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=10 * UNIT)
    faulting = FaultingDriver(YieldingDriver(model))
    backend = Backend(faulting, SETTINGS, 12 * UNIT)
    for _ in range(3):
        assert isinstance(backend.apply(Reserve(WINDOWS * UNIT)), Done)
    random = Random(seed)
    if faults:
        faulting.arm(FaultPlan(tuple(some_faults(random))))

    def work(number: int) -> Callable[[], None]:
        mine = Random(seed * 100 + number)

        def run() -> None:
            for _ in range(60):
                _ = backend.apply(some_operation(mine, [number, 3]))  # 3 is everybody's

        return run

    together(work(1), work(2), work(1), work(2))
    faulting.disarm()
    end(backend, faulting, model)


# --- shared memory ------------------------------------------------------------------------------


def some_sharing(random: Random, number: int) -> Operation:
    """On everybody's reservations and prefixes, any of which may be gone by now."""
    serial, prefix = random.randint(1, 8), random.randint(1, 5)
    size = random.randint(1, 2) * UNIT
    kinds: tuple[Operation, ...] = (
        Commit(serial, 0, 2 * UNIT),
        Publish(serial, size),
        Seal(prefix),
        Attach(((serial, prefix, 2 * UNIT),)),
        Attach(((serial, prefix, 4 * UNIT), (number, prefix, 0))),
        Retire(prefix),
        Fork(((serial, size + random.randint(0, 1) * (UNIT // 2)),)),
        Fork(((serial, size), (number, UNIT))),
        Release(serial, 0, WINDOWS * UNIT),
        Close(serial),
        Reserve(WINDOWS * UNIT),
        Reclaim(),
    )
    return random.choice(kinds)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("faults", [False, True], ids=["no faults", "faults"])
def test_threads_on_shared_memory_leave_true_books(seed: int, faults: bool) -> None:
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=40 * UNIT)
    faulting = FaultingDriver(YieldingDriver(model))
    backend = Backend(faulting, SETTINGS, 40 * UNIT)
    for _ in range(4):
        assert isinstance(backend.apply(Reserve(WINDOWS * UNIT)), Done)
    for prefix in (1, 2):
        assert backend.apply(Commit(prefix, 0, 2 * UNIT)) == Done(2)
        assert backend.apply(Publish(prefix, 2 * UNIT)) == Done(prefix)
        assert isinstance(backend.apply(Seal(prefix)), Done)
    random = Random(seed)
    if faults:
        faulting.arm(FaultPlan(tuple(some_faults(random))))

    def work(number: int) -> Callable[[], None]:
        mine = Random(seed * 100 + number)

        def run() -> None:
            for _ in range(60):
                _ = backend.apply(some_sharing(mine, number))

        return run

    together(*(work(number) for number in range(1, 5)))
    faulting.disarm()
    end(backend, faulting, model)


class PoliteLock:
    """Lets everybody else go first once it is released, where a race would show."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        _ = self._lock.acquire()

    def __exit__(self, *ignored: object) -> None:
        self._lock.release()
        sleep(0.0005)


@pytest.mark.parametrize("attempt", range(10))
def test_last_two_who_leave_at_once_release_once(attempt: int) -> None:
    """Owner and sharers leave in three threads; a second release would be a misuse."""
    _ = attempt
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=8 * UNIT)
    backend = Backend(YieldingDriver(model), SETTINGS, 8 * UNIT)
    for _ in range(3):
        _ = backend.apply(Reserve(WINDOWS * UNIT))
    _ = backend.apply(Commit(1, 0, UNIT))
    _ = backend.apply(Publish(1, UNIT))
    _ = backend.apply(Seal(1))
    assert backend.apply(Attach(((2, 1, 0), (3, 1, UNIT)))) == Done(2)
    assert backend.apply(Retire(1)) == Done(0)
    backend.records.lock = cast("threading.Lock", PoliteLock())
    leave: tuple[Operation, ...] = (Close(1), Release(2, 0, UNIT), Close(3))

    def leaving(operation: Operation) -> Callable[[], None]:
        def run() -> None:
            assert isinstance(backend.apply(operation), Done)

        return run

    together(*map(leaving, leave))
    check(backend.observe(), model)
    assert model.physical_bytes() == 0


@pytest.mark.parametrize("fails", [False, True], ids=["goes on", "fails"])
def test_attach_under_way_keeps_all_handles_of_a_prefix_that_is_retired(fails: bool) -> None:
    """Its references are counted before the first map, those of handles that come later too."""
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=8 * UNIT)
    slow = SlowMap(FaultingDriver(model), fails=fails)
    backend = Backend(slow, Settings(UNIT), 8 * UNIT)
    for _ in range(2):
        _ = backend.apply(Reserve(WINDOWS * UNIT))
    _ = backend.apply(Commit(1, 0, 3 * UNIT))
    _ = backend.apply(Publish(1, 3 * UNIT))
    _ = backend.apply(Seal(1))
    _ = backend.apply(Close(1))
    assert backend.observe().ledger.held == 3
    slow.hold = True

    def attaching() -> None:
        outcome = backend.apply(Attach(((2, 1, 0),)))
        assert isinstance(outcome, Failed) if fails else outcome == Done(3)

    def retiring() -> None:
        assert slow.waiting.wait(30)
        try:
            assert backend.apply(Retire(1)) == Done(0)
        finally:
            slow.open.set()

    together(attaching, retiring)
    check(backend.observe(), model)
    assert model.physical_bytes() == (0 if fails else 3 * UNIT)


class SlowMap(YieldingDriver):
    """When told to, holds a map until somebody opens it; then it may fail."""

    def __init__(self, inner: FaultingDriver, *, fails: bool) -> None:
        super().__init__(inner)
        self.hold = False
        self.fails = fails
        self.waiting = threading.Event()
        self.open = threading.Event()

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        if self.hold:
            self.waiting.set()
            assert self.open.wait(30)
            if self.fails:
                return Fault(Step.MAP, Code.UNKNOWN)
        return super().map(address, size_bytes, handle)


class Gate(YieldingDriver):
    """Holds the first create until somebody opens it."""

    def __init__(self, inner: DriverModel) -> None:
        super().__init__(inner)
        self.waiting = threading.Event()
        self.open = threading.Event()
        self.creates = 0

    def create(self, size_bytes: int) -> int | Fault:
        self.creates += 1
        if self.creates == 1:
            self.waiting.set()
            assert self.open.wait(30)
        return super().create(size_bytes)


def test_commit_under_way_does_not_hold_up_another_reservation() -> None:
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=64 * UNIT)
    gate = Gate(model)
    backend = Backend(gate, SETTINGS, 64 * UNIT)
    for _ in range(2):
        _ = backend.apply(Reserve(WINDOWS * UNIT))

    def slow() -> None:
        assert backend.apply(Commit(1, 0, UNIT)) == Done(1)

    def quick() -> None:
        assert gate.waiting.wait(30)
        try:
            assert backend.apply(Commit(2, 0, UNIT)) == Done(1)
            assert backend.apply(Release(2, 0, UNIT)).value.size == 1  # type: ignore[union-attr]
            assert backend.apply(Close(2)) == Done(())
        finally:
            gate.open.set()

    together(slow, quick)
    check(backend.observe(), model)


def test_commit_of_the_last_granule_by_two_threads_has_one_winner() -> None:
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=64 * UNIT)
    gate = Gate(model)
    backend = Backend(gate, SETTINGS, UNIT)
    for _ in range(2):
        _ = backend.apply(Reserve(UNIT))

    def winner() -> None:
        assert backend.apply(Commit(1, 0, UNIT)) == Done(1)

    def loser() -> None:
        assert gate.waiting.wait(30)
        try:
            outcome = backend.apply(Commit(2, 0, UNIT))
            assert isinstance(outcome, Refused)
            assert outcome.reason is Refusal.BUDGET
            assert gate.creates == 1
        finally:
            gate.open.set()

    together(winner, loser)
    assert backend.observe().ledger.charged == 1
