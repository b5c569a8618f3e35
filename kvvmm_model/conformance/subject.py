"""What the comparison needs of a manager; put yours under it by implementing ``Subject``."""

from collections.abc import Callable
from typing import Protocol

from kvvmm_model.machine import Operation
from kvvmm_model.vocabulary import Driver, Observation, Outcome, Settings


class Subject(Protocol):
    """A manager under comparison.

    Reservations and handles are numbered from 1 in the order in which address_reserve and create
    succeeded; those numbers are the serials in operations and observations.
    """

    def apply(self, operation: Operation) -> Outcome:
        """Carry the operation out, with driver calls to the driver it was made with."""
        ...

    def observe(self) -> Observation:
        """All that can be observed now, at rest."""
        ...


MakeSubject = Callable[[Driver, Settings, int], Subject]
"""Makes a fresh manager over a driver; the limit is in bytes."""
