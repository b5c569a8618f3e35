"""What the parent of a worker process and the worker say to each other."""

import copyreg

from attrs import field, frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.comparison import Divergence
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.sequence import Sequence

__all__ = [
    "Begun",
    "Counted",
    "Declined",
    "Failing",
    "Job",
    "Place",
    "Searching",
    "Spell",
    "Trials",
    "Tried",
]


def _again(divergence: Divergence) -> tuple[type[Divergence], tuple[object, ...]]:
    d = divergence
    return Divergence, (d.kind, d.detail, d.number, d.operation)


# An exception travels as its message alone, unless it is told how.
copyreg.pickle(Divergence, _again)


# --- to the worker ------------------------------------------------------------------------------


@frozen
class Place:
    """What runs and on what, by names, for only they can be sent to another process.

    ``subject``: ``module:attribute``.  ``driver``: a name, or also ``module:attribute``.
    ``planted``: the bug that is planted into the subject, which then runs on a simulated driver.
    """

    subject: str
    driver: str
    device: int = 0
    planted: str = ""


@frozen
class Spell:
    """What one worker does of a campaign; the fields are those of ``Plan``."""

    place: Place
    form: str
    seed: int
    faults: bool = True
    seconds: float | None = None
    count: int | None = None
    most: int | None = None
    skip: int = 0
    canary_caught: bool = False


@frozen
class Trials:
    """Run these one after the other, and answer each with ``Tried``."""

    place: Place
    sequences: tuple[Sequence, ...]


@frozen
class Job:
    """A task, and the directory in which the worker keeps its journal."""

    task: Spell | Trials
    directory: str


# --- from the worker ----------------------------------------------------------------------------


@frozen
class Begun:
    """The driver is open; from here on every step is bounded in time."""

    granularity_bytes: int


@frozen
class Declined:
    """The task cannot be done by any worker, and this is why."""

    why: str


@frozen
class Searching:
    """Whether the planted bug is still looked for."""

    canary: bool


@frozen
class Counted:
    """One more sequence has ended; ``reached`` since the worker began, durations of this one."""

    reached: Reached
    durations: dict[Kind, list[int]] = field(factory=dict[Kind, list[int]])
    seconds: float = 0.0


@frozen
class Failing:
    """This fails; it may become shorter."""

    sequence: Sequence
    divergence: Divergence


@frozen
class Tried:
    """What came of one sequence.

    ``lost``: it lost the device, which no injected fault did; this worker tries no more.
    """

    divergence: Divergence | None = None
    lost: bool = False
