"""An operation costs the same, however much is mapped elsewhere."""

from time import process_time

from kvvmm_cuda.subject import Backend
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.machine import Close, Commit, Operation, Release, Reserve
from kvvmm_model.vocabulary import Done, Settings

UNIT = 4096
ELSEWHERE = 20_000
ROUNDS = 7
REPEATS = 300
MOST = 2.0
"""Times as much, with everything else in use as with nothing; noise included."""


def backend(windows: int) -> Backend:
    """A manager with that many windows committed, one handle each, in one reservation."""
    driver = DriverModel(granularity_bytes=UNIT, capacity_bytes=1 << 40)
    made = Backend(driver, Settings(UNIT, retention=2), 1 << 40)
    for operation in (Reserve(max(1, windows) * UNIT), Reserve(64 * UNIT)):
        assert isinstance(made.apply(operation), Done)
    if windows:
        assert made.apply(Commit(1, 0, windows * UNIT)) == Done(windows)
    return made


def seconds(made: Backend, operations: tuple[Operation, ...]) -> float:
    began = process_time()
    for _ in range(REPEATS):
        for operation in operations:
            assert isinstance(made.apply(operation), Done)
    return process_time() - began


def test_cycle_with_much_mapped_elsewhere_costs_the_same() -> None:
    cycle = (Commit(2, 0, 8 * UNIT), Release(2, 0, 8 * UNIT))
    alone, crowded = backend(0), backend(ELSEWHERE)
    without = min(seconds(alone, cycle) for _ in range(ROUNDS))
    within = min(seconds(crowded, cycle) for _ in range(ROUNDS))
    print(f"\n{within / without:.2f} times as much with {ELSEWHERE} windows mapped elsewhere")
    assert within <= MOST * without


def test_reserve_and_close_with_much_mapped_elsewhere_cost_the_same() -> None:
    def seconds_of_lives(made: Backend) -> float:
        began = process_time()
        for _ in range(REPEATS):
            serial = made.apply(Reserve(8 * UNIT))
            assert isinstance(serial, Done)
            assert isinstance(made.apply(Commit(serial.value, 0, UNIT)), Done)
            assert isinstance(made.apply(Close(serial.value)), Done)
        return process_time() - began

    alone, crowded = backend(0), backend(ELSEWHERE)
    without = min(seconds_of_lives(alone) for _ in range(ROUNDS))
    within = min(seconds_of_lives(crowded) for _ in range(ROUNDS))
    print(f"\n{within / without:.2f} times as much with {ELSEWHERE} windows mapped elsewhere")
    assert within <= MOST * without
