"""Runs of many sequences, without the command around them."""

import pytest
from attrs import evolve

from kvvmm_cuda.subject import Backend
from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance import campaign, results
from kvvmm_model.conformance.campaign import fuzz, soak
from kvvmm_model.conformance.canary import Canary, canaries
from kvvmm_model.conformance.results import Plan, Timings
from kvvmm_model.conformance.run import fails, simulated
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.machine import Operation, SetLimit
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.sequence import World
from kvvmm_model.vocabulary import Driver, Outcome

UNIT = 2 << 20
PLAN = Plan(Backend, simulated, UNIT, seed=9, count=300)
WIDE = next(canary for canary in canaries(faults=False) if "too many" in canary.name)
"""A bug that shows itself in a few steps, in either form."""


def test_soak_bounded_by_count_counts_what_ran() -> None:
    result = soak(PLAN)
    assert 300 <= result.reached.operations < 500
    assert result.canary_caught
    assert (result.diverged, result.void, result.interrupted) == (0, "", False)
    assert sum(result.timings.counts.values()) == result.reached.driver_calls
    assert 0 < result.states_reached <= result.states_possible


def test_soak_over_a_planted_bug_ends_with_a_short_sequence_that_fails_again() -> None:
    subject = WIDE.plant(Backend)
    result = soak(evolve(PLAN, make=subject, count=50_000))
    assert result.diverged == 1
    assert result.finding is not None
    assert len(result.finding.sequence.steps) < 12
    again = fails(subject, simulated, result.finding.sequence)
    assert again is not None
    assert again.kind == result.finding.divergence.kind


def test_fuzz_over_a_planted_bug_ends_with_a_short_sequence_that_fails_again() -> None:
    subject = WIDE.plant(Backend)
    result = fuzz(evolve(PLAN, make=subject, count=200_000))
    assert result.finding is not None
    assert len(result.finding.sequence.steps) < 12
    assert fails(subject, simulated, result.finding.sequence) is not None


def test_soak_that_misses_its_canary_is_void(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = Canary("harmless", lambda make: make)

    def only_harmless(*, faults: bool) -> tuple[Canary, ...]:
        _ = faults
        return (harmless,)

    monkeypatch.setattr(campaign, "canaries", only_harmless)
    monkeypatch.setattr(campaign, "CANARY_SEQUENCES", 5)
    result = soak(PLAN)
    assert result.canary_caught is False
    assert "harmless" in result.void
    assert result.reached.operations == 0


def test_soak_with_a_limit_sets_no_higher_one() -> None:
    worlds: list[World] = []
    limits: list[object] = []

    def opened(world: World) -> Driver:
        worlds.append(world)
        return simulated(world)

    class Spied(Backend):
        def apply(self, operation: Operation) -> Outcome:
            if isinstance(operation, SetLimit):
                limits.append(operation.size_bytes)
            return super().apply(operation)

    result = soak(evolve(PLAN, make=Spied, open_driver=opened, most=3, count=3000))
    assert result.void == ""
    assert {world.limit for world in worlds} == {2, 3}
    sizes = [size for size in limits if isinstance(size, int) and size < 1 << 63]
    assert max(sizes) == 3 * UNIT


def test_soak_on_one_driver_for_all_sequences_leaves_nothing_on_it() -> None:
    shared = DriverModel(granularity_bytes=UNIT, capacity_bytes=64 * UNIT)

    def opened(world: World) -> Driver:
        _ = world
        return shared

    result = soak(evolve(PLAN, open_driver=opened, count=2000))
    assert (result.diverged, result.void) == (0, "")
    assert (shared.physical_bytes(), shared.live_ranges()) == (0, {})


def test_plan_without_a_whole_granule_is_refused() -> None:
    with pytest.raises(ValueError, match=f"at least {UNIT} bytes"):
        _ = evolve(PLAN, most=0)


def test_timings_of_many_calls_keep_a_bounded_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "SAMPLES", 10)
    recording = RecordingDriver(DriverModel(granularity_bytes=UNIT), timed=True)
    timings = Timings()
    recording.durations[Kind.MAP] += [5] * 1000
    timings.add(recording.durations)
    assert timings.counts[Kind.MAP] == 1000
    assert len(timings._kept[Kind.MAP]) == 10
    assert timings.median_ns(Kind.MAP) == 5
    assert timings.median_ns(Kind.FENCE) is None
