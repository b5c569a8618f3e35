"""A campaign whose subject may take its process with it: workers, one after the other.

A worker runs the campaign as it would run in this process.  When it dies, hangs or loses the
device, the next one goes on with the next number of the seed, so that a seed stands for the same
sequences with any number of workers.
"""

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any

from attrs import define, evolve, field

from kvvmm_model.conformance.campaign import canary_of
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.conformance.results import Finding, Progress, Result, silent
from kvvmm_model.conformance.stopping import Interrupts
from kvvmm_model.conformance.worker_job import Counted, Declined, Failing, Searching, Spell
from kvvmm_model.conformance.worker_journal import Interrupted
from kvvmm_model.conformance.worker_launch import Launch, Launched, WorkerDeclined
from kvvmm_model.conformance.worker_process import Death
from kvvmm_model.conformance.worker_shortening import Shortened, shortened
from kvvmm_model.machine import name_of
from kvvmm_model.sequence import Sequence

__all__ = ["Casualties", "Casualty", "supervised"]


@define
class Casualty:
    """A worker that died or hung, and the sequence that it was in, if it was in one.

    ``stack``: what the worker wrote about where it was.  ``short``: the sequence cut down, if that
    was tried.
    """

    death: Death
    found: Interrupted | None
    stack: str = ""
    short: Shortened | None = None

    @property
    def sequence(self) -> Sequence | None:
        """As short as it could be made."""
        if self.short is not None:
            return self.short.sequence
        return None if self.found is None else self.found.sequence

    @property
    def words(self) -> str:
        """How it ended, and in which driver call."""
        return _how(self.death, self.found)


@define
class Casualties:
    """What happened to the workers of a run.

    ``gave_up``: more of them ended early than may be replaced, and so did the run.
    """

    restarts: int = 0
    contexts_lost: int = 0
    ended: list[Casualty] = field(factory=list[Casualty])
    gave_up: bool = False

    @property
    def hung(self) -> int:
        """How many were killed because nothing went on."""
        return sum(each.death.hung for each in self.ended)

    @property
    def died(self) -> int:
        """How many ended by themselves, by a signal or with an exit code."""
        return len(self.ended) - self.hung


Told = Callable[[str], None]
"""Told in words when a worker has ended early, and what is done next."""


def supervised(
    spell: Spell, launch: Launch, progress: Progress = silent, told: Told = lambda _: None
) -> tuple[Result, Casualties]:
    """The campaign, in workers; then what killed them is cut down.

    Raises:
        WorkerDeclined: no worker can do it, as where there is no such driver.
    """
    run = _Run(spell, launch, progress, told)
    with run.interrupts.heeded():
        try:
            run.go()
            run.shorten()
        except KeyboardInterrupt:
            run.interrupts.asked = True
    return run.ended(), run.casualties


class _Run:
    """The state of a run over all of its workers."""

    def __init__(self, spell: Spell, launch: Launch, progress: Progress, told: Told) -> None:
        self.interrupts = Interrupts()
        self.casualties = Casualties()
        self._spell = spell
        self._launch = launch
        self._progress = progress
        self._told = told
        canary = canary_of(spell.seed, faults=spell.faults)
        self._result = Result(spell.form, spell.seed, spell.faults, canary.name)
        self._before = Reached()  # what workers that are gone have reached
        self._hunting: float | None = None

    # --- workers one after the other ------------------------------------------------------------

    def go(self) -> None:
        """Run workers until one comes to the end, or too many did not."""
        spell = self._spell
        while True:
            launched = self._launch.start(spell)
            with launched:
                lost, ended = self._listen(launched)
                death = launched.death(ended=ended)
                last = launched.last()
                if death is not None:
                    found = launched.interrupted()
                    self.casualties.ended.append(Casualty(death, found, launched.stack()))
                    self._told(f"the worker {_how(death, found)}")
            if death is None and not lost:
                return
            self.casualties.contexts_lost += lost
            again = self._next(spell, last)
            if again is None:
                return
            spell = again

    def _next(self, spell: Spell, last: int | None) -> Spell | None:
        """What is left for one more worker; None if nothing is, or no more may be started."""
        result, reached = self._result, self._result.reached
        self._before = reached
        if self.interrupts.asked or result.finding is not None:
            return None
        if result.canary_caught and not spell.canary_caught:
            spell = evolve(spell, canary_caught=True, skip=0)
        left = evolve(spell, skip=spell.skip if last is None else last + 1)
        if spell.count is not None and self._spell.count is not None:
            left = evolve(left, count=self._spell.count - reached.operations)
        if self._hunting is not None and self._spell.seconds is not None:
            left = evolve(left, seconds=self._spell.seconds - (monotonic() - self._hunting))
        if any(bound is not None and bound <= 0 for bound in (left.count, left.seconds)):
            return None
        if self.casualties.restarts >= self._launch.restarts:
            self.casualties.gave_up = True
            return None
        self.casualties.restarts += 1
        return left

    # --- one worker -----------------------------------------------------------------------------

    def _listen(self, launched: Launched) -> tuple[bool, bool]:
        """Follow a worker: whether it lost the device, and whether it came to its end."""
        asked, lost, ended = False, False, False
        for message in launched.messages():
            if self.interrupts.asked and not asked:
                asked = True
                launched.interrupt()
            match message:
                case Searching(canary):
                    self._search(canary=canary)
                case Counted(reached, durations):
                    self._result.reached = added(self._before, reached)
                    self._result.timings.add(durations)
                    self._tick()
                case Failing(sequence, divergence):
                    self._result.finding = Finding(sequence, divergence)
                case Result():
                    lost, ended = message.lost, True
                    self._take(message)
                case Declined(why):
                    raise WorkerDeclined(why)
                case _:
                    pass
        return lost, ended

    def _search(self, *, canary: bool) -> None:
        self._result.canary_caught = None if canary else True
        if not canary and self._hunting is None:
            self._hunting = monotonic()
        self._progress(self._result)

    def _tick(self) -> None:
        if self._hunting is not None:
            self._result.seconds = monotonic() - self._hunting
        self._progress(self._result)

    def _take(self, given: Result) -> None:
        """What a worker says at its end."""
        result = self._result
        result.canary_caught = given.canary_caught
        result.reached = added(self._before, given.reached)
        result.finding = given.finding
        result.interrupted = given.interrupted
        result.void = "" if given.lost else given.void
        self._tick()

    # --- afterwards -----------------------------------------------------------------------------

    def shorten(self) -> None:
        """Cut down what killed workers: the first of those that look alike."""
        seen: set[tuple[object, ...]] = set()
        for casualty in self.casualties.ended:
            found, death = casualty.found, casualty.death
            if found is None or self.interrupts.asked or not self._launch.trials:
                continue
            looks = (death, found.call, found.planted, name_of(found.sequence.steps[-1].operation))
            if looks in seen:
                continue
            seen.add(looks)
            self._told(f"cutting down the sequence in which it {_how(death, found)}")
            place = evolve(self._spell.place, planted=found.planted)
            casualty.short = shortened(self._launch, place, found.sequence, death, self.interrupts)

    def ended(self) -> Result:
        """The result of all workers together."""
        result = self._result
        result.interrupted = result.interrupted or self.interrupts.asked
        if result.reached.operations and result.void == "nothing ran":
            result.void = ""
        if not result.reached.operations and not result.void:
            result.void = "nothing ran"
        return result


def _how(death: Death, found: Interrupted | None) -> str:
    where = f" in {found.call.value}" if found is not None and found.call is not None else ""
    return ("hung" if death.hung else f"died by {death.how}") + where


def added(one: Reached, other: Reached) -> Reached:
    """The counts of both."""
    total = Reached()
    mine: dict[str, Any] = vars(total)
    for name, value in mine.items():
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(value, Counter):
            mine[name] = Counter(left)
            mine[name].update(right)
        else:
            mine[name] = left + right
    return total
