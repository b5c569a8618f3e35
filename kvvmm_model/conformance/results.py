"""What a run is told, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from statistics import median

from attrs import define, field, frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.comparison import Divergence
from kvvmm_model.conformance.reached import Reached, states
from kvvmm_model.conformance.run import OpenDriver
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.witness import Witness
from kvvmm_model.sequence import Sequence as Steps

__all__ = ["SAMPLES", "Finding", "Plan", "Progress", "Result", "Timings", "silent"]

SAMPLES = 100_000
"""Durations that are kept of each kind of driver call."""


@frozen
class Plan:
    """What to run, on what, and for how long.

    ``seconds`` and ``count`` (of operations) are bounds; the sequence that reaches one is finished.
    ``most``: no limit in any sequence is higher than this, in granules.  ``skip``: how many numbers
    of the seed are left out, for a run that goes on where another one ended; ``canary_caught``:
    that one has found its planted bug.
    """

    make: MakeSubject
    open_driver: OpenDriver
    granularity_bytes: int
    seed: int
    faults: bool = True
    seconds: float | None = None
    count: int | None = None
    most: int | None = None
    skip: int = 0
    canary_caught: bool = False
    witness: Witness = field(factory=Witness)

    def __attrs_post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise ValueError(
                f"a limit of less than one granule leaves nothing to run: give at least"
                f" {self.granularity_bytes} bytes"
            )


class Timings:
    """How often each kind of driver call was made, and how long it took.

    Of more than ``SAMPLES`` durations of a kind, so many are kept, each as likely as the others.
    """

    def __init__(self) -> None:
        self.counts: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self._kept: dict[Kind, list[int]] = {kind: [] for kind in Kind}
        self._random = Random(0)

    def add(self, durations: Mapping[Kind, Sequence[int]]) -> None:
        """Take the durations of a sequence over, in nanoseconds."""
        for kind, listed in durations.items():
            for duration in listed:
                self._add(kind, duration)

    def _add(self, kind: Kind, duration: int) -> None:
        kept, count = self._kept[kind], self.counts[kind]
        self.counts[kind] = count + 1
        if count < SAMPLES:
            kept.append(duration)
            return
        place = self._random.randrange(count + 1)
        if place < SAMPLES:
            kept[place] = duration

    def median_ns(self, kind: Kind) -> float | None:
        """The median duration; None where no such call was made."""
        return median(self._kept[kind]) if self._kept[kind] else None


@frozen
class Finding:
    """A sequence that fails, as short as it could be made."""

    sequence: Steps
    divergence: Divergence


@define
class Result:
    """What a run did and found.

    ``void`` says why it proves nothing, and is empty if it counts.  ``interrupted``: it was asked
    to end early.  ``lost``: the device is, and no injected fault did that.  The search for the
    planted bug (``canary``) is not in the counts.
    """

    form: str
    seed: int
    faults: bool
    canary: str
    canary_caught: bool | None = None
    reached: Reached = field(factory=Reached)
    timings: Timings = field(factory=Timings)
    seconds: float = 0.0
    finding: Finding | None = None
    interrupted: bool = False
    lost: bool = False
    void: str = ""

    @property
    def diverged(self) -> int:
        """How many divergences: the first one ends the run."""
        return 0 if self.finding is None else 1

    @property
    def states_possible(self) -> int:
        """How many of the known states a run like this can reach."""
        return len(states(faults=self.faults))

    @property
    def states_reached(self) -> int:
        """How many of those it did."""
        return sum(self.reached.states[name] > 0 for name in states(faults=self.faults))

    @property
    def never(self) -> list[str]:
        """What it could have reached and did not, by name."""
        return self.reached.never(faults=self.faults)


Progress = Callable[[Result], None]
"""Told when the search for the planted bug begins, and after every sequence that counts."""


def silent(result: Result) -> None:
    """Tell nobody."""
    _ = result
