"""Random sequences from a seed: each uses a random subset of operations, rates and sizes.

Sequences that all draw from the same mixture meet the same few situations; leaving operations out
and turning rates up or down, differently each time, reaches more of them.
"""

from collections.abc import Sequence as Listed

from attrs import evolve

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.choices import Choices, FromSeed, Part
from kvvmm_model.conformance.guesses import Foreseen, Guesses, Hopeful
from kvvmm_model.conformance.ingredients import (
    ALONE,
    BAD,
    FAULT_POINTS,
    INJECTABLE,
    SHARING,
    STICKY_PAIRS,
    UNDOING,
    Habit,
    forward,
)
from kvvmm_model.conformance.sharing import Sharing
from kvvmm_model.conformance.situations import Situations
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
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
from kvvmm_model.vocabulary import MAX_BYTES, Policy, Settings

_LIKELY = {
    "reserve": 4,
    "commit": 20,
    "release": 14,
    "close": 3,
    "publish": 5,
    "seal": 6,
    "attach": 10,
    "retire": 3,
    "fork": 10,
    "trim": 3,
    "reclaim": 4,
    "set_limit": 1,
}


class Swarm:
    """Makes up the sequence of a seed; the same seed, the same sequence.

    In every other one, nothing is shared.
    """

    def __init__(
        self, seed: int, *, granularity_bytes: int, faults: bool = True, length: int = 60
    ) -> None:
        self._random = FromSeed(seed >> 1)
        self._sharing = bool(seed & 1)
        self._maker = Maker(self._random, granularity_bytes, faults=faults)
        self._length = length

    def sequence(self) -> Sequence:
        """World, habit and steps, in that order."""
        random, maker = self._random, self._maker
        world = maker.world()
        habit = maker.habit(sharing=self._sharing)
        names = random.choices(habit.names, habit.weights, k=self._length)
        steps: list[Step] = []
        for drawn in ("reserve",) * habit.reservations + tuple(names):
            # Without a reservation there is little to see.
            name = drawn if maker.any_open or random.random() < 0.2 else "reserve"
            steps += maker.steps(maker.towards(name), habit)
            if random.seldom(0.05 if self._sharing else 0.02):
                steps += maker.passage(habit)
        return Sequence(world, tuple(steps))


class Maker:
    """Makes up worlds, habits and steps from choices, one after the other."""

    def __init__(self, choices: Choices, unit: int, *, faults: bool = True) -> None:
        self._choices = choices
        self.unit = unit
        self._faults = faults
        self._guesses: Guesses = Hopeful(BAD)
        self._sharing: Sharing | None = None

    @property
    def any_open(self) -> bool:
        """Whether some reservation should be open."""
        return bool(self._guesses.backed)

    def towards(self, name: str) -> str:
        """The operation, or one that comes before it where there is nothing to do it with."""
        return name if self._sharing is None else self._sharing.towards(name)

    def steps(self, name: str, habit: Habit) -> list[Step]:
        """An operation, and what may follow its failure."""
        operation = self._operation(name, habit)
        self._choices.turn(Part.FAULTS)
        step = Step(operation, self._plan(name, habit))
        self._guesses.follow(step)
        if not step.faults.specs:
            return [step]
        self._choices.turn(Part.AFTERMATH)
        return [step, *self._aftermath(step, habit)]

    def passage(self, habit: Habit) -> list[Step]:
        """Several steps that chance would hardly put together."""

        def plan(name: str) -> FaultPlan:
            return self._plan(name, habit)

        faults = habit.fault_rate > 0
        if self._sharing is not None and self._choices.usually(0.7):
            steps = self._sharing.passage(plan, faults=faults)
        else:
            situations = Situations(self._choices, self.unit, plan, faults=faults)
            steps = situations.draw(self._guesses.issued + 1)
        for step in steps:
            self._guesses.follow(step)
        return steps

    def plain(self, operation: Operation) -> Step:
        """The operation without faults."""
        step = Step(operation)
        self._guesses.follow(step)
        return step

    def _aftermath(self, step: Step, habit: Habit) -> list[Step]:
        """What people do after a failure: try again, or reclaim, which may fail as well."""
        chance = self._choices.random()
        if chance < 0.2:
            return [Step(step.operation)]
        lasting = isinstance(step.operation, Close) or len(step.faults.specs) > 1
        if chance < (0.6 if lasting else 0.3):
            return [Step(Reclaim(), self._plan("reclaim", habit)), Step(Reclaim())]
        return []

    # --- worlds and habits ------------------------------------------------------------------

    def world(self) -> World:
        """The world that a sequence runs in."""
        choices = self._choices
        choices.turn(Part.WORLD)
        settings = Settings(
            self.unit,
            policy=choices.choice((Policy.GRANULE, Policy.RUN)),
            longest_run=choices.choice((1, 2, 2, 3, 4, 8)),
            retention=choices.choice((0, 1, 2, 4, 16, 16)),
            clear_pooled=choices.usually(0.9),
        )
        limit = choices.choice((2, 4, 8, 16, 16))
        capacity = max(1, limit + choices.choice((-2, 0, 4, 16)))
        self._world = World(settings, limit, capacity)
        return self._world

    def habit(self, *, sharing: bool) -> Habit:
        """How a sequence behaves; it is chosen just after the world."""
        choices = self._choices
        if sharing:
            foreseen = Foreseen(self._world)
            self._guesses, self._sharing = foreseen, Sharing(choices, self.unit, foreseen)
        names = tuple(OPERATIONS) if sharing else ALONE
        likely = tuple(_LIKELY[name] for name in names)
        weights = tuple(weight * choices.usually(0.85) for weight in likely)
        return Habit(
            names=names,
            weights=weights if any(weights) else likely,
            fault_rate=choices.choice((0.0, 0.2, 0.5, 0.8)) if self._faults else 0.0,
            bad_rate=choices.choice((0.0, 0.02, 0.1)),
            sticky_rate=choices.choice((0.0, 0.0, 0.02, 0.2)),
            reservations=choices.choice((1, 2, 4)),
            longest=choices.choice((1, 2, 4, 8)),
        )

    # --- operations -------------------------------------------------------------------------

    def _operation(self, name: str, habit: Habit) -> Operation:
        choices = self._choices
        choices.turn(Part.PLACE)
        if self._sharing is not None and name in SHARING:
            return self._sharing.operation(name, habit)
        match name:
            case "reserve":
                choices.turn(Part.AMOUNT)
                return Reserve(self._size(habit), self._some((0, 0, 0, 4096, 1 << 30), habit))
            case "commit":
                return Commit(self._serial(habit), *self._range(habit))
            case "release":
                return self._release(habit)
            case "close":
                return Close(self._in_use(habit))
            case "trim":
                choices.turn(Part.AMOUNT)
                return Trim(self._some((0, 1, self.unit, 4 * self.unit), habit))
            case "trim":
                choices.turn(Part.AMOUNT)
                return Trim(self._some((0, 1, self.unit, 4 * self.unit), habit))
            case "reclaim":
                return Reclaim(None if choices.usually(0.5) else self._serial(habit))
            case _:
                choices.turn(Part.AMOUNT)
                limits = tuple(self.unit * n for n in (0, 2, 8, 16, 32))
                return SetLimit(self._some(limits, habit))

    def _some(self, good: Listed[object], habit: Habit) -> object:
        choices = self._choices
        return choices.choice(BAD) if choices.seldom(habit.bad_rate) else choices.choice(good)

    def _serial(self, habit: Habit) -> object:
        """Mostly a reservation that should be open, now and then one that should not."""
        choices = self._choices
        if self._guesses.backed and choices.usually(0.9):
            return self._some(tuple(self._guesses.backed), habit)
        return self._some((choices.randint(0, 2 + self._guesses.issued),), habit)

    def _in_use(self, habit: Habit) -> object:
        """Mostly a reservation that something was committed in: its end has the most to do."""
        used = tuple(serial for serial, backed in self._guesses.backed.items() if backed)
        if used and self._choices.usually(0.7):
            return self._choices.choice(used)
        return self._serial(habit)

    def _release(self, habit: Habit) -> Operation:
        """Mostly of what was committed before."""
        serial = self._in_use(habit)
        backed = self._guesses.backed.get(serial) if isinstance(serial, int) else None
        self._choices.turn(Part.BEFORE)
        if backed and self._choices.usually(0.6):
            return Release(serial, *self._choices.choice(backed))
        return Release(serial, *self._range(habit))

    def _size(self, habit: Habit) -> object:
        choices = self._choices
        size = habit.longest if choices.usually(0.8) else choices.randint(1, habit.longest)
        exact = self.unit * size
        return self._some((exact, exact, exact - choices.randrange(self.unit)), habit)

    def _range(self, habit: Habit) -> tuple[object, object]:
        """Mostly whole windows inside the reservation, sometimes not."""
        choices = self._choices
        choices.turn(Part.AMOUNT)
        first = choices.randrange(habit.longest)
        length = choices.randint(1, habit.longest - first)
        offset, size = first * self.unit, length * self.unit
        if choices.seldom(0.15):
            offset += choices.randint(0, self.unit)
            size -= choices.randrange(self.unit)
        return self._some((offset,), habit), self._some((size,), habit)

    # --- faults -----------------------------------------------------------------------------

    def _plan(self, name: str, habit: Habit) -> FaultPlan:
        choices = self._choices
        kinds = FAULT_POINTS[name]
        if not kinds or not choices.seldom(habit.fault_rate):
            return NO_FAULTS
        count = choices.choice((1, 1, 1, 2, 2, 3))
        first = choices.choice(kinds if choices.seldom(0.1) else forward(name))
        # What undoes much is made of many kinds, and each would be met too rarely.
        later = UNDOING.get(name, kinds) if self._sharing is not None else kinds
        others = [choices.choice(later) for _ in range(count - 1)]
        if Kind.QUERY in others and name != "reclaim":  # nobody asks unless one of these failed
            first = choices.choice([kind for kind in (Kind.MAP, Kind.UNMAP) if kind in kinds])
        return FaultPlan(tuple(self._fault(kind, habit) for kind in (first, *others)))

    def _fault(self, kind: Kind, habit: Habit) -> FaultSpec:
        choices = self._choices
        sticky = choices.seldom(habit.sticky_rate)
        manner, code = choices.choice((STICKY_PAIRS if sticky else INJECTABLE)[kind])
        return FaultSpec(
            step=kind,
            manner=manner,
            code=code,
            nth=1 if kind is Kind.ADDRESS_RESERVE else choices.choice((1, 1, 1, 1, 2, 2, 3, 4)),
            part=choices.randint(0, 3) if manner is Manner.IN_PART else 0,
            lasting=choices.seldom(0.2),
        )


# --- limits -------------------------------------------------------------------------------------


def bounded(sequence: Sequence, most: int | None) -> Sequence:
    """The same with no limit above ``most`` granules, the first or one that is set later."""
    if most is None:
        return sequence
    world, unit = sequence.world, sequence.world.settings.granularity_bytes
    limit = min(world.limit, most)
    capacity = max(1, limit + world.capacity - world.limit)
    steps = tuple(_bounded_step(step, most * unit) for step in sequence.steps)
    return Sequence(evolve(world, limit=limit, capacity=capacity), steps)


def _bounded_step(step: Step, most_bytes: int) -> Step:
    match step.operation:
        case SetLimit(int() as size) if most_bytes < size <= MAX_BYTES:
            return evolve(step, operation=SetLimit(most_bytes))
        case _:
            return step
