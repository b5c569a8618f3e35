"""What a manager and its reservations share: records, driver, outcomes made exceptions."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from kvvmm_cuda.edge import log
from kvvmm_cuda.errors import ClosedError, raise_for
from kvvmm_cuda.records import Records
from kvvmm_model.vocabulary import Done, Driver, Outcome

P = ParamSpec("P")


class Core:
    """Records and the driver behind them; ``closed`` when the manager is."""

    def __init__(self, records: Records, driver: Driver) -> None:
        """Open."""
        self.records = records
        self.driver = driver
        self.closed = False

    def run(
        self,
        name: str,
        operation: Callable[Concatenate[Records, Driver, P], Outcome],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> object:
        """The value of what was done; anything else is logged and raised."""
        if self.closed:
            raise ClosedError("this VirtualMemory is closed; open another one")
        outcome = operation(self.records, self.driver, *args, **kwargs)
        if isinstance(outcome, Done):
            return outcome.value
        log(name, outcome)
        return raise_for(name, outcome)
