"""The worker process: does one job that may cost it its life, and tells its parent.

Started as ``python -m kvvmm_cuda.cli.worker N``, where N is a socket to the parent.
"""

import ctypes
import faulthandler
import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from attrs import evolve

from kvvmm_cuda.cli.choosing import Chosen, choose
from kvvmm_cuda.cli.naming import NotFound, named
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_model.conformance.canary import canaries
from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.losing import gone, lost_by_itself, says_nothing
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.conformance.run import run
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.witness import Witness
from kvvmm_model.conformance.worker_job import (
    Begun,
    Counted,
    Declined,
    Failing,
    Job,
    Place,
    Searching,
    Spell,
    Trials,
    Tried,
)
from kvvmm_model.conformance.worker_journal import Journal
from kvvmm_model.conformance.worker_process import FAULTS
from kvvmm_model.conformance.worker_watched import watched
from kvvmm_model.sequence import Sequence, World

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Do the job that comes over the socket."""
    number = int(arguments[0])
    os.set_inheritable(number, False)  # what a subject starts shall not hold it open
    connection: Connection[object, object] = Connection(number)
    _die_with_the_parent()
    _ = signal.signal(signal.SIGINT, signal.default_int_handler)
    job = connection.recv()
    assert isinstance(job, Job)
    directory = Path(job.directory)
    # Hypothesis would leave a directory where the command is run.
    _ = os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", job.directory)
    with (directory / FAULTS).open("w", encoding="utf-8") as stack:
        faulthandler.enable(stack)
        faulthandler.register(signal.SIGUSR1, stack)
        try:
            _do(job.task, connection, directory)
        finally:
            faulthandler.unregister(signal.SIGUSR1)
            faulthandler.disable()


def _die_with_the_parent() -> None:
    """Where the system can do it: a parent that is killed can end nothing itself."""
    with suppress(OSError, AttributeError):
        _ = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _do(task: Spell | Trials, connection: "Connection[object, object]", directory: Path) -> None:
    place = task.place
    try:
        subject: MakeSubject = named(place.subject)
        chosen = choose("sim" if place.planted else place.driver, place.device)
    except (NotFound, DriverUnavailable) as error:
        connection.send(Declined(str(error)))
        return
    reporter = _Reporter(connection, Journal(directory))
    connection.send(Begun(chosen.granularity_bytes))
    if isinstance(task, Spell):
        _spell(task, subject, chosen, reporter)
        return
    for sequence in task.sequences:
        tried = _try(sequence, _planted(subject, place), chosen, reporter)
        connection.send(tried)
        if tried.lost:
            return


# --- a campaign ---------------------------------------------------------------------------------


class _Reporter(Witness):
    """Writes the journal, and tells the parent what has ended."""

    def __init__(self, connection: "Connection[object, object]", journal: Journal) -> None:
        self.connection = connection
        self._journal = journal
        self._canary = ""
        self._number = 0

    def subject(self, make: MakeSubject) -> MakeSubject:
        return watched(make, self._journal)

    def planted(self, canary: str) -> None:
        self._canary = canary
        self.connection.send(Searching(bool(canary)))

    def numbered(self, number: int) -> None:
        self._number = number

    def opened(self, world: World) -> None:
        self._journal.sequence(world, self._number, self._canary)

    def found(self, sequence: Sequence, divergence: Divergence) -> None:
        if not self._canary:
            self.connection.send(Failing(sequence, divergence))

    def ended(self, reached: Reached, comparison: Comparison, seconds: float) -> None:
        if not self._canary:
            self.connection.send(Counted(reached, comparison.recording.durations, seconds))


def _spell(spell: Spell, subject: MakeSubject, chosen: Chosen, reporter: _Reporter) -> None:
    # Trials do without this import: it brings Hypothesis, which takes longer than they do.
    from kvvmm_model.conformance.campaign import campaign  # noqa: PLC0415
    from kvvmm_model.conformance.results import Plan, Timings  # noqa: PLC0415

    plan = Plan(
        subject,
        chosen.open_driver,
        chosen.granularity_bytes,
        spell.seed,
        faults=spell.faults,
        seconds=spell.seconds,
        count=spell.count,
        most=spell.most,
        skip=spell.skip,
        canary_caught=spell.canary_caught,
        witness=reporter,
    )
    if spell.canary_caught:
        reporter.planted("")
    result = campaign(spell.form, plan)
    # The parent has counted the durations as they came.
    reporter.connection.send(evolve(result, timings=Timings()))


# --- single sequences ---------------------------------------------------------------------------


def _planted(subject: MakeSubject, place: Place) -> MakeSubject:
    """The subject with the planted bug that it had."""
    found = [canary for canary in canaries(faults=True) if canary.name == place.planted]
    return found[0].plant(subject) if found else subject


def _try(sequence: Sequence, make: MakeSubject, chosen: Chosen, reporter: _Reporter) -> Tried:
    lost = False

    def note(seen: Seen) -> None:
        nonlocal lost
        lost = lost or lost_by_itself(seen)

    reporter.opened(sequence.world)
    driver = chosen.open_driver(sequence.world)
    comparison = Comparison(reporter.subject(make), driver, sequence.world)
    try:
        run(comparison, sequence, note)
    except Divergence as divergence:
        lost = lost or gone(driver)
        return Tried(None if lost and says_nothing(divergence) else divergence, lost)
    return Tried(None, lost)


if __name__ == "__main__":
    main(sys.argv[1:])
