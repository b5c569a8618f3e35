"""Every fault and every pair of faults, sticky ones too, on model and backend side by side.

Random sequences meet a sticky code in the middle of another fault's unwinding too rarely; here
every call of every scene fails in every manner, and then every call after that.
"""

from collections.abc import Iterator

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison, Seen
from kvvmm_model.conformance.ingredients import INJECTABLE, STICKY_PAIRS
from kvvmm_model.conformance.run import simulated
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.sequence import Step, World
from kvvmm_model.vocabulary import Code, Fault, Settings

from support.bench import GRANULE
from support.fault_points import Scene, scenes


def compared(scene: Scene, specs: tuple[FaultSpec, ...]) -> Seen:
    """The scene's operation under the faults, and then the end; raises ``Divergence``."""
    settings = Settings(GRANULE, scene.policy, retention=scene.retention)
    world = World(settings, scene.limit, scene.capacity)
    comparison = Comparison(Backend, simulated(world), world)
    for operation, faults in scene.before:
        _ = comparison.step(Step(operation, FaultPlan(faults)))
    seen = comparison.step(Step(scene.operation, FaultPlan(specs)))
    for _ in comparison.end():
        pass
    return seen


def failing(scene: Scene, given: tuple[FaultSpec, ...], start: int) -> Iterator[FaultSpec]:
    """A fault at each call from ``start`` on, in each manner, with one code, and sticky ones."""
    calls = compared(scene, given).calls
    for number in range(start, len(calls)):
        step = calls[number].step
        nth = sum(call.step is step for call in calls[: number + 1])
        usual = dict(reversed([pair for pair in INJECTABLE[step] if pair[1] == Code.UNKNOWN]))
        sticky = dict(reversed(STICKY_PAIRS[step]))
        for manner, code in (*usual.items(), *sticky.items()):
            for part in (1, 2) if manner is Manner.IN_PART else (0,):
                yield FaultSpec(step, manner, code, nth, part)


def first_fault(seen: Seen) -> int:
    """The number of the call after the first that failed."""
    return next(n + 1 for n, call in enumerate(seen.calls) if isinstance(call.answer, Fault))


@pytest.mark.parametrize("windows", [1, 2, 3, 4])
def test_every_pair_of_faults_shows_no_divergence(windows: int) -> None:
    pairs = 0
    for scene in scenes(windows):
        for first in failing(scene, (), 0):
            seen = compared(scene, (first,))
            if not seen.fired or seen.transition.state.lost:
                continue
            for second in failing(scene, (first,), first_fault(seen)):
                _ = compared(scene, (first, second))
                pairs += 1
    assert pairs > 300 * windows
