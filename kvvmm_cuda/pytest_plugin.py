"""A pytest plugin: managers whose driver fails as it is told to.

    def test_survives_a_failing_map(kvvmm_faulty: MakeFaulty) -> None:
        faulty = kvvmm_faulty(limit=16)
        with faulty.memory.reserve(4 * faulty.granule) as cache:
            faulty.plan("fault map 2 OUT_OF_MEMORY")
            with pytest.raises(DriverError):
                cache.commit(0, 4 * faulty.granule)
            assert faulty.all_fired

Faults are written as in ``kvvmm try``; see ``kvvmm_model/language/``.

PYTEST_DONT_REWRITE: there is no test here, and who uses ``Faulty`` by itself imports this first.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from kvvmm_cuda.faults import FaultingDriver, FaultPlan, FaultSpec
from kvvmm_cuda.manager import VirtualMemory
from kvvmm_cuda.reservation import Reservation
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.vocabulary import Driver, Policy, Settings

__all__ = ["Faulty", "MakeFaulty", "kvvmm_faulty"]

GRANULE = 2 << 20
"""Bytes in a granule, unless the test says otherwise."""


class _Keeps(VirtualMemory):
    """A manager that keeps its reservations alive: a test may drop what the fixture will close."""

    def __init__(self, driver: Driver, settings: Settings, limit_bytes: int) -> None:
        super().__init__(driver, settings, limit_bytes)
        self._kept: list[Reservation] = []

    def reserve(self, size_bytes: int, alignment_bytes: int = 0) -> Reservation:
        """As any manager."""
        reservation = super().reserve(size_bytes, alignment_bytes)
        self._kept.append(reservation)
        return reservation


class Faulty:
    """A manager over a simulated driver that fails as planned; sizes in granules.

    ``memory``: the manager.  ``driver``: what it calls, and what injects the faults.  ``device``:
    the simulated driver behind that, which knows what is really held.
    """

    def __init__(
        self,
        *,
        limit: int = 64,
        capacity: int = 64,
        policy: str | Policy = Policy.GRANULE,
        longest_run: int = 64,
        retention: int = 0,
        clear_pooled: bool = True,
        granule: int = GRANULE,
    ) -> None:
        self.granule = granule
        self.device = DriverModel(granularity_bytes=granule, capacity_bytes=capacity * granule)
        self.driver = FaultingDriver(self.device)
        self.memory: VirtualMemory = _Keeps.open(
            self.driver,
            limit_bytes=limit * granule,
            policy=policy,
            longest_run_bytes=longest_run * granule,
            retention_bytes=retention * granule,
            clear_pooled=clear_pooled,
        )
        self._planned = FaultPlan()

    def plan(self, faults: str) -> FaultPlan:
        """Plan what the statements say, in place of the last plan; calls are counted from here.

        Raises:
            LanguageError: a statement that says nothing, or that is no fault.
        """
        # Imported late, for pytest loads this file in every run that has kvvmm beside it.
        from kvvmm_model.language.parsing import read_fault  # noqa: PLC0415
        from kvvmm_model.language.words import statements  # noqa: PLC0415

        specs: list[FaultSpec] = []
        for statement in statements(faults):
            first = statement.words[0]
            if first.text != "fault":
                raise statement.error(first, "only faults can be planned")
            specs.append(read_fault(statement))
        self._planned = FaultPlan(tuple(specs))
        self.driver.arm(self._planned)
        return self._planned

    @property
    def fired(self) -> tuple[FaultSpec, ...]:
        """What was injected of the last plan, each once, in order."""
        return self.driver.fired

    @property
    def all_fired(self) -> bool:
        """Whether everything planned last has met a call."""
        return set(self.fired) == set(self._planned.specs)

    def close(self) -> None:
        """Plan nothing more, end what was hidden or withheld, and close the manager."""
        faults = self.driver.settle()
        assert not faults, f"the simulated driver would not settle: {faults}"
        self.memory.close()


MakeFaulty = Callable[..., Faulty]
"""Takes what ``Faulty`` takes."""


@pytest.fixture
def kvvmm_faulty() -> Generator[MakeFaulty]:
    """Make managers whose driver fails as planned; all are closed at the end of the test."""
    with ExitStack() as made:

        def make(**settings: Any) -> Faulty:
            faulty = Faulty(**settings)
            _ = made.callback(faulty.close)
            return faulty

        yield make
