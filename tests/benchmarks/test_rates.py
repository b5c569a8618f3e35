"""What a compared operation costs, beside the manager's operation alone, in one run.

All times are of the same sequences with the same planned faults on the same simulated driver, so
that their ratios mean something; seconds by themselves do not.  The forms that make sequences up
stand beside one another, with the comparison and without it.
"""

import gc
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, NamedTuple, cast

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance import batched, hypothesis_form
from kvvmm_model.conformance.batched import batch, explore_batch
from kvvmm_model.conformance.comparison import Comparison, Seen
from kvvmm_model.conformance.hypothesis_form import explore, machine
from kvvmm_model.conformance.replay import Replay
from kvvmm_model.conformance.run import Note, OpenDriver, ignore, run, simulated
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver
from kvvmm_model.machine import apply
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.sequence import Sequence, Step
from kvvmm_model.state import initial

UNIT = 2 << 20
SEQUENCES = [Swarm(seed, granularity_bytes=UNIT).sequence() for seed in range(120)]
ROUNDS = 7
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


@pytest.fixture
def nobody_elses_garbage() -> Iterator[None]:
    """What the tests before this one left is not looked through at every collection."""
    _ = gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nobody_elses_garbage")
def test_compared_operation_costs_a_small_multiple_of_the_managers(
    benchmark: BenchmarkFixture,
) -> None:
    seen = compared(SEQUENCES)
    each: dict[str, float] = {}
    for _ in range(ROUNDS):  # in turn, since a machine's speed drifts
        for name, took in (
            ("alone", seconds(lambda: alone(SEQUENCES))),
            ("compared", seconds(lambda: compared(SEQUENCES))),
            ("model", seconds(lambda: model_alone(seen))),
            ("driver", seconds(driver_alone(SEQUENCES))),
        ):
            each[name] = min(each.get(name, took), took)
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


# --- forms beside one another -------------------------------------------------------------------

Form = Callable[[OpenDriver, Note], object]
"""Makes sequences up and compares them; tells of every step."""


def in_plain_hypothesis(open_driver: OpenDriver, note: Note) -> None:
    kind = machine(Backend, open_driver, UNIT, note=note)
    explore(kind, number=5, examples=60, steps=30, shrink=False)


def in_batches(open_driver: OpenDriver, note: Note) -> None:
    compare = batch(Backend, open_driver, UNIT, note=note)
    explore_batch(compare, number=5, examples=120, shrink=False)


def in_a_swarm(open_driver: OpenDriver, note: Note) -> None:
    for seed in range(120):
        sequence = Swarm(seed, granularity_bytes=UNIT).sequence()
        run(Comparison(Backend, open_driver(sequence.world), sequence.world), sequence, note)


FORMS: dict[str, Form] = {
    "plain Hypothesis": in_plain_hypothesis,
    "batched": in_batches,
    "swarm": in_a_swarm,
}


class Idle:
    """Stands in for a comparison, and compares nothing: what is left is the making up."""

    seen = compared(SEQUENCES[:1])[0]
    state = initial(SEQUENCES[0].world.settings, SEQUENCES[0].world.limit)

    def __init__(self, *arguments: object, **named: object) -> None:
        pass

    def step(self, step: Step) -> Seen:
        _ = step
        return self.seen

    def end(self) -> Iterator[Seen]:
        return iter(())


class Rate(NamedTuple):
    """The quickest of some runs, which are all the same."""

    seconds: float
    steps: int

    @property
    def microseconds(self) -> float:
        return self.seconds / self.steps * 1e6


def rate(form: Form, open_driver: OpenDriver) -> Rate:
    def once() -> Rate:
        counted: list[None] = []
        spent = seconds(lambda: form(open_driver, lambda _: counted.append(None)))
        return Rate(spent, len(counted))

    return min(once() for _ in range(3))


def empty_rate(form: Form, monkeypatch: pytest.MonkeyPatch) -> Rate:
    driver = simulated(SEQUENCES[0].world)
    with monkeypatch.context() as patched:
        for place in (hypothesis_form, batched):
            patched.setattr(place, "Comparison", Idle)
        patched.setitem(globals(), "Comparison", Idle)
        return rate(form, lambda _: driver)


def table(whole: dict[str, Rate], empty: dict[str, Rate]) -> str:
    """A line a form; how many times cheaper it is than the plain one, and what making up takes."""
    plain = "plain Hypothesis"
    lines = ["form              compared/s  us each  cheaper  empty step us  cheaper  making up"]
    for name, compared_ones in whole.items():
        each, bare = compared_ones.microseconds, empty[name].microseconds
        lines.append(
            f"{name:<16}  {1e6 / each:>10,.0f}  {each:>7.1f}"
            f"  {whole[plain].microseconds / each:>6.1f}x  {bare:>13.1f}"
            f"  {empty[plain].microseconds / bare:>6.1f}x"
            f"  {empty[name].seconds / compared_ones.seconds:>9.0%}"
        )
    return "\n".join(lines)


def test_forms_of_generation_beside_one_another(
    benchmark: BenchmarkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {name: rate(form, simulated) for name, form in FORMS.items()}
    empty = {name: empty_rate(form, monkeypatch) for name, form in FORMS.items()}
    time_it(benchmark, lambda: in_batches(simulated, ignore), rounds=1)
    each = {name: found.microseconds for name, found in whole.items()}
    bare = {name: found.microseconds for name, found in empty.items()}
    cast("Any", benchmark).extra_info.update(compared=each, empty=bare)
    print("\n" + table(whole, empty))
    assert each["swarm"] < each["plain Hypothesis"]
    assert each["batched"] < each["plain Hypothesis"]
    assert bare["batched"] * 3 <= bare["plain Hypothesis"]
    # In every other sequence the swarm lets the model go ahead, to know what can be shared.
    assert bare["swarm"] * 10 <= bare["plain Hypothesis"]
