"""``kvvmm try``: a script on manager and model side by side, told as it goes."""

import json
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import click
from attrs import evolve, frozen

from kvvmm_cuda.cli.choosing import Chosen, choose
from kvvmm_cuda.cli.differing import changes, ledger_changes, left
from kvvmm_cuda.cli.lab import Lab, Told
from kvvmm_cuda.cli.naming import NotFound, named
from kvvmm_cuda.cli.printing import say
from kvvmm_cuda.cli.telling import Line, drawn, outcome_words, statement, tell, unmet_words
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.selection import NAMES
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.language import LanguageError, Script, parse, show_world
from kvvmm_model.language.parsing import USUAL
from kvvmm_model.sequence import World
from kvvmm_model.trace import with_retries

__all__ = ["BACKEND", "attempt", "chosen_driver", "chosen_subject", "fits", "opened", "told_text"]

BACKEND = "kvvmm_cuda.subject:Backend"
"""The manager that is compared unless another is named."""

VERSION = 1


class BadScript(click.ClickException):
    """The script says nothing that can be run."""

    exit_code = 2


# --- what the options mean ----------------------------------------------------------------------


def chosen_driver(name: str, device: int) -> Chosen:
    """The driver, or a mistake of usage."""
    try:
        return choose(name, device)
    except (DriverUnavailable, NotFound) as error:
        raise click.UsageError(f"--driver {name}: {error}") from error


def chosen_subject(path: str) -> MakeSubject:
    """The manager to compare, or a mistake of usage."""
    try:
        found: MakeSubject = named(path)
    except NotFound as error:
        raise click.UsageError(f"--subject {path}: {error}") from error
    return found


def fits(world: World, chosen: Chosen) -> None:
    """A device has its own granularity; the simulated driver takes any."""
    unit = world.settings.granularity_bytes
    if chosen.device is not None and unit != chosen.granularity_bytes:
        raise click.UsageError(
            f"this has granules of {unit} bytes, the device of {chosen.granularity_bytes};"
            " use --driver sim"
        )


def _script(text: str, chosen: Chosen) -> Script:
    settings = evolve(USUAL.settings, granularity_bytes=chosen.granularity_bytes)
    try:
        script = parse(text, evolve(USUAL, settings=settings))
    except LanguageError as error:
        raise BadScript(str(error)) from error
    if not script.sequence.steps:
        raise BadScript("the script has no operation: give one, as in kvvmm try 'reserve 4'")
    fits(script.sequence.world, chosen)
    return evolve(script, sequence=with_retries(script.sequence))


def _text(given: str | None, file: Path | None) -> str:
    if file is None:
        if given is None:
            raise click.UsageError("give a script, or a file with -f, or - for standard input")
        return sys.stdin.read() if given == "-" else given
    if given is not None:
        raise click.UsageError("a script and a file are two: give one of them")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadScript(f"{file}: {error}") from error


def opened(script: Script, make: MakeSubject, chosen: Chosen) -> Lab:
    """A lab for the script, or a mistake in its world: not every number is a granularity."""
    try:
        return Lab(script, make, chosen.open_driver)
    except ValueError as error:
        raise BadScript(f"this world cannot be: {error}") from error


# --- what came out ------------------------------------------------------------------------------


@frozen
class Tried:
    """A script and all that it did."""

    script: Script
    steps: tuple[Told, ...]

    @property
    def shown(self) -> tuple[Told, ...]:
        """The script's own steps; of the clearing up, only what went wrong."""
        return tuple(told for told in self.steps if not told.to_end or not told.fine)

    @property
    def fine(self) -> bool:
        """Whether both sides agree and everything expected holds."""
        return all(told.fine for told in self.steps)

    @property
    def parted(self) -> bool:
        """Whether they do not."""
        return self.steps[-1].divergence is not None

    @property
    def asked(self) -> tuple[int, int]:
        """How many expectations hold, and how many there are."""
        answers = [each.problem is None for told in self.steps for each in told.asked]
        return sum(answers), len(answers)


def tried(script: Script, make: MakeSubject, chosen: Chosen) -> Tried:
    """Run it."""
    with opened(script, make, chosen) as lab:
        return Tried(script, tuple(lab.steps()))


def told_text(what: Tried, *, coloured: bool) -> str:
    """Everything, for people."""
    lines = [line for told in what.shown for line in tell(told)]
    return drawn([*lines, *_verdict(what)], coloured=coloured)


def _verdict(what: Tried) -> Iterable[Line]:
    holds, asked = what.asked
    if not what.parted:
        yield Line("end", f"closed, trimmed, reclaimed: {left(what.steps[-1].after)}")
    found = "manager and model part" if what.parted else "manager and model agree"
    wanted = f"; {holds} of {asked} expectations hold" if asked else ""
    yield Line("verdict", found + wanted, "bold green" if what.fine else "bold red")


def as_json(what: Tried, driver: str) -> dict[str, object]:
    """Everything, for programs; numbers are granules."""
    return {
        "kvvmm_try": VERSION,
        "driver": driver,
        "world": show_world(what.script.sequence.world),
        "steps": [_step_json(told) for told in what.steps],
        "left": None if what.parted else left(what.steps[-1].after),
        "agree": not what.parted,
        "fine": what.fine,
    }


def _step_json(told: Told) -> dict[str, object]:
    outcome, divergence = told.outcome, told.divergence
    return {
        "number": told.number,
        "clearing_up": told.to_end,
        "statement": "; ".join(statement(told)),
        "calls": [
            {"call": made.line, "planned": None if made.fault is None else made.fault.manner.value}
            for made in told.calls
        ],
        "outcome": None if outcome is None else type(outcome).__name__.lower(),
        "words": outcome_words(told),
        "changes": changes(told.before, told.after),
        "ledger": {
            name: list(both)
            for name, both in ledger_changes(told.before.ledger, told.after.ledger).items()
        },
        "unmet": [unmet_words(spec, told) for spec in told.unmet],
        "expected": [{"text": each.text, "problem": each.problem} for each in told.asked],
        "parted": None
        if divergence is None
        else {"kind": divergence.kind, "detail": divergence.detail},
    }


# --- the command --------------------------------------------------------------------------------


@click.command("try")
@click.argument("script", required=False)
@click.option(
    "-f",
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The script is in a file.",
)
@click.option("--driver", default="sim", show_default=True, help=f"One of {', '.join(NAMES)}.")
@click.option("--device", type=click.IntRange(0), default=0, help="Number of the CUDA device.")
@click.option("--subject", default=BACKEND, show_default=True, help="The manager to compare.")
@click.option("--json", "as_data", is_flag=True, help="The same as data.")
def attempt(
    script: str | None, file: Path | None, driver: str, device: int, subject: str, as_data: bool
) -> None:
    """Run a script on manager and model, and tell each step.

    SCRIPT is operations, planned faults and expectations, as
    'reserve 4; fault unmap; commit 0..4; expect done'; a single - reads it from standard input.
    Exit code 0: both agree and all expectations hold; 1: not so; 2: the script is no script.
    """
    make, text = chosen_subject(subject), _text(script, file)
    with closing(chosen_driver(driver, device)) as chosen:
        read = _script(text, chosen)
        if driver != "sim" and not as_data:
            say(f"driver: {chosen.name}: {chosen.why}")
        what = tried(read, make, chosen)
    if as_data:
        say(json.dumps(as_json(what, chosen.name), indent=1))
    else:
        say(told_text(what, coloured=sys.stdout.isatty()))
    click.get_current_context().exit(0 if what.fine else 1)
