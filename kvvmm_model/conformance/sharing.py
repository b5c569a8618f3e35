"""Operations on shared memory, made up where the model says that there is some."""

from kvvmm_model.conformance.choices import Choices, Part
from kvvmm_model.conformance.guesses import Foreseen
from kvvmm_model.conformance.ingredients import BAD, SHARING, Habit
from kvvmm_model.conformance.shared_memory import SharedMemory
from kvvmm_model.conformance.situations import PlanFor
from kvvmm_model.machine import Attach, Fork, Operation, Publish, Retire, Seal
from kvvmm_model.sequence import Step

GROUPS = (1, 1, 1, 1, 1, 1, 2, 2, 3, 0)
"""How many are attached or forked at once."""


class Sharing:
    """Draws them; mostly such as can be carried out, now and then any."""

    def __init__(self, choices: Choices, unit: int, foreseen: Foreseen) -> None:
        self._choices = choices
        self._unit = unit
        self._foreseen = foreseen

    def passage(self, plan: PlanFor, *, faults: bool) -> list[Step]:
        """Several steps that belong together."""
        memory = SharedMemory(self._choices, self._unit, plan, faults=faults)
        return memory.draw(self._foreseen.issued + 1, self._foreseen.published + 1)

    def towards(self, name: str) -> str:
        """The operation, or one that comes before it where there is nothing to do it with."""
        if name not in SHARING or self._choices.seldom(0.1):
            return name
        sealed = self._foreseen.prefixes(sealed=True)
        unsealed = self._foreseen.prefixes(sealed=False)
        if name in ("attach", "fork") and not sealed:
            name = "seal"
        if (name == "seal" and not unsealed) or (name == "retire" and not (sealed or unsealed)):
            name = "publish"
        return "commit" if name == "publish" and not self._foreseen.ends() else name

    def operation(self, name: str, habit: Habit) -> Operation:
        """An operation of that name."""
        choices = self._choices
        match name:
            case "publish":
                return self._publish(habit)
            case "seal":
                return Seal(self._prefix(habit, sealed=choices.seldom(0.1)))
            case "attach":
                return Attach(tuple(self._target(habit) for _ in range(choices.choice(GROUPS))))
            case "retire":
                return Retire(self._prefix(habit, sealed=choices.usually(0.8)))
            case _:
                return Fork(tuple(self._parent(habit) for _ in range(choices.choice(GROUPS))))

    def _publish(self, habit: Habit) -> Operation:
        """Mostly what ends with one of the handles that a reservation begins with."""
        able = self._foreseen.ends()
        if not able or not self._choices.usually(0.85):
            return Publish(self._any_reservation(habit), self._length(habit))
        serial = self._choices.choice(tuple(able))
        size = self._choices.choice(able[serial]) * self._unit
        return Publish(serial, size + self._choices.seldom(0.1) * (self._unit // 2))

    def _prefix(self, habit: Habit, *, sealed: bool) -> object:
        choices = self._choices
        fitting = self._foreseen.prefixes(sealed=sealed)
        if fitting and choices.usually(0.9):
            return choices.choice(fitting).serial
        return self._some(choices.randint(0, 1 + self._foreseen.published), habit)

    def _target(self, habit: Habit) -> tuple[object, object, object]:
        """A sealed prefix, mostly where there is room for it."""
        choices = self._choices
        prefix = self._prefix(habit, sealed=choices.usually(0.95))
        rooms = self._rooms(prefix) if choices.usually(0.85) else []
        if rooms:
            serial, window = choices.choice(rooms)
            return serial, prefix, window * self._unit
        window = choices.randrange(habit.longest)
        offset = window * self._unit + choices.seldom(0.1)
        return self._any_reservation(habit), prefix, self._some(offset, habit)

    def _rooms(self, prefix: object) -> list[tuple[int, int]]:
        """Reservations and windows where a prefix fits; those at the begin come first."""
        state = self._foreseen.state
        live = state.live_prefix(prefix)
        size = state.size_of(live) if live is not None else 1
        rooms = [
            (found.serial, window)
            for serial in self._foreseen.backed
            for found in (state.reservations[serial],)
            for window in sorted({0, *(mapping.end for mapping in found.mappings)})
            if window + size <= found.size
            and not any(m.window < window + size and window < m.end for m in found.mappings)
        ]
        return sorted(rooms, key=lambda room: room[1])

    def _parent(self, habit: Habit) -> tuple[object, object]:
        """A reservation that begins with sealed memory, and a length of any number of bytes."""
        choices = self._choices
        readable, ends = self._foreseen.readable(), self._foreseen.ends()
        able = tuple(readable) or tuple(ends)
        if not able or not choices.usually(0.9):
            return self._any_reservation(habit), self._length(habit)
        serial = choices.choice(able)
        shared = choices.choice((0, *readable.get(serial, [])))
        following = next((end for end in ends[serial] if end > shared), shared)
        if shared and (following == shared or choices.usually(0.3)):
            return serial, shared * self._unit
        beyond = choices.randint(1, (following - shared) * self._unit - 1)
        return serial, shared * self._unit + beyond

    def _any_reservation(self, habit: Habit) -> object:
        choices, opened = self._choices, tuple(self._foreseen.backed)
        if opened and choices.usually(0.9):
            return choices.choice(opened)
        return self._some(choices.randint(0, 1 + self._foreseen.issued), habit)

    def _length(self, habit: Habit) -> object:
        """From the begin of a reservation: mostly whole windows."""
        choices = self._choices
        choices.turn(Part.AMOUNT)
        whole = choices.randint(1, habit.longest) * self._unit
        return self._some(whole - choices.seldom(0.2) * choices.randrange(self._unit), habit)

    def _some(self, good: object, habit: Habit) -> object:
        choices = self._choices
        return choices.choice(BAD) if choices.seldom(habit.bad_rate) else good
