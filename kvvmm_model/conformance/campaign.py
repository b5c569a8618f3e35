"""Runs of many sequences: how long they go on, what they found, and whether they count.

Two forms: ``soak`` makes sequences from seeds, ``fuzz`` lets Hypothesis draw them.  Before either
counts, a bug is planted into the subject, and the same form has to find it on a simulated driver.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from random import Random
from statistics import median
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType

from attrs import define, evolve, field, frozen
from hypothesis.stateful import RuleBasedStateMachine

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.canary import canaries
from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.hypothesis_form import Findings, explore, machine
from kvvmm_model.conformance.reached import Reached, states
from kvvmm_model.conformance.run import OpenDriver, run, shortest, simulated
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.machine import SetLimit
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.sequence import Sequence, Step, World
from kvvmm_model.vocabulary import MAX_BYTES, Driver

CANARY_SEQUENCES = 2_000
"""In so many sequences a planted bug has to be found."""

BATCH = 100
"""Sequences for which Hypothesis gets one seed."""

LONGEST_DRAWN = 50
"""Operations that Hypothesis draws at most for one sequence."""

MOST = 12
"""Granules that Hypothesis draws at most as a limit, unless told to take fewer."""

SAMPLES = 100_000
"""Durations that are kept of each kind of driver call."""


# --- what a run is told and what it answers -----------------------------------------------------


@frozen
class Plan:
    """What to run, on what, and for how long.

    ``seconds`` and ``count`` (of operations) are bounds; the sequence that reaches one is finished.
    ``most``: no limit in any sequence is higher than this, in granules.
    """

    make: MakeSubject
    open_driver: OpenDriver
    granularity_bytes: int
    seed: int
    faults: bool = True
    seconds: float | None = None
    count: int | None = None
    most: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise ValueError(
                f"a limit of less than one granule leaves nothing to run: give at least"
                f" {self.granularity_bytes} bytes"
            )


class Timings:
    """How often each kind of driver call was made, and how long it took.

    Of more than ``SAMPLES`` durations of a kind, so many are kept, each as likely as the others.
    """

    def __init__(self) -> None:
        self.counts: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self._kept: dict[Kind, list[int]] = {kind: [] for kind in Kind}
        self._random = Random(0)

    def add(self, recording: RecordingDriver) -> None:
        """Take the durations of a sequence over."""
        for kind, durations in recording.durations.items():
            for duration in durations:
                self._add(kind, duration)

    def _add(self, kind: Kind, duration: int) -> None:
        kept, count = self._kept[kind], self.counts[kind]
        self.counts[kind] = count + 1
        if count < SAMPLES:
            kept.append(duration)
            return
        place = self._random.randrange(count + 1)
        if place < SAMPLES:
            kept[place] = duration

    def median_ns(self, kind: Kind) -> float | None:
        """The median duration; None where no such call was made."""
        return median(self._kept[kind]) if self._kept[kind] else None


@frozen
class Finding:
    """A sequence that fails, as short as it could be made."""

    sequence: Sequence
    divergence: Divergence


@define
class Result:
    """What a run did and found.

    ``void`` says why it proves nothing, and is empty if it counts.  ``interrupted``: it was asked
    to end early.  The search for the planted bug (``canary``) is not in the counts.
    """

    form: str
    seed: int
    faults: bool
    canary: str
    canary_caught: bool | None = None
    reached: Reached = field(factory=Reached)
    timings: Timings = field(factory=Timings)
    seconds: float = 0.0
    finding: Finding | None = None
    interrupted: bool = False
    void: str = ""

    @property
    def diverged(self) -> int:
        """How many divergences: the first one ends the run."""
        return 0 if self.finding is None else 1

    @property
    def states_possible(self) -> int:
        """How many of the known states a run like this can reach."""
        return len(states(faults=self.faults))

    @property
    def states_reached(self) -> int:
        """How many of those it did."""
        return sum(self.reached.states[name] > 0 for name in states(faults=self.faults))

    @property
    def never(self) -> list[str]:
        """What it could have reached and did not, by name."""
        return self.reached.never(faults=self.faults)


Progress = Callable[[Result], None]
"""Told when the search for the planted bug begins, and after every sequence that counts."""


# --- when to stop -------------------------------------------------------------------------------


class _Stop(BaseException):
    """Between two sequences: no more of them.  No ``Exception``: Hypothesis would keep that."""


class _Interrupts:
    """Ctrl-C asks for the end after the sequence that runs; a second one ends that too."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def heeded(self) -> Generator[None]:
        """Within, a first Ctrl-C is only noted.  Elsewhere than in the main thread: as ever."""
        before = signal.getsignal(signal.SIGINT)
        if current_thread() is not main_thread() or before is not signal.default_int_handler:
            yield  # somebody else has a handler, or wants none
            return
        _ = signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            _ = signal.signal(signal.SIGINT, before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        _ = number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@define
class _Watch:
    """Counts what runs, and says before each sequence whether it still may.

    ``shorten``: whether sequences may go on after a first finding.  ``lost``: the device is, and
    nobody injected it.
    """

    plan: Plan
    result: Result
    interrupts: _Interrupts
    progress: Progress
    sequences: int | None = None
    shorten: bool = True
    findings: Findings = field(factory=Findings)
    lost: bool = False
    stopped: bool = False
    started: float = field(factory=monotonic)

    @property
    def over(self) -> bool:
        """Whether no further sequence should begin."""
        if self.interrupts.asked or self.lost:
            return True
        if self.findings.last is not None:
            return not self.shorten
        plan, reached = self.plan, self.result.reached
        self.result.seconds = monotonic() - self.started
        return (
            (plan.seconds is not None and self.result.seconds >= plan.seconds)
            or (plan.count is not None and reached.operations >= plan.count)
            or (self.sequences is not None and reached.sequences >= self.sequences)
        )

    def open_driver(self, world: World) -> Driver:
        """The driver for one more sequence; all begin here, also those that shorten a finding."""
        if self.over:
            self.stopped = True
            raise _Stop
        return self.plan.open_driver(world)

    def note(self, seen: Seen) -> None:
        """Count a step; what only shortens a finding does not count."""
        if self.findings.last is not None:
            return
        self.result.reached.note(seen)
        lost = seen.transition.state.lost and not seen.before.lost
        if lost and not any(spec.sticky for spec in seen.fired):
            self.lost = True

    def ended(self, comparison: Comparison) -> None:
        """Count a sequence, in the same way."""
        if self.findings.last is not None:
            return
        self.result.reached.sequences += 1
        self.result.timings.add(comparison.recording)
        self.progress(self.result)


# --- the two forms ------------------------------------------------------------------------------


def _first(seed: int) -> int:
    """The number of the first sequence: far from those of any other seed."""
    return seed << 32


def _from_seeds(plan: Plan, watch: _Watch) -> None:
    number = _first(plan.seed)
    while not watch.over and watch.findings.last is None:
        swarm = Swarm(number, granularity_bytes=plan.granularity_bytes, faults=plan.faults)
        sequence = _bounded(swarm.sequence(), plan.most)
        driver = watch.open_driver(sequence.world)
        comparison = Comparison(plan.make, driver, sequence.world, timed=True)
        try:
            run(comparison, sequence, watch.note)
        except Divergence as divergence:
            watch.findings.last = (sequence, divergence)
        else:
            watch.ended(comparison)
        number += 1


def _bounded(sequence: Sequence, most: int | None) -> Sequence:
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


def _drawn(plan: Plan, watch: _Watch) -> None:
    kind = machine(
        plan.make,
        watch.open_driver,
        plan.granularity_bytes,
        most=MOST if plan.most is None else min(MOST, plan.most),
        with_faults=plan.faults,
        timed=True,
        note=watch.note,
        ended=watch.ended,
        findings=watch.findings,
    )
    number = _first(plan.seed)
    while not watch.over and watch.findings.last is None:
        _draw_batch(kind, number, watch)
        number += 1


def _draw_batch(kind: type[RuleBasedStateMachine], number: int, watch: _Watch) -> None:
    try:
        explore(kind, number=number, examples=BATCH, steps=LONGEST_DRAWN, shrink=True)
    except Exception:  # a divergence; or Hypothesis notes that a sequence ends otherwise now
        if watch.findings.last is None and not watch.stopped:
            raise


_Form = Callable[[Plan, _Watch], None]
_FORMS: dict[str, _Form] = {"soak": _from_seeds, "fuzz": _drawn}


# --- a run --------------------------------------------------------------------------------------


def _silent(result: Result) -> None:
    _ = result


def soak(plan: Plan, progress: Progress = _silent) -> Result:
    """Sequences from numbers that belong to the seed, until a bound or a divergence."""
    return _campaign("soak", plan, progress)


def fuzz(plan: Plan, progress: Progress = _silent) -> Result:
    """Sequences that Hypothesis draws and shortens, in batches with numbers of the seed."""
    return _campaign("fuzz", plan, progress)


def _campaign(form: str, plan: Plan, progress: Progress) -> Result:
    canary = Random(plan.seed).choice(canaries(faults=plan.faults))
    result = Result(form, plan.seed, plan.faults, canary.name)
    interrupts = _Interrupts()
    with interrupts.heeded():
        try:
            progress(result)
            planted = evolve(plan, make=canary.plant(plan.make), open_driver=simulated)
            result.canary_caught = _caught(form, planted, interrupts)
            if result.canary_caught:
                _hunt(plan, _Watch(plan, result, interrupts, progress))
        except KeyboardInterrupt:
            interrupts.asked = True
    result.interrupted = interrupts.asked
    result.void = result.void or _why_void(result)
    return result


def _caught(form: str, planted: Plan, interrupts: _Interrupts) -> bool | None:
    """Whether the form finds a planted bug; None if it was not given the time."""
    unbounded = evolve(planted, seconds=None, count=None)
    unseen = Result(form, planted.seed, planted.faults, "")
    watch = _Watch(
        unbounded, unseen, interrupts, _silent, sequences=CANARY_SEQUENCES, shorten=False
    )
    _until_stopped(_FORMS[form], unbounded, watch)
    if watch.findings.last is not None:
        return True
    return None if interrupts.asked else False


def _hunt(plan: Plan, watch: _Watch) -> None:
    """The run itself; what it finds stays found, also if shortening it is broken off."""
    result = watch.result
    try:
        _until_stopped(_FORMS[result.form], plan, watch)
        result.seconds = monotonic() - watch.started
        if watch.findings.last is not None:
            result.reached.sequences += 1  # the one that failed did not come to its end
            _shorten(plan, watch)
        if watch.lost:
            result.void = "the device was lost, and no injected fault did that"
    finally:
        if watch.findings.last is not None:
            result.finding = Finding(*watch.findings.last)


def _shorten(plan: Plan, watch: _Watch) -> None:
    assert watch.findings.last is not None
    sequence, _ = watch.findings.last
    with suppress(_Stop, ValueError):  # broken off, or it does not fail again: it stays as found
        watch.findings.last = shortest(plan.make, watch.open_driver, sequence)


def _until_stopped(form: _Form, plan: Plan, watch: _Watch) -> None:
    with suppress(_Stop):
        form(plan, watch)


def _why_void(result: Result) -> str:
    if result.canary_caught is False:
        return f"a planted bug was not found in {CANARY_SEQUENCES} sequences: {result.canary}"
    if not result.reached.operations:
        return "nothing ran"
    return ""
