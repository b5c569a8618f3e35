"""Many operations with faults, model beside backend, on the simulated driver."""

import os

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.conformance.run import run, simulated
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.driver_model import DOCUMENTED, DriverModel
from kvvmm_model.sequence import World
from kvvmm_model.vocabulary import Driver

OPERATIONS = int(os.environ.get("KVVMM_VOLUME", "240000"))
PARTS = 2
UNIT = 2 << 20


def volume(first_seed: int, operations: int, *, unit: int = UNIT) -> Reached:
    """Sequences from a seed on, until so many operations were compared; raises what it finds."""
    reached = Reached()
    seed = first_seed
    while reached.operations < operations:
        sequence = Swarm(seed, granularity_bytes=unit).sequence()
        run(Comparison(Backend, simulated(sequence.world), sequence.world), sequence, reached.note)
        seed += 1
    return reached


@pytest.mark.parametrize("part", range(PARTS))
def test_swarm_with_faults_shows_no_divergence(part: int) -> None:
    reached = volume(1_000_000 * part, OPERATIONS // PARTS)
    assert reached.operations >= OPERATIONS // PARTS
    assert reached.faults_fired > reached.operations // 50
    assert reached.never() == []


@pytest.mark.parametrize("unit", [4096, 65536])
def test_swarm_with_other_granularities_shows_no_divergence(unit: int) -> None:
    assert volume(7, 3_000, unit=unit).operations >= 3_000


def test_swarm_on_a_driver_as_documented_shows_no_divergence() -> None:
    def documented(world: World) -> Driver:
        return DriverModel(
            granularity_bytes=UNIT, capacity_bytes=world.capacity * UNIT, profile=DOCUMENTED
        )

    reached = Reached()
    for seed in range(100):
        sequence = Swarm(seed, granularity_bytes=UNIT).sequence()
        comparison = Comparison(Backend, documented(sequence.world), sequence.world)
        run(comparison, sequence, reached.note)
    assert reached.operations > 3_000
