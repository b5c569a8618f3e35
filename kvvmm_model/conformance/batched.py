"""The batched form: Hypothesis draws bytes, once, and all of a sequence is read from them.

Drawing rule by rule costs much more than running what was drawn.  Here one draw makes a whole
sequence: a place for the world, then one of the same width for each step.  Zero bytes mean nothing
or the simplest, so that shortening, which turns bytes into zeros, takes steps and faults away and
leaves the others as they are.
"""

from collections.abc import Callable
from itertools import accumulate

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase

from kvvmm_model.conformance.choices import STEP_BYTES, WORLD_BYTES, FromBytes, Part
from kvvmm_model.conformance.comparison import Comparison, Divergence
from kvvmm_model.conformance.hypothesis_form import Findings
from kvvmm_model.conformance.ingredients import Habit
from kvvmm_model.conformance.run import Note, OpenDriver, ignore, run
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.swarm import Maker, bounded
from kvvmm_model.machine import Reserve
from kvvmm_model.sequence import Sequence, Step

LENGTH = 30
"""Steps that are read; what follows a failure comes on top."""

BYTES = WORLD_BYTES + LENGTH * STEP_BYTES
"""How many are drawn."""

PASSAGES = 253
"""From here on, a step's first byte stands for a passage of several steps."""

NEEDS_ONE = ("commit", "release", "close", "publish", "attach", "fork")
"""Operations that show little where no reservation is open."""


# --- bytes as a sequence ------------------------------------------------------------------------


def decode(
    data: bytes, unit: int, *, with_faults: bool = True, most: int | None = None
) -> Sequence:
    """The sequence that bytes stand for.  All bytes stand for one; missing ones are zero.

    ``most``: no limit in it is higher than this, in granules.
    """
    choices = FromBytes(data)
    maker = Maker(choices, unit, faults=with_faults)
    world = maker.world()
    habit = maker.habit(sharing=choices.seldom(0.5))
    bounds = _bounds(habit)
    steps: list[Step] = []
    for number in range(LENGTH):
        first = choices.step(number)
        if first >= PASSAGES:
            choices.turn(Part.PASSAGE)
            steps += maker.passage(habit)
        elif first:
            steps += _read(maker, habit, _name(first, habit, bounds))
    return bounded(Sequence(world, tuple(steps)), most)


def _read(maker: Maker, habit: Habit, name: str) -> list[Step]:
    """A step and what belongs to it: before, the reservations it needs; after, the aftermath."""
    before: list[Step] = []
    if name in NEEDS_ONE and not maker.any_open:
        # Made up for, not put in its place: so it stays itself when a reservation is taken away.
        reserve = Reserve(habit.longest * maker.unit)
        before = [maker.plain(reserve) for _ in range(habit.reservations)]
    return [*before, *maker.steps(maker.towards(name), habit)]


def _bounds(habit: Habit) -> tuple[int, ...]:
    """Where the first bytes of each operation end."""
    total = sum(habit.weights)
    return tuple((PASSAGES - 1) * upto // total for upto in accumulate(habit.weights))


def _name(first: int, habit: Habit, bounds: tuple[int, ...]) -> str:
    """The operation of a first byte that stands for one."""
    return next(name for name, bound in zip(habit.names, bounds, strict=True) if first <= bound)


# --- the comparison over what is drawn ----------------------------------------------------------

Compare = Callable[[bytes], None]
"""Reads a sequence and runs it on both sides; raises ``Divergence``."""


def batch(
    make: MakeSubject,
    open_driver: OpenDriver,
    unit: int,
    *,
    most: int | None = None,
    with_faults: bool = True,
    timed: bool = False,
    note: Note = ignore,
    ended: Callable[[Comparison], None] = lambda _: None,
    findings: Findings | None = None,
) -> Compare:
    """The comparison for a subject, for ``explore_batch``.

    ``most``: granules of memory.  ``ended`` is told of each sequence that ended well.
    """
    kept = findings if findings is not None else Findings()

    def compare(data: bytes) -> None:
        sequence = decode(data, unit, with_faults=with_faults, most=most)
        comparison = Comparison(make, open_driver(sequence.world), sequence.world, timed=timed)
        try:
            run(comparison, sequence, note)
        except Divergence as divergence:
            kept.last = (sequence, divergence)
            raise
        ended(comparison)

    return compare


def explore_batch(
    compare: Compare,
    *,
    number: int,
    examples: int,
    shrink: bool,
    database: ExampleDatabase | None = None,
) -> None:
    """Run it on what Hypothesis draws; the same number, the same sequences.  Raises what it finds.

    With a database, what failed before is tried first, and what fails now is kept there.
    """
    phases = [Phase.reuse] * (database is not None) + [Phase.generate] + [Phase.shrink] * shrink

    @settings(
        max_examples=examples,
        deadline=None,
        database=database,
        derandomize=False,  # by the number, not by the name of a function
        phases=phases,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @seed(number)  # takes the database away, so that the settings have to come after it
    @given(data=st.binary(min_size=BYTES, max_size=BYTES))
    def sequence_shows_no_divergence(data: bytes) -> None:
        compare(data)

    sequence_shows_no_divergence()
