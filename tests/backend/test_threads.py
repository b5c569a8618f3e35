"""Several threads at once, on a driver that gives way inside every call."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.swarm import INJECTABLE
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import Close, Commit, Operation, Reclaim, Release, Reserve, SetLimit, Trim
from kvvmm_model.vocabulary import (
    MAX_BYTES,
    Done,
    Fault,
    Observation,
    Policy,
    Refusal,
    Refused,
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
            assert there.rights is mapping.rights
    assert not live
    mapped = [mapping.handle for mapping in seen.mappings.values()]
    assert len(mapped) == len(set(mapped))
    assert not set(mapped) & set(seen.pool)


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
        steps = (Step.MAP, Step.SET_ACCESS, Step.UNMAP, Step.RELEASE, Step.CREATE, Step.CLEAR)
        specs: list[FaultSpec] = []
        for step in steps:
            manner, code = random.choice(INJECTABLE[step])
            part = 1 if manner is Manner.IN_PART else 0
            specs.append(FaultSpec(step, manner, code, random.randint(1, 20), part))
        faulting.arm(FaultPlan(tuple(specs)))

    def work(number: int) -> Callable[[], None]:
        mine = Random(seed * 100 + number)

        def run() -> None:
            for _ in range(60):
                _ = backend.apply(some_operation(mine, [number, 3]))  # 3 is everybody's

        return run

    together(work(1), work(2), work(1), work(2))
    faulting.disarm()
    check(backend.observe(), model)
    for serial in (1, 2, 3):
        _ = backend.apply(Reclaim())
        _ = backend.apply(Close(serial))
    _ = backend.apply(Trim(MAX_BYTES))
    seen = backend.observe()
    check(seen, model)
    assert seen.ledger.charged == seen.ledger.quarantined + seen.ledger.unattributed
    assert all(found.standing is Standing.QUARANTINED for found in seen.ranges.values())
    assert faulting.settle() == ()
    assert model.physical_bytes() == 0
    assert not model.live_ranges()


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
