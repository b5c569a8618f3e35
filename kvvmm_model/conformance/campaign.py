"""Runs of many sequences: how long they go on, what they found, and whether they count.

Three forms: ``soak`` makes sequences from seeds, ``fuzz`` lets Hypothesis draw them step by step,
``batch`` lets it draw bytes that they are read from.  Before a run counts, a bug is planted into
the subject, and the same form has to find it on a simulated driver.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from random import Random
from time import monotonic

from attrs import evolve
from hypothesis.stateful import RuleBasedStateMachine

from kvvmm_model.conformance.batched import batch, explore_batch
from kvvmm_model.conformance.canary import Canary, canaries
from kvvmm_model.conformance.comparison import Comparison, Divergence
from kvvmm_model.conformance.hypothesis_form import explore, machine
from kvvmm_model.conformance.losing import says_nothing
from kvvmm_model.conformance.results import Finding, Plan, Progress, Result, Timings, silent
from kvvmm_model.conformance.run import run, shortest, simulated
from kvvmm_model.conformance.stopping import Interrupts, Stop
from kvvmm_model.conformance.swarm import Swarm, bounded
from kvvmm_model.conformance.watch import Watch

__all__ = [
    "FORMS",
    "Finding",
    "Plan",
    "Progress",
    "Result",
    "Timings",
    "batched",
    "campaign",
    "canary_of",
    "fuzz",
    "soak",
]

CANARY_SEQUENCES = 2_000
"""In so many sequences a planted bug has to be found."""

BATCH = 100
"""Sequences for which Hypothesis gets one seed."""

LONGEST_DRAWN = 50
"""Operations that Hypothesis draws at most for one sequence."""

MOST = 12
"""Granules that Hypothesis draws at most as a limit, unless told to take fewer."""


# --- the forms ----------------------------------------------------------------------------------


def _first(seed: int) -> int:
    """The number of the first sequence: far from those of any other seed."""
    return seed << 32


def _from_seeds(plan: Plan, watch: Watch) -> None:
    number = _first(plan.seed) + plan.skip
    while not watch.over and watch.findings.last is None:
        plan.witness.numbered(number - _first(plan.seed))
        swarm = Swarm(number, granularity_bytes=plan.granularity_bytes, faults=plan.faults)
        sequence = bounded(swarm.sequence(), plan.most)
        driver = watch.open_driver(sequence.world)
        comparison = Comparison(plan.make, driver, sequence.world, timed=True)
        try:
            run(comparison, sequence, watch.note)
        except Divergence as divergence:
            watch.findings.last = (sequence, divergence)
        else:
            watch.ended(comparison)
        number += 1


def _drawn(plan: Plan, watch: Watch) -> None:
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
    number = _first(plan.seed) + plan.skip
    while not watch.over and watch.findings.last is None:
        plan.witness.numbered(number - _first(plan.seed))
        _draw_batch(kind, number, watch)
        number += 1


def _draw_batch(kind: type[RuleBasedStateMachine], number: int, watch: Watch) -> None:
    with _heard(watch):
        explore(kind, number=number, examples=BATCH, steps=LONGEST_DRAWN, shrink=True)


@contextmanager
def _heard(watch: Watch) -> Generator[None]:
    """What Hypothesis raises for a finding is kept in the findings already."""
    try:
        yield
    except Exception:  # a divergence; or a sequence ends otherwise now, as on a lost device
        if watch.findings.last is None and not watch.stopped and not watch.result.lost:
            raise


def _read(plan: Plan, watch: Watch) -> None:
    compare = batch(
        plan.make,
        watch.open_driver,
        plan.granularity_bytes,
        most=plan.most,
        with_faults=plan.faults,
        timed=True,
        note=watch.note,
        ended=watch.ended,
        findings=watch.findings,
    )
    number = _first(plan.seed) + plan.skip
    while not watch.over and watch.findings.last is None:
        plan.witness.numbered(number - _first(plan.seed))
        with _heard(watch):
            explore_batch(compare, number=number, examples=BATCH, shrink=True)
        number += 1


_Form = Callable[[Plan, Watch], None]
FORMS: dict[str, _Form] = {"soak": _from_seeds, "fuzz": _drawn, "batch": _read}


# --- a run --------------------------------------------------------------------------------------


def soak(plan: Plan, progress: Progress = silent) -> Result:
    """Sequences from numbers that belong to the seed, until a bound or a divergence."""
    return campaign("soak", plan, progress)


def fuzz(plan: Plan, progress: Progress = silent) -> Result:
    """Sequences that Hypothesis draws and shortens, in batches with numbers of the seed."""
    return campaign("fuzz", plan, progress)


def batched(plan: Plan, progress: Progress = silent) -> Result:
    """Sequences read from bytes that Hypothesis draws, a whole one from each draw."""
    return campaign("batch", plan, progress)


def canary_of(seed: int, *, faults: bool) -> Canary:
    """The bug that a run with this seed has to find first."""
    return Random(seed).choice(canaries(faults=faults))


def campaign(form: str, plan: Plan, progress: Progress = silent) -> Result:
    """A run of the form of this name, until a bound, a divergence, a lost device or Ctrl-C."""
    canary = canary_of(plan.seed, faults=plan.faults)
    result = Result(form, plan.seed, plan.faults, canary.name)
    interrupts = Interrupts()
    with interrupts.heeded():
        try:
            progress(result)
            result.canary_caught = plan.canary_caught or _caught(form, plan, canary, interrupts)
            if result.canary_caught:
                skip = plan.skip if plan.canary_caught else 0
                watched = evolve(plan, make=plan.witness.subject(plan.make), skip=skip)
                _hunt(watched, Watch(watched, result, interrupts, progress))
        except KeyboardInterrupt:
            interrupts.asked = True
    result.interrupted = interrupts.asked
    result.void = result.void or _why_void(result)
    return result


def _caught(form: str, plan: Plan, canary: Canary, interrupts: Interrupts) -> bool | None:
    """Whether the form finds a planted bug; None if it was not given the time."""
    planted = evolve(
        plan,
        make=plan.witness.subject(canary.plant(plan.make)),
        open_driver=simulated,
        seconds=None,
        count=None,
    )
    unseen = Result(form, plan.seed, plan.faults, "")
    watch = Watch(planted, unseen, interrupts, silent, sequences=CANARY_SEQUENCES, shorten=False)
    plan.witness.planted(canary.name)
    _until_stopped(FORMS[form], planted, watch)
    if watch.findings.last is not None:
        plan.witness.planted("")
        return True
    return None if interrupts.asked else False


def _hunt(plan: Plan, watch: Watch) -> None:
    """The run itself; what it finds stays found, also if shortening it is broken off."""
    result = watch.result
    try:
        _until_stopped(FORMS[result.form], plan, watch)
        result.seconds = monotonic() - watch.started
        if watch.gone():
            if watch.findings.last is not None and says_nothing(watch.findings.last[1]):
                watch.findings.last = None
            result.void = "the device was lost, and no injected fault did that"
        elif watch.findings.last is not None:
            result.reached.sequences += 1  # the one that failed did not come to its end
            _shorten(plan, watch)
    finally:
        if watch.findings.last is not None:
            result.finding = Finding(*watch.findings.last)


def _shorten(plan: Plan, watch: Watch) -> None:
    assert watch.findings.last is not None
    sequence, _ = watch.findings.last
    with suppress(Stop, ValueError):  # broken off, or it does not fail again: it stays as found
        watch.findings.last = shortest(plan.make, watch.open_driver, sequence)


def _until_stopped(form: _Form, plan: Plan, watch: Watch) -> None:
    with suppress(Stop):
        form(plan, watch)


def _why_void(result: Result) -> str:
    if result.canary_caught is False:
        return f"a planted bug was not found in {CANARY_SEQUENCES} sequences: {result.canary}"
    if not result.reached.operations:
        return "nothing ran"
    return ""
