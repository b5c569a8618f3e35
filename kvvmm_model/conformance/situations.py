"""Short passages that plain chance puts together too rarely, for the swarm to weave in.

Each was added when a bug that needs it was planted and stayed unseen: a pool of small handles
before a large commit, quarantine in two reservations before one reclaim, gaps between windows that
leave together, and ranges that cut through what is in doubt.
"""

from collections.abc import Callable

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.choices import Choices
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import Close, Commit, Reclaim, Release, Reserve, SetLimit, Trim
from kvvmm_model.sequence import NO_FAULTS, Step
from kvvmm_model.vocabulary import Code

WINDOWS = 12
"""Of the reservations that a situation makes for itself."""

ROOMY = 32
"""A limit that nothing here reaches."""

PlanFor = Callable[[str], FaultPlan]
"""Draws a fault plan for an operation of that name, often none."""


class Situations:
    """Draws passages; ``serial`` is what the next reservation should be called."""

    def __init__(self, choices: Choices, unit: int, plan: PlanFor, *, faults: bool) -> None:
        self._choices = choices
        self._unit = unit
        self._plan = plan
        self._faults = faults

    def draw(self, serial: int) -> list[Step]:
        """One of them."""
        kinds = [self._small_then_large, self._gaps]
        if self._faults:
            kinds += [self._two_quarantines, self._across_the_doubtful]
        return self._choices.choice(kinds)(serial)

    def _small_then_large(self, serial: int) -> list[Step]:
        """Fill the pool with single windows, then ask for more than it can serve."""
        count = self._choices.randint(3, 6)
        singles = [self._commit(serial, 2 * window, 1) for window in range(count)]
        size = self._choices.randint(2, 6)
        return [
            Step(SetLimit(ROOMY * self._unit)),
            Step(Trim(WINDOWS * self._unit)),
            self._reserve(),
            *singles,
            self._release(serial, 0, WINDOWS),
            self._commit(serial, self._choices.randint(0, 4), size, self._short_of_memory()),
            self._commit(serial, 0, 2),
        ]

    def _gaps(self, serial: int) -> list[Step]:
        """Windows with gaps between them leave together, as several runs and of several sizes."""
        sizes = [self._choices.randint(1, 3) for _ in range(3)]
        starts = (0, sizes[0] + self._choices.randint(0, 1), 8)
        plan = self._choices.choice((NO_FAULTS, self._plan("release"), self._second_fails()))
        return [
            self._reserve(),
            *(self._commit(serial, start, size) for start, size in zip(starts, sizes, strict=True)),
            self._release(serial, 0, WINDOWS, plan),
            self._release(serial, 0, WINDOWS),
        ]

    def _two_quarantines(self, serial: int) -> list[Step]:
        """Doubt in two reservations, then one reclaim for both, which may fail in the middle."""
        other = serial + 1
        ending = Step(Close(other), self._failing((Kind.FENCE, 1, False)))
        return [
            self._reserve(),
            self._reserve(),
            self._doubt(serial),
            self._doubt(other),
            *([ending] if self._choices.usually(0.5) else []),
            Step(Reclaim(), self._plan("reclaim")),
            Step(Reclaim()),
        ]

    def _across_the_doubtful(self, serial: int) -> list[Step]:
        """Ranges that begin or end in the middle of what is quarantined."""
        first = self._choices.randint(0, 7)
        end = first + self._choices.randint(1, 9 - first)
        return [
            self._reserve(),
            self._commit(serial, 0, 2),
            self._commit(serial, 6, 3),
            self._doubt(serial),
            self._release(serial, first, end - first),
            self._commit(serial, first, end - first),
            self._release(serial, 0, WINDOWS),
            Step(Close(serial), self._plan("close")),
        ]

    # --- steps ------------------------------------------------------------------------------

    def _reserve(self) -> Step:
        return Step(Reserve(WINDOWS * self._unit))

    def _commit(self, serial: int, first: int, size: int, plan: FaultPlan = NO_FAULTS) -> Step:
        return Step(Commit(serial, first * self._unit, size * self._unit), plan)

    def _release(self, serial: int, first: int, size: int, plan: FaultPlan = NO_FAULTS) -> Step:
        return Step(Release(serial, first * self._unit, size * self._unit), plan)

    def _doubt(self, serial: int) -> Step:
        """A commit whose undoing fails too."""
        first, size = self._choices.randint(2, 4), self._choices.randint(1, 4)
        plan = self._failing((Kind.SET_ACCESS, 1, False), (Kind.UNMAP, 1, True))
        return self._commit(serial, first, size, plan)

    # --- faults -----------------------------------------------------------------------------

    def _short_of_memory(self) -> FaultPlan:
        """No memory at one create or two, or a fault in giving up."""
        if not self._faults:
            return NO_FAULTS
        first = self._choices.randint(1, 2)
        full = [
            FaultSpec(Kind.CREATE, Manner.WITHOUT_EFFECT, Code.OUT_OF_MEMORY, nth)
            for nth in (first, first + self._choices.randint(1, 2))
        ]
        other = self._failing((Kind.RELEASE, self._choices.randint(1, 3), False))
        return self._choices.choice(
            (
                NO_FAULTS,
                FaultPlan(tuple(full[:1])),
                FaultPlan(tuple(full)),
                other,
                FaultPlan((full[0], *other.specs)),
            )
        )

    def _second_fails(self) -> FaultPlan:
        """The first or second call of a kind fails, and then something that comes later."""
        if not self._faults:
            return NO_FAULTS
        early = self._choices.choice((Kind.CLEAR, Kind.UNMAP))
        late = self._choices.choice((Kind.FENCE, Kind.UNMAP, Kind.QUERY, Kind.RELEASE))
        code = Code.ILLEGAL_ADDRESS if self._choices.usually(0.5) else Code.UNKNOWN
        second = FaultSpec(late, Manner.WITHOUT_EFFECT, code, self._choices.randint(1, 2))
        first = self._failing((early, self._choices.randint(1, 2), False))
        return self._choices.choice((FaultPlan((second,)), FaultPlan((*first.specs, second))))

    def _failing(self, *calls: tuple[Kind, int, bool]) -> FaultPlan:
        """Those calls fail for an unknown reason and without effect."""
        return FaultPlan(
            tuple(
                FaultSpec(kind, Manner.WITHOUT_EFFECT, Code.UNKNOWN, nth, lasting=lasting)
                for kind, nth, lasting in calls
            )
        )
