"""Who leaves when: every order, and every number of sharers up to 64.

Life is the union of owner, prefix and sharers.  Whoever leaves last gives the memory back, once.
"""

from collections.abc import Sequence
from itertools import permutations
from math import factorial

import pytest

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Operation,
    Publish,
    Release,
    Reserve,
    Retire,
    Seal,
)
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.sequence import Step, World
from kvvmm_model.vocabulary import Done, Settings
from kvvmm_model.vocabulary import Step as Kind

UNIT = 4096
SETTINGS = Settings(UNIT)
WINDOWS = 2


def together(sharers: int) -> list[Operation]:
    """An owner of two windows, which so many others have attached."""
    attached = [Attach(((sharer + 2, 1, 0),)) for sharer in range(sharers)]
    return [
        *([Reserve(WINDOWS * UNIT)] * (sharers + 1)),
        *(Commit(1, 0, WINDOWS * UNIT), Publish(1, WINDOWS * UNIT), Seal(1)),
        *attached,
    ]


def departures(sharers: int) -> list[Operation]:
    """Each of them leaves; sharers by a release and by a close in turn."""
    leaving: list[Operation] = [
        Close(sharer + 2) if sharer % 2 else Release(sharer + 2, 0, WINDOWS * UNIT)
        for sharer in range(sharers)
    ]
    return [Close(1), Retire(1), *leaving]


def alone(sharers: int, order: Sequence[int]) -> None:
    """The backend alone, with the driver's own count after every step."""
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=WINDOWS * UNIT)
    driver = RecordingDriver(model)
    backend = Backend(driver, SETTINGS, WINDOWS * UNIT)
    for operation in together(sharers):
        assert isinstance(backend.apply(operation), Done)
    leaving = departures(sharers)
    for number in order:
        assert model.physical_bytes() == WINDOWS * UNIT
        assert backend.records.charged == WINDOWS
        assert isinstance(backend.apply(leaving[number]), Done)
    assert model.physical_bytes() == backend.records.charged == 0
    assert driver.counts[Kind.RELEASE] == WINDOWS


def compared(sharers: int, order: Sequence[int]) -> None:
    """Model and backend side by side."""
    model = DriverModel(granularity_bytes=UNIT, capacity_bytes=WINDOWS * UNIT)
    comparison = Comparison(Backend, model, World(SETTINGS, WINDOWS, WINDOWS))
    leaving = departures(sharers)
    for operation in together(sharers):
        assert isinstance(comparison.step(Step(operation)).transition.outcome, Done)
    assert comparison.state.ledger.mapped == WINDOWS * (sharers + 1)
    for number in order:
        assert comparison.state.ledger.charged == WINDOWS
        assert isinstance(comparison.step(Step(leaving[number])).transition.outcome, Done)
    assert comparison.state.ledger.charged == model.physical_bytes() == 0
    for _ in comparison.end():
        pass
    assert comparison.recording.counts[Kind.RELEASE] == WINDOWS


@pytest.mark.parametrize("sharers", range(7))
def test_departures_in_every_order_release_once_with_the_last(sharers: int) -> None:
    orders = 0
    for order in permutations(range(sharers + 2)):
        alone(sharers, order)
        orders += 1
    assert orders == factorial(sharers + 2)


@pytest.mark.parametrize("sharers", range(5))
def test_departures_in_every_order_are_as_the_model_says(sharers: int) -> None:
    for order in permutations(range(sharers + 2)):
        compared(sharers, order)


@pytest.mark.parametrize("sharers", range(1, 65))
def test_sharers_of_any_number_are_charged_once(sharers: int) -> None:
    everybody = list(range(sharers + 2))
    compared(sharers, everybody)
    compared(sharers, everybody[::-1])
    compared(sharers, [*everybody[2:], *everybody[:2]])
