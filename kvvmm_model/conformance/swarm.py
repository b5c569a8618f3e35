"""Random sequences from a seed: each uses a random subset of operations, rates and sizes.

Sequences that all draw from the same mixture meet the same few situations; leaving operations out
and turning rates up or down, differently each time, reaches more of them.
"""

from collections.abc import Sequence as Listed
from random import Random

from attrs import frozen

from kvvmm_model.codes import STICKY
from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner, all_specs
from kvvmm_model.machine import (
    OPERATIONS,
    Close,
    Commit,
    Operation,
    Reclaim,
    Release,
    Reserve,
    SetLimit,
    Trim,
)
from kvvmm_model.sequence import NO_FAULTS, Sequence, Step, World
from kvvmm_model.vocabulary import Policy, Settings

FAULT_POINTS: dict[str, tuple[Kind, ...]] = {
    "reserve": (Kind.ADDRESS_RESERVE,),
    "commit": (
        Kind.RELEASE,
        Kind.CREATE,
        Kind.MAP,
        Kind.QUERY,
        Kind.SET_ACCESS,
        Kind.UNMAP,
    ),
    "release": (Kind.FENCE, Kind.CLEAR, Kind.UNMAP, Kind.QUERY, Kind.RELEASE),
    "close": (
        Kind.FENCE,
        Kind.CLEAR,
        Kind.UNMAP,
        Kind.QUERY,
        Kind.RELEASE,
        Kind.ADDRESS_FREE,
    ),
    "trim": (Kind.RELEASE,),
    "reclaim": (
        Kind.FENCE,
        Kind.QUERY,
        Kind.UNMAP,
        Kind.RELEASE,
        Kind.ADDRESS_FREE,
    ),
    "set_limit": (),
}
"""The kinds of driver call that each operation can make."""

INJECTABLE: dict[Kind, tuple[tuple[Manner, int], ...]] = {
    kind: tuple(pair for pair in all_specs(kind) if pair[1] not in STICKY) for kind in Kind
}
STICKY_PAIRS: dict[Kind, tuple[tuple[Manner, int], ...]] = {
    kind: tuple(pair for pair in all_specs(kind) if pair[1] in STICKY) for kind in Kind
}
BAD: tuple[object, ...] = (-1, 0, 1 << 70, True, None, 1.5, "4096", float("nan"))
"""Arguments that no operation takes."""


def forward(name: str) -> tuple[Kind, ...]:
    """The calls that an operation makes while nothing has failed yet."""
    undoing = (Kind.QUERY, Kind.UNMAP, Kind.RELEASE) if name == "commit" else (Kind.QUERY,)
    return tuple(kind for kind in FAULT_POINTS[name] if kind not in undoing)


@frozen
class Habit:
    """How one sequence behaves: its mixture of operations and its rates."""

    weights: tuple[int, ...]
    fault_rate: float
    bad_rate: float
    sticky_rate: float
    reservations: int
    longest: int


NAMES = tuple(OPERATIONS)


class Swarm:
    """Makes up the sequence of a seed; the same seed, the same sequence."""

    def __init__(
        self, seed: int, *, granularity_bytes: int, faults: bool = True, length: int = 60
    ) -> None:
        self._random = Random(seed)
        self._unit = granularity_bytes
        self._faults = faults
        self._length = length
        self._issued = 0
        self._backed: dict[int, list[tuple[object, object]]] = {}

    def sequence(self) -> Sequence:
        """World, habit and steps, in that order."""
        random = self._random
        world = self._world()
        habit = self._habit()
        names = random.choices(NAMES, habit.weights, k=self._length)
        steps: list[Step] = []
        for drawn in ("reserve",) * habit.reservations + tuple(names):
            # Without a reservation there is little to see.
            name = drawn if self._backed or random.random() < 0.2 else "reserve"
            step = Step(self._operation(name, habit), self._plan(name, habit))
            steps.append(step)
            self._expect(step)
            if step.faults.specs:
                steps += self._aftermath(step, habit)
        return Sequence(world, tuple(steps))

    def _aftermath(self, step: Step, habit: Habit) -> list[Step]:
        """What people do after a failure: try again, or reclaim, which may fail as well."""
        chance = self._random.random()
        if chance < 0.2:
            return [Step(step.operation)]
        lasting = isinstance(step.operation, Close) or len(step.faults.specs) > 1
        if chance < (0.6 if lasting else 0.3):
            return [Step(Reclaim(), self._plan("reclaim", habit)), Step(Reclaim())]
        return []

    def _expect(self, step: Step) -> None:
        """Guess which serials will be open: no answer is known here, and a wrong guess is fine."""
        match step.operation:
            case Reserve(size, alignment) if not step.faults.specs:
                if size not in BAD and alignment not in BAD[3:]:
                    self._issued += 1
                    self._backed[self._issued] = []
            case Commit(int() as serial, offset, size) if serial in self._backed:
                self._backed[serial].append((offset, size))
            case Close(int() as serial):
                _ = self._backed.pop(serial, None)
            case _:
                pass

    def _world(self) -> World:
        random = self._random
        settings = Settings(
            self._unit,
            policy=random.choice((Policy.GRANULE, Policy.RUN)),
            longest_run=random.choice((1, 2, 3, 4, 8)),
            retention=random.choice((0, 1, 2, 4, 16)),
            clear_pooled=random.random() < 0.9,
        )
        limit = random.choice((2, 4, 8, 16))
        return World(settings, limit, capacity=max(1, limit + random.choice((-2, 0, 4))))

    def _habit(self) -> Habit:
        random = self._random
        likely = (4, 20, 14, 3, 3, 4, 1)
        weights = tuple(weight * (random.random() < 0.85) for weight in likely)
        return Habit(
            weights=weights if any(weights) else likely,
            fault_rate=random.choice((0.0, 0.2, 0.5, 0.8)) if self._faults else 0.0,
            bad_rate=random.choice((0.0, 0.02, 0.1)),
            sticky_rate=random.choice((0.0, 0.0, 0.02, 0.2)),
            reservations=random.choice((1, 2, 4)),
            longest=random.choice((1, 2, 4, 8)),
        )

    # --- operations -------------------------------------------------------------------------

    def _operation(self, name: str, habit: Habit) -> Operation:
        random = self._random
        match name:
            case "reserve":
                return Reserve(self._size(habit), self._some((0, 0, 0, 4096, 1 << 30), habit))
            case "commit":
                return Commit(self._serial(habit), *self._range(habit))
            case "release":
                return self._release(habit)
            case "close":
                return Close(self._in_use(habit))
            case "trim":
                return Trim(self._some((0, 1, self._unit, 4 * self._unit), habit))
            case "reclaim":
                return Reclaim(None if random.random() < 0.5 else self._serial(habit))
            case _:
                return SetLimit(self._some(tuple(self._unit * n for n in (0, 2, 8, 16, 32)), habit))

    def _some(self, good: Listed[object], habit: Habit) -> object:
        random = self._random
        return random.choice(BAD) if random.random() < habit.bad_rate else random.choice(good)

    def _serial(self, habit: Habit) -> object:
        """Mostly a reservation that should be open, now and then one that should not."""
        random = self._random
        if self._backed and random.random() < 0.9:
            return self._some(tuple(self._backed), habit)
        return self._some((random.randint(0, 2 + self._issued),), habit)

    def _in_use(self, habit: Habit) -> object:
        """Mostly a reservation that something was committed in: its end has the most to do."""
        used = tuple(serial for serial, backed in self._backed.items() if backed)
        if used and self._random.random() < 0.7:
            return self._random.choice(used)
        return self._serial(habit)

    def _release(self, habit: Habit) -> Operation:
        """Mostly of what was committed before."""
        serial = self._in_use(habit)
        backed = self._backed.get(serial) if isinstance(serial, int) else None
        if backed and self._random.random() < 0.6:
            return Release(serial, *self._random.choice(backed))
        return Release(serial, *self._range(habit))

    def _size(self, habit: Habit) -> object:
        random = self._random
        size = habit.longest if random.random() < 0.8 else random.randint(1, habit.longest)
        exact = self._unit * size
        return self._some((exact, exact, exact - random.randrange(self._unit)), habit)

    def _range(self, habit: Habit) -> tuple[object, object]:
        """Mostly whole windows inside the reservation, sometimes not."""
        random = self._random
        first = random.randrange(habit.longest)
        length = random.randint(1, habit.longest - first)
        offset, size = first * self._unit, length * self._unit
        if random.random() < 0.15:
            offset += random.randint(0, self._unit)
            size -= random.randrange(self._unit)
        return self._some((offset,), habit), self._some((size,), habit)

    # --- faults -----------------------------------------------------------------------------

    def _plan(self, name: str, habit: Habit) -> FaultPlan:
        random = self._random
        kinds = FAULT_POINTS[name]
        if not kinds or random.random() >= habit.fault_rate:
            return NO_FAULTS
        count = random.choice((1, 1, 1, 2, 2, 3))
        first = random.choice(kinds if random.random() < 0.1 else forward(name))
        others = [random.choice(kinds) for _ in range(count - 1)]
        if Kind.QUERY in others and name != "reclaim":  # nobody asks unless one of these failed
            first = random.choice([kind for kind in (Kind.MAP, Kind.UNMAP) if kind in kinds])
        return FaultPlan(tuple(self._fault(kind, habit) for kind in (first, *others)))

    def _fault(self, kind: Kind, habit: Habit) -> FaultSpec:
        random = self._random
        sticky = random.random() < habit.sticky_rate
        manner, code = random.choice((STICKY_PAIRS if sticky else INJECTABLE)[kind])
        return FaultSpec(
            step=kind,
            manner=manner,
            code=code,
            nth=1 if kind is Kind.ADDRESS_RESERVE else random.choice((1, 1, 1, 1, 2, 2, 3, 4)),
            part=random.randint(0, 3) if manner is Manner.IN_PART else 0,
            lasting=random.random() < 0.2,
        )
