"""What should be there by now, for whoever makes a sequence up: no answer is known in advance.

A wrong guess costs a step that is refused, which is worth seeing as well.
"""

from typing import Protocol

from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver
from kvvmm_model.machine import Close, Commit, Reserve, apply
from kvvmm_model.sequence import Step, World
from kvvmm_model.state import Prefix, initial
from kvvmm_model.vocabulary import Standing

Span = tuple[object, object]
"""Offset and size, in bytes."""


class Guesses(Protocol):
    """What should be there."""

    @property
    def issued(self) -> int:
        """The last serial of a reservation."""
        ...

    @property
    def backed(self) -> dict[int, list[Span]]:
        """By open reservation, what was committed in it."""
        ...

    def follow(self, step: Step) -> None:
        """What changes with a step."""
        ...


class Hopeful:
    """Takes every operation without a fault to do what it says, and remembers little."""

    def __init__(self, refused: tuple[object, ...]) -> None:
        """Nothing is there; ``refused``: arguments that no operation takes."""
        self._refused = refused
        self.issued = 0
        self.backed: dict[int, list[Span]] = {}

    def follow(self, step: Step) -> None:
        """What changes if the step does what it says."""
        match step.operation:
            case Reserve(size, alignment) if not step.faults.specs:
                if size not in self._refused and alignment not in self._refused[3:]:
                    self.issued += 1
                    self.backed[self.issued] = []
            case Commit(int() as serial, offset, size) if serial in self.backed:
                self.backed[serial].append((offset, size))
            case Close(int() as serial):
                _ = self.backed.pop(serial, None)
            case _:
                pass


class Foreseen:
    """Lets the model go ahead, alone: right wherever the manager and the driver behave.

    It takes a good part of the time of a comparison, and leads to what needs many steps that fit.
    """

    def __init__(self, world: World) -> None:
        """Nothing is there."""
        unit = world.settings.granularity_bytes
        self._driver = FaultingDriver(
            DriverModel(granularity_bytes=unit, capacity_bytes=world.capacity * unit)
        )
        self.state = initial(world.settings, world.limit)

    def follow(self, step: Step) -> None:
        """What the model says to the step."""
        self._driver.arm(step.faults)
        self.state = apply(self.state, step.operation, self._driver).state

    @property
    def issued(self) -> int:
        """The last serial of a reservation."""
        return self.state.next_reservation - 1

    @property
    def published(self) -> int:
        """The last serial of a prefix."""
        return self.state.next_prefix - 1

    @property
    def backed(self) -> dict[int, list[Span]]:
        """By open reservation, what is committed in it."""
        state = self.state
        return {
            found.serial: [(state.bytes(m.window), state.bytes(m.size)) for m in found.mappings]
            for found in state.reservations.values()
            if found.standing is Standing.OPEN
        }

    def prefixes(self, *, sealed: bool) -> list[Prefix]:
        """The live prefixes that are sealed, or are not."""
        return [prefix for prefix in self.state.prefixes.values() if prefix.sealed is sealed]

    def ends(self) -> dict[int, list[int]]:
        """By open reservation, behind which windows a handle ends, up to the first hole."""
        found: dict[int, list[int]] = {}
        for reservation in self.state.reservations.values():
            ends: list[int] = []
            for mapping in reservation.mappings:
                if mapping.window != (ends[-1] if ends else 0):
                    break
                ends.append(mapping.end)
            if ends and reservation.standing is Standing.OPEN:
                found[reservation.serial] = ends
        return found

    def readable(self) -> dict[int, list[int]]:
        """As ``ends``, of what is sealed; reservations without any are left out."""
        reservations = self.state.reservations
        found: dict[int, list[int]] = {}
        for serial, ends in self.ends().items():
            mappings = reservations[serial].mappings[: len(ends)]
            first = next((n for n, m in enumerate(mappings) if not m.sealed), len(ends))
            if first:
                found[serial] = ends[:first]
        return found
