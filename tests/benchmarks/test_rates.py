"""What a compared operation costs, beside the manager's operation alone, in one run.

All times are of the same sequences with the same planned faults on the same simulated driver, so
that their ratios mean something; seconds by themselves do not.
"""

from collections.abc import Callable
from time import process_time
from typing import Any, cast

from pytest_benchmark.fixture import BenchmarkFixture

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison, Seen
from kvvmm_model.conformance.hypothesis_form import explore, machine
from kvvmm_model.conformance.replay import Replay
from kvvmm_model.conformance.run import simulated
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver
from kvvmm_model.machine import apply
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.sequence import Sequence

UNIT = 2 << 20
SEQUENCES = [Swarm(seed, granularity_bytes=UNIT).sequence() for seed in range(120)]
ROUNDS = 5
MOST = 8.0
"""A compared operation costs at most this many times the manager's alone."""


def alone(sequences: list[Sequence]) -> None:
    """The manager and its driver, with the faults, and nobody looking."""
    for sequence in sequences:
        faulting = FaultingDriver(simulated(sequence.world))
        backend = Backend(faulting, sequence.world.settings, sequence.world.limit * UNIT)
        for step in sequence.steps:
            if step.faults.specs:
                faulting.arm(step.faults)
            _ = backend.apply(step.operation)
            if step.faults.specs:
                faulting.disarm()
            if backend.records.lost:
                break


def compared(sequences: list[Sequence]) -> list[Seen]:
    """Both sides, and everything that is demanded of them."""
    seen: list[Seen] = []
    for sequence in sequences:
        comparison = Comparison(Backend, simulated(sequence.world), sequence.world)
        for step in sequence.steps:
            seen.append(comparison.step(step))
            if comparison.state.lost:
                break
    return seen


def model_alone(seen: list[Seen]) -> None:
    """The model over the recorded answers."""
    for step in seen:
        _ = apply(step.before, step.step.operation, Replay(step.calls, UNIT))


def driver_alone(sequences: list[Sequence]) -> Callable[[], None]:
    """The simulated driver, given just the calls that the manager made of it."""
    made: list[tuple[DriverModel, list[tuple[Callable[..., object], tuple[int, ...]]]]] = []
    for sequence in sequences:
        recorder = RecordingDriver(simulated(sequence.world))
        faulting = FaultingDriver(recorder)
        backend = Backend(faulting, sequence.world.settings, sequence.world.limit * UNIT)
        for step in sequence.steps:
            faulting.arm(step.faults)
            _ = backend.apply(step.operation)
            faulting.disarm()
            if backend.records.lost:
                break
        fresh = DriverModel(granularity_bytes=UNIT, capacity_bytes=sequence.world.capacity * UNIT)
        calls = [(getattr(fresh, call.step.value), call.arguments) for call in recorder.take()]
        made.append((fresh, calls))

    def play() -> None:
        for _, calls in made:
            for call, arguments in calls:
                _ = call(*arguments)

    return play


def time_it(benchmark: BenchmarkFixture, work: Callable[[], object], *, rounds: int) -> None:
    """For the benchmark's own table; the plug-in has no types for this."""
    untyped = cast("Any", benchmark)
    _ = untyped.pedantic(work, rounds=rounds, iterations=1)


def seconds(work: Callable[[], object]) -> float:
    began = process_time()
    _ = work()
    return process_time() - began


def test_compared_operation_costs_a_small_multiple_of_the_managers(
    benchmark: BenchmarkFixture,
) -> None:
    seen = compared(SEQUENCES)
    each = {
        "alone": min(seconds(lambda: alone(SEQUENCES)) for _ in range(ROUNDS)),
        "compared": min(seconds(lambda: compared(SEQUENCES)) for _ in range(ROUNDS)),
        "model": min(seconds(lambda: model_alone(seen)) for _ in range(ROUNDS)),
        "driver": min(seconds(driver_alone(SEQUENCES)) for _ in range(ROUNDS)),
    }
    time_it(benchmark, lambda: compared(SEQUENCES), rounds=3)
    count, whole = len(seen), each["compared"]
    backend = each["alone"] - each["driver"]
    shares = {
        "model": each["model"],
        "backend": backend,
        "driver model": each["driver"],
        "comparison": whole - each["model"] - each["alone"],
    }
    ratio = whole / each["alone"]
    print(
        f"\nswarm: {count / whole:,.0f} compared operations a second, {whole / count * 1e6:.0f} us"
    )
    print(f"manager alone: {each['alone'] / count * 1e6:.1f} us an operation; ratio {ratio:.2f}")
    print(", ".join(f"{name} {part / whole:.0%}" for name, part in shares.items()))
    cast("Any", benchmark).extra_info.update(ratio=ratio, shares=shares)
    assert ratio <= MOST


def test_hypothesis_form_rate_beside_the_swarm(benchmark: BenchmarkFixture) -> None:
    counted = 0

    def note(_: Seen) -> None:
        nonlocal counted
        counted += 1

    kind = machine(Backend, simulated, UNIT, note=note)

    def go() -> None:
        explore(kind, number=5, examples=60, steps=30, shrink=False)

    time_it(benchmark, go, rounds=1)
    spent = seconds(go)
    each = spent / (counted / 2) * 1e6
    steps = sum(len(sequence.steps) for sequence in SEQUENCES)
    compared_steps = len(compared(SEQUENCES))
    swarm = seconds(lambda: compared(SEQUENCES)) / compared_steps * 1e6
    print(f"\nHypothesis: {1e6 / each:,.0f} compared operations a second, {each:.0f} us")
    print(f"a compared step of the swarm driver is {each / swarm:.0f} times cheaper")
    made = seconds(lambda: [Swarm(seed, granularity_bytes=UNIT).sequence() for seed in range(120)])
    own = max(each - swarm, 0.0)
    print(f"making up a step: swarm {made / steps * 1e6:.1f} us, Hypothesis about {own:.0f} us")
    assert counted > 200
    assert swarm < each
