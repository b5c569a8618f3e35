"""Run a sequence on a manager and the model; cut a failing one short."""

from collections.abc import Callable

from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.sequence import Sequence, Step, World
from kvvmm_model.vocabulary import Driver

OpenDriver = Callable[[World], Driver]
"""Gives the driver for one sequence: a fresh simulated one, or the one there is."""

Note = Callable[[Seen], None]
"""Told of every step."""

AFTER_LOSS = 3
"""Steps that are still tried on a lost device, to see them refused."""


def simulated(world: World) -> Driver:
    """A fresh simulated driver of the world's size."""
    unit = world.settings.granularity_bytes
    return DriverModel(granularity_bytes=unit, capacity_bytes=world.capacity * unit)


def ignore(seen: Seen) -> None:
    """Take no note."""


def run(comparison: Comparison, sequence: Sequence, note: Note = ignore) -> None:
    """All steps, then the end; raises ``Divergence``.  The driver is left as it was found."""
    try:
        after_loss = 0
        for step in sequence.steps:
            note(comparison.step(step))
            after_loss += bool(comparison.state.lost)
            if after_loss > AFTER_LOSS:
                break
        for seen in comparison.end():
            note(seen)
    except BaseException:
        _ = comparison.faulting.tear_down()  # what the finding left behind is nobody's any more
        raise


def fails(make: MakeSubject, open_driver: OpenDriver, sequence: Sequence) -> Divergence | None:
    """The divergence that a sequence shows, if any."""
    try:
        run(Comparison(make, open_driver(sequence.world), sequence.world), sequence)
    except Divergence as divergence:
        return divergence
    return None


def shortest(
    make: MakeSubject, open_driver: OpenDriver, sequence: Sequence, *, trials: int = 2000
) -> tuple[Sequence, Divergence]:
    """A sequence from which nothing can be left out without losing the divergence.

    Delta debugging over steps, then over planned faults.  ``trials`` bounds the runs.  The
    divergence of the result is of the same kind as the first.
    """
    first = fails(make, open_driver, sequence)
    if first is None:
        raise ValueError("the sequence does not fail again: the subject depends on more than it")
    best = first

    def still_fails(candidate: Sequence) -> bool:
        nonlocal trials, best
        if trials <= 0:
            return False
        trials -= 1
        found = fails(make, open_driver, candidate)
        if found is None or found.kind != best.kind:
            return False
        best = found
        return True

    steps = sequence.steps[: first.number + 1]
    if not still_fails(Sequence(sequence.world, steps)):
        steps = sequence.steps  # seen only at the end
    steps = _without_steps(sequence.world, steps, still_fails)
    steps = _without_faults(sequence.world, steps, still_fails)
    return Sequence(sequence.world, steps), best


Check = Callable[[Sequence], bool]


def _without_steps(world: World, steps: tuple[Step, ...], check: Check) -> tuple[Step, ...]:
    """Leave out chunks, halving their size, until no single step can go."""
    size = max(1, len(steps) // 2)
    while True:
        at, shrunk = 0, False
        while at < len(steps):
            candidate = steps[:at] + steps[at + size :]
            if candidate and check(Sequence(world, candidate)):
                steps, shrunk = candidate, True
            else:
                at += size
        if size == 1 and not shrunk:
            return steps
        size = max(1, size // 2)


def _without_faults(world: World, steps: tuple[Step, ...], check: Check) -> tuple[Step, ...]:
    """Leave out planned faults one at a time."""
    for number, step in enumerate(steps):
        for spec in step.faults.specs:
            kept = tuple(other for other in steps[number].faults.specs if other is not spec)
            changed = Step(step.operation, type(step.faults)(kept))
            candidate = (*steps[:number], changed, *steps[number + 1 :])
            if check(Sequence(world, candidate)):
                steps = candidate
    return steps
