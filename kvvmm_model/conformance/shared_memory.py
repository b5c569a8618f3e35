"""Passages about shared memory, for the swarm to weave in: chance alone seldom gets that far.

A prefix has to be committed, published, sealed and attached before anything can be seen of it, and
what matters most is who leaves when, and what fails on the way.
"""

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.choices import Choices
from kvvmm_model.conformance.ingredients import INJECTABLE
from kvvmm_model.conformance.situations import PlanFor
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Publish,
    Reclaim,
    Release,
    Reserve,
    Retire,
    Seal,
    SetLimit,
    Trim,
)
from kvvmm_model.sequence import NO_FAULTS, Step
from kvvmm_model.vocabulary import Code

WINDOWS = 8
"""Of the reservations that a passage makes for itself."""

ROOMY = 32
"""A limit that nothing here reaches."""


class SharedMemory:
    """Draws passages.

    ``serial`` and ``prefix`` are what the next reservation and the next prefix should be called.
    """

    def __init__(self, choices: Choices, unit: int, plan: PlanFor, *, faults: bool) -> None:
        self._choices = choices
        self._unit = unit
        self._plan = plan
        self._faults = faults

    def draw(self, serial: int, prefix: int) -> list[Step]:
        """One of them."""
        kinds = [
            self._departures,
            self._two_prefixes,
            self._children,
            self._taken_back,
            self._child_short_of_room,
        ]
        if self._faults:
            kinds += [
                self._mixed_departure,
                self._doubtful_sharer,
                self._doubtful_seal,
                self._doubtful_child,
            ]
        return self._choices.choice(kinds)(serial, prefix)

    # --- passages ---------------------------------------------------------------------------

    def _departures(self, serial: int, prefix: int) -> list[Step]:
        """Owner, prefix and sharers leave in some order."""
        size = self._choices.randint(1, 4)
        sharers = [serial + 1, serial + 1 + self._choices.randint(0, 1)]
        offset = self._choices.randint(0, WINDOWS // 2) * (sharers[0] == sharers[1])
        leaving = [
            Step(Close(serial), self._plan("close")),
            Step(Retire(prefix), self._plan("retire")),
            self._release(sharers[0], 0, WINDOWS, self._plan("release")),
            Step(Close(sharers[1]), self._plan("close")),
        ]
        return [
            *self._sealed(serial, size),
            Step(Seal(prefix)),
            self._reserve(),
            self._reserve(),
            self._attach(sharers[0], prefix, 0, self._plan("attach")),
            self._attach(sharers[1], prefix, offset, self._plan("attach")),
            self._commit(sharers[0], size, 2),
            *self._shuffled(leaving),
        ]

    def _two_prefixes(self, serial: int, prefix: int) -> list[Step]:
        """Two prefixes over the same memory, one longer, sealed in some order."""
        size = self._choices.randint(1, 3)
        seals = [
            Step(Seal(prefix), self._plan("seal")),
            Step(Seal(prefix + 1), self._plan("seal")),
        ]
        return [
            Step(SetLimit(ROOMY * self._unit)),
            self._reserve(),
            *(self._commit(serial, window, 1) for window in range(size + 1)),
            Step(Publish(serial, size * self._unit)),
            Step(Publish(serial, (size + 1) * self._unit)),
            *self._shuffled(seals),
            self._commit(serial, 0, WINDOWS),
            self._reserve(),
            self._attach(serial + 1, prefix + self._choices.randint(0, 1), 0),
            self._commit(serial + 1, size, 1),
            Step(Publish(serial + 1, (size + 1) * self._unit)),
            Step(Seal(prefix + 2), self._plan("seal")),
            *self._shuffled([Step(Retire(prefix)), Step(Retire(prefix + 1)), Step(Close(serial))]),
        ]

    def _children(self, serial: int, prefix: int) -> list[Step]:
        """A child and a child of it, with bytes left over, from the pool or not."""
        size = self._choices.randint(1, 3)
        length = self._choices.randint(0, size) * self._unit + self._choices.randint(1, self._unit)
        shorter = self._choices.randint(1, length)
        parents = ((serial, length),) * self._choices.choice((1, 1, 2))
        return [
            *self._sealed(serial, size),
            Step(Seal(prefix)),
            self._commit(serial, size, 2),
            self._release(serial, size + 1, 1),
            Step(Fork(parents), self._plan("fork")),
            Step(Fork(((serial + 1, shorter), (serial, length))), self._plan("fork")),
            self._commit(serial + 1, 0, WINDOWS),
            self._commit(serial + 1, size + 1, 2),
            *self._shuffled([Step(Close(serial)), Step(Close(serial + 1)), Step(Retire(prefix))]),
        ]

    def _child_short_of_room(self, serial: int, prefix: int) -> list[Step]:
        """A child for which pooled memory of another size has to be given up, if any is pooled."""
        return [
            Step(Trim(WINDOWS * self._unit)),
            *self._sealed(serial, 1),
            Step(Seal(prefix)),
            self._commit(serial, 1, 1),
            self._commit(serial, 4, 2),
            self._release(serial, 4, 2),
            Step(SetLimit(4 * self._unit)),
            Step(Fork(((serial, self._unit + 1),)), self._short_of_memory()),
            Step(Fork(((serial, self._unit + 1),))),
        ]

    def _taken_back(self, serial: int, prefix: int) -> list[Step]:
        """What was published leaves, or is replaced, before it is sealed."""
        size = self._choices.randint(1, 3)
        first = self._choices.randint(0, size)
        return [
            *self._sealed(serial, size),
            self._release(serial, first, 1, self._plan("release")),
            self._commit(serial, 0, size),
            Step(Seal(prefix), self._plan("seal")),
            self._release(serial, 0, WINDOWS, self._plan("release")),
            Step(Retire(prefix)),
        ]

    def _mixed_departure(self, serial: int, prefix: int) -> list[Step]:
        """Private windows on both sides of shared ones leave, and their clears and fences fail."""
        sharer = serial + 1
        clear = self._spec(Kind.CLEAR, self._choices.randint(1, 2), lasting=False)
        fence = self._spec(Kind.FENCE, 2, lasting=False)
        plans = (FaultPlan((clear, fence)), FaultPlan((fence,)), self._plan("release"))
        leave = [
            self._release(sharer, 0, WINDOWS, self._choices.choice(plans)),
            Step(Close(sharer), self._choices.choice(plans)),
        ]
        return [
            *self._sealed(serial, 1),
            Step(Seal(prefix)),
            self._reserve(),
            self._attach(sharer, prefix, 2),
            self._commit(sharer, 0, 2),
            self._commit(sharer, 3, 2),
            self._commit(sharer, 6, 1),
            *self._shuffled(leave),
            Step(Reclaim()),
        ]

    def _doubtful_sharer(self, serial: int, prefix: int) -> list[Step]:
        """A sharer's mapping stays in doubt, and outlives everybody else."""
        size = self._choices.randint(1, 3)
        early = self._choices.choice((Kind.MAP, Kind.SET_ACCESS))
        others = [
            Step(Close(serial)),
            Step(Retire(prefix)),
            Step(Close(serial + 1), self._plan("close")),
            Step(Reclaim(), self._plan("reclaim")),
        ]
        return [
            *self._sealed(serial, size),
            Step(Seal(prefix)),
            self._reserve(),
            self._attach(serial + 1, prefix, 0, self._failing(early, Kind.UNMAP)),
            self._attach(serial + 1, prefix, 0),
            Step(Fork(((serial + 1, self._unit),))),
            *self._shuffled(others),
            Step(Reclaim()),
        ]

    def _doubtful_seal(self, serial: int, prefix: int) -> list[Step]:
        """The rights of what was to be sealed are not known any more."""
        size = self._choices.randint(1, 3)
        other, doubtful = serial + 1, prefix + 1
        length = self._choices.randint(1, size * self._unit)
        return [
            *self._sealed(serial, 1),
            Step(Seal(prefix)),
            *self._sealed(other, size),
            Step(Seal(doubtful), self._failing(Kind.SET_ACCESS)),
            self._commit(other, 0, size + 1),
            self._attach(other, prefix, self._choices.randint(0, size)),
            Step(Publish(other, size * self._unit)),
            Step(Fork(((other, length),))),
            Step(Seal(doubtful), self._plan("seal")),
            self._release(other, 0, WINDOWS, self._plan("release")),
        ]

    def _doubtful_child(self, serial: int, prefix: int) -> list[Step]:
        """A child whose undoing fails, at the copy or later."""
        size = self._choices.randint(1, 3)
        length = size * self._unit + self._choices.randint(1, self._unit)
        early = self._choices.choice((Kind.COPY, Kind.SET_ACCESS, Kind.MAP))
        late = self._choices.choice(
            ((Kind.UNMAP,), (Kind.UNMAP, Kind.QUERY), (Kind.ADDRESS_FREE,), (Kind.RELEASE,))
        )
        return [
            *self._sealed(serial, size),
            Step(Seal(prefix)),
            self._commit(serial, size, 1),
            Step(Fork(((serial, length),)), self._failing(early, *late)),
            Step(Fork(((serial, length),)), self._failing(early, Kind.UNMAP)),
            Step(Fork(((serial, length), (serial, length))), self._plan("fork")),
            Step(Close(serial)),
            Step(Reclaim(), self._plan("reclaim")),
            Step(Retire(prefix)),
            Step(Reclaim()),
        ]

    # --- steps ------------------------------------------------------------------------------

    def _sealed(self, serial: int, size: int) -> list[Step]:
        """An owner with so many windows committed, one by one or at once, and published."""
        apart = self._choices.usually(0.5)
        commits = [(window, 1) for window in range(size)] if apart else [(0, size)]
        return [
            Step(SetLimit(ROOMY * self._unit)),
            self._reserve(),
            *(self._commit(serial, window, count) for window, count in commits),
            Step(Publish(serial, size * self._unit)),
        ]

    def _reserve(self) -> Step:
        return Step(Reserve(WINDOWS * self._unit))

    def _commit(self, serial: int, first: int, size: int) -> Step:
        size = min(size, WINDOWS - first)
        return Step(Commit(serial, first * self._unit, size * self._unit))

    def _release(self, serial: int, first: int, size: int, plan: FaultPlan = NO_FAULTS) -> Step:
        size = min(size, WINDOWS - first)
        return Step(Release(serial, first * self._unit, size * self._unit), plan)

    def _attach(self, serial: int, prefix: int, window: int, plan: FaultPlan = NO_FAULTS) -> Step:
        return Step(Attach(((serial, prefix, window * self._unit),)), plan)

    def _shuffled(self, steps: list[Step]) -> list[Step]:
        rest, order = list(steps), list[Step]()
        while rest:
            order.append(rest.pop(self._choices.randrange(len(rest))))
        return order

    def _short_of_memory(self) -> FaultPlan:
        """No memory at the create, or a fault in giving up for it."""
        if not self._faults:
            return NO_FAULTS
        full = FaultSpec(Kind.CREATE, Manner.WITHOUT_EFFECT, Code.OUT_OF_MEMORY)
        manner = self._choices.choice((Manner.WITHOUT_EFFECT, Manner.WITH_EFFECT))
        lost = FaultSpec(Kind.RELEASE, manner, Code.UNKNOWN)
        return self._choices.choice(
            (NO_FAULTS, FaultPlan((full,)), FaultPlan((lost,)), FaultPlan((full, lost)))
        )

    def _failing(self, first: Kind, *later: Kind) -> FaultPlan:
        """One call fails, and all of the kinds that undo it."""
        nth = self._choices.randint(1, 2)
        return FaultPlan(
            (
                self._spec(first, nth, lasting=not later),
                *(self._spec(kind, 1, lasting=True) for kind in later),
            )
        )

    def _spec(self, kind: Kind, nth: int, *, lasting: bool) -> FaultSpec:
        """Mostly for an unknown reason and without effect."""
        manner, code = Manner.WITHOUT_EFFECT, int(Code.UNKNOWN)
        if self._choices.seldom(0.4):
            manner, code = self._choices.choice(INJECTABLE[kind])
        return FaultSpec(kind, manner, code, nth, lasting=lasting)
