"""A script walked by hand: forth, back, to a step, with a drawing of what is held."""

import sys
from collections.abc import Callable, Iterator

import click

from kvvmm_cuda.cli.drawing import state_text
from kvvmm_cuda.cli.lab import Lab, Told
from kvvmm_cuda.cli.printing import say
from kvvmm_cuda.cli.telling import drawn, tell
from kvvmm_model.language import Script, show_step, show_world
from kvvmm_model.sequence import World

__all__ = ["Walk", "walk"]

HELP = "n(ext), b(ack), g(oto) N, l(ist), s(tate), q(uit); an empty line is n"


class Walk:
    """Where somebody stands in a script; going back runs it again from the start."""

    def __init__(self, opened: Callable[[], Lab]) -> None:
        self._opened = opened
        self._start()

    def _start(self) -> None:
        self._lab = self._opened()
        self._steps: Iterator[Told] = self._lab.steps()
        self.here: Told | None = None

    @property
    def script(self) -> Script:
        """What is walked."""
        return self._lab.script

    def leave(self) -> None:
        """Give back what is held."""
        self._lab.__exit__(None, None, None)

    @property
    def world(self) -> World:
        """What the script runs in."""
        return self.script.sequence.world

    @property
    def parted(self) -> bool:
        """Whether manager and model have parted here."""
        return self.here is not None and self.here.divergence is not None

    def next(self) -> bool:
        """One step on; False behind the last."""
        told = next(self._steps, None)
        if told is None:
            return False
        self.here = told
        return True

    def back(self) -> bool:
        """One step back; False before the first."""
        number = 0 if self.here is None else self.here.number
        _ = self.goto(number - 1)
        return number > 0

    def goto(self, number: int) -> bool:
        """To a step, or the last there is before it; -1 is before the first."""
        if self.here is not None and number < self.here.number:
            self.leave()
            self._start()
        while self.here is None or self.here.number < number:
            if number < 0 or not self.next():
                break
        reached = -1 if self.here is None else self.here.number
        return reached == number


def walk(it: Walk, finding: str = "") -> bool:
    """Ask where to go until there is an end; whether manager and model never parted."""
    say("\n".join(filter(None, [show_world(it.world), finding, HELP])))
    same = True
    try:
        for line in _lines():
            if not _obey(it, line):
                break
            same = same and not it.parted
    finally:
        it.leave()
    return same


def _lines() -> Iterator[str]:
    while True:
        try:
            yield str(click.prompt("kvvmm", default="n", show_default=False))
        except click.Abort:  # the input ends, or Ctrl-C
            return


def _obey(it: Walk, line: str) -> bool:
    """Do what was asked; False to leave."""
    word, _, rest = line.strip().partition(" ")
    match word[:1]:
        case "q":
            return False
        case "n":
            _show(it, there=it.next(), otherwise="that was the last step")
        case "b":
            _show(it, there=it.back(), otherwise="before the first step")
        case "g" if (rest or word[1:]).strip().isdigit():
            there = it.goto(int((rest or word[1:]).strip()))
            _show(it, there=there, otherwise="there is no such step; this is the last")
        case "l":
            say("\n".join(_listed(it)))
        case "s":
            say(state_text(None if it.here is None else it.here.after, it.world))
        case _:
            say(HELP)
    return True


def _show(it: Walk, *, there: bool, otherwise: str) -> None:
    if not there:
        say(otherwise)
    elif it.here is not None:
        say(drawn(tell(it.here), coloured=sys.stdout.isatty()))


def _listed(it: Walk) -> Iterator[str]:
    """All steps, with a mark where one stands."""
    here = -1 if it.here is None else it.here.number
    steps = it.script.sequence.steps
    unit = it.world.settings.granularity_bytes
    for number, step in enumerate(steps):
        yield f"{'>' if number == here else ' '} {number:<3}{show_step(step, unit)}"
    if here >= len(steps):
        yield f"> {here:<3}(clearing up)"
