"""Who leaves when: every order, and every number of sharers up to 64.

Life is the union of owner, prefixes and sharers.  Whoever leaves last gives the memory back, once.

All orders together are a tree, in which each edge is one more who leaves.  The model, whose
states are values, walks it.  The backend, whose records are not, starts anew for each order, and is
compared from where that order parts from the one before.
"""

from collections.abc import Sequence
from itertools import repeat
from math import factorial

import pytest
from attrs import field, frozen, mutable

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.comparison import Comparison
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.invariants import broken
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Release,
    Reserve,
    Retire,
    Seal,
    apply,
)
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.script import Script
from kvvmm_model.sequence import Step, World
from kvvmm_model.state import State, initial, observe
from kvvmm_model.vocabulary import Done, Observation, Outcome, Settings
from kvvmm_model.vocabulary import Step as Kind

UNIT = 4096
SETTINGS = Settings(UNIT)
WINDOWS = 2
SIZE = WINDOWS * UNIT


@frozen
class Company:
    """How they came together, and how each of them leaves, in no order."""

    begins: tuple[Operation, ...]
    leaving: tuple[Operation, ...]


def company(sharers: int) -> Company:
    """An owner of two windows, which so many have attached; these release and close in turn."""
    serials = range(2, sharers + 2)
    begins: list[Operation] = [
        *([Reserve(SIZE)] * (sharers + 1)),
        *(Commit(1, 0, SIZE), Publish(1, SIZE), Seal(1)),
    ]
    if sharers:
        begins.append(Attach(tuple((serial, 1, 0) for serial in serials)))
    leaving = [Close(serial) if serial % 2 else Release(serial, 0, SIZE) for serial in serials]
    return Company(tuple(begins), (Close(1), Retire(1), *leaving))


def mixed_company() -> Company:
    """Whoever can hold memory: a sharer publishes in turn, one has it twice, one is a child."""
    begins: tuple[Operation, ...] = (
        *(Reserve(SIZE), Commit(1, 0, SIZE), Publish(1, SIZE), Seal(1)),
        *(Reserve(SIZE), Attach(((2, 1, 0),)), Publish(2, SIZE), Seal(2)),
        *(Reserve(2 * SIZE), Attach(((3, 1, 0), (3, 2, SIZE))), Fork(((2, SIZE),))),
    )
    leaving: tuple[Operation, ...] = (
        *(Close(1), Retire(1), Release(2, 0, SIZE), Retire(2)),
        *(Release(3, 0, SIZE), Release(3, SIZE, SIZE), Close(4)),
    )
    return Company(begins, leaving)


# --- every order --------------------------------------------------------------------------------

Asked = list[tuple[Kind, tuple[int, ...]]]
"""Driver calls, without their answers."""


@frozen
class Left:
    """What one who left was told, what could be seen then, and what was called."""

    outcome: Outcome
    seen: Observation
    calls: Asked


def driver_model() -> DriverModel:
    """With memory for one: nothing could be there twice."""
    return DriverModel(granularity_bytes=UNIT, capacity_bytes=SIZE)


@mutable
class Walk:
    """All orders in which a company can leave; ``orders`` counts them."""

    company: Company
    orders: int = 0
    _path: list[int] = field(factory=list[int])
    _told: list[Left] = field(factory=list[Left])
    _compared: int = 0

    def begin(self) -> None:
        """Walk the whole tree."""
        state, driver = initial(SETTINGS, WINDOWS), driver_model()
        for operation in self.company.begins:
            transition = apply(state, operation, driver)
            assert isinstance(transition.outcome, Done)
            state = transition.state
        self._leave(state)

    def _leave(self, state: State) -> None:
        """Let each of those who are left be the next, and then go on."""
        for number, operation in enumerate(self.company.leaving):
            if number in self._path:
                continue
            script = Script(repeat(None), UNIT)  # nothing fails
            transition = apply(state, operation, script)
            self._path.append(number)
            self._told.append(Left(transition.outcome, observe(transition.state), script.calls))
            self._check(transition.state)
            if len(self._path) == len(self.company.leaving):
                self._compare()
            else:
                self._leave(transition.state)
            _ = self._path.pop(), self._told.pop()
            self._compared = min(self._compared, len(self._path))

    def _check(self, state: State) -> None:
        last = len(self._path) == len(self.company.leaving)
        assert broken(state) == []
        assert state.ledger.charged == (0 if last else WINDOWS)

    def _compare(self) -> None:
        """The backend, from its begin to the end of this order."""
        model = driver_model()
        driver = RecordingDriver(model)
        backend = Backend(driver, SETTINGS, SIZE)
        for operation in self.company.begins:
            assert isinstance(backend.apply(operation), Done)
        for place, (number, told) in enumerate(zip(self._path, self._told, strict=True)):
            assert model.physical_bytes() == SIZE
            _ = driver.take()
            outcome = backend.apply(self.company.leaving[number])
            if place >= self._compared:
                asked = [(call.step, call.arguments) for call in driver.calls]
                assert (outcome, backend.observe(), asked) == (told.outcome, told.seen, told.calls)
        assert model.physical_bytes() == 0
        released = [
            asked for told in self._told for asked in told.calls if asked[0] is Kind.RELEASE
        ]
        assert len(released) == len(set(released)) == WINDOWS
        self._compared = len(self._path)
        self.orders += 1


@pytest.mark.parametrize("sharers", range(7))
def test_departures_in_every_order_release_once_with_the_last(sharers: int) -> None:
    walk = Walk(company(sharers))
    walk.begin()
    assert walk.orders == factorial(sharers + 2)


def test_departures_of_all_kinds_in_every_order_release_once_with_the_last() -> None:
    walk = Walk(mixed_company())
    walk.begin()
    assert walk.orders == factorial(7)


# --- every number -------------------------------------------------------------------------------


def compared(sharers: int, order: Sequence[int]) -> None:
    """Model and backend side by side, with bytes and the driver's own count after each step."""
    model, together = driver_model(), company(sharers)
    comparison = Comparison(Backend, model, World(SETTINGS, WINDOWS, WINDOWS))
    for operation in together.begins:
        assert isinstance(comparison.step(Step(operation)).transition.outcome, Done)
    assert comparison.state.ledger.mapped == WINDOWS * (sharers + 1)
    for number in order:
        assert comparison.state.ledger.charged == WINDOWS
        assert model.physical_bytes() == SIZE
        seen = comparison.step(Step(together.leaving[number]))
        assert isinstance(seen.transition.outcome, Done)
    assert comparison.state.ledger.charged == model.physical_bytes() == 0
    for _ in comparison.end():
        pass
    assert comparison.recording.counts[Kind.RELEASE] == WINDOWS


@pytest.mark.parametrize("sharers", range(1, 65))
def test_sharers_of_any_number_are_charged_once(sharers: int) -> None:
    everybody = list(range(sharers + 2))
    compared(sharers, everybody)
    compared(sharers, everybody[::-1])
    compared(sharers, [*everybody[2:], *everybody[:2]])
