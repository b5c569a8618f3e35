"""Sequences of operations and planned faults, in the world that they run in."""

from attrs import frozen

from kvvmm_model.faulting import FaultPlan
from kvvmm_model.machine import Operation
from kvvmm_model.vocabulary import Settings

NO_FAULTS = FaultPlan()

NAN = float("nan")
"""The one that sequences use: it equals nothing, so that only its identity can be compared."""


@frozen
class Step:
    """One operation, and the faults planned for its driver calls."""

    operation: Operation
    faults: FaultPlan = NO_FAULTS


@frozen
class World:
    """What a sequence runs in; sizes in granules.

    ``capacity`` is the simulated driver's; a real driver has its own.
    """

    settings: Settings
    limit: int
    capacity: int


@frozen
class Sequence:
    """Operations and faults, made up in advance: nothing in it depends on an answer."""

    world: World
    steps: tuple[Step, ...]
