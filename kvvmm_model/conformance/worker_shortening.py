"""Cut down a sequence that kills its process, by delta debugging over worker processes.

One worker tries many candidates, one after the other, until one kills it: only then another
process is needed.  So the price is a process for each cut that succeeds and one for each size of
cut that does not.
"""

from collections.abc import Callable, Iterator

from attrs import evolve, frozen

from kvvmm_model.conformance.stopping import Interrupts
from kvvmm_model.conformance.worker_job import Declined, Place, Trials, Tried
from kvvmm_model.conformance.worker_launch import Launch, WorkerDeclined
from kvvmm_model.conformance.worker_process import Death
from kvvmm_model.faulting import FaultPlan
from kvvmm_model.sequence import Sequence, Step

__all__ = ["Shortened", "outcomes", "shortened"]

_PATIENCE = 10.0
"""A sequence that is cut down ran in less; hung trials should not cost a minute each."""


@frozen
class Shortened:
    """What became of a deadly sequence.

    ``again``: it killed a fresh process as well.  ``processes``: how many were spent.
    """

    sequence: Sequence
    again: bool
    processes: int


class _Spent(Exception):
    """No more processes may be started."""


def outcomes(
    launch: Launch, place: Place, sequences: tuple[Sequence, ...]
) -> tuple[list[Tried], Death | None]:
    """What one worker says of these sequences, as far as it comes; and how it died, if it did."""
    tried: list[Tried] = []
    with launch.start(Trials(place, sequences)) as launched:
        for message in launched.messages():
            if isinstance(message, Declined):
                raise WorkerDeclined(message.why)
            if isinstance(message, Tried):
                tried.append(message)
        ended = len(tried) == len(sequences) or (bool(tried) and tried[-1].lost)
        return tried, launched.death(ended=ended)


def shortened(
    launch: Launch, place: Place, sequence: Sequence, death: Death, interrupts: Interrupts
) -> Shortened:
    """The sequence with everything left out that is not needed to die in the same way."""
    quick = evolve(launch, patience=min(launch.patience, _PATIENCE))
    search = _Search(quick, place, death, interrupts)
    try:
        again = search.first([sequence]) is not None
    except _Spent:
        return Shortened(sequence, again=False, processes=search.processes)
    short = search.cut(sequence) if again else sequence
    return Shortened(short, again, search.processes)


class _Search:
    """Trials with a bounded number of processes."""

    def __init__(self, launch: Launch, place: Place, death: Death, interrupts: Interrupts) -> None:
        self.processes = 0
        self._launch = launch
        self._place = place
        self._death = death
        self._interrupts = interrupts

    def first(self, candidates: list[Sequence]) -> int | None:
        """The number of the first candidate that kills a worker in the same way."""
        at = 0
        while at < len(candidates):
            if self.processes >= self._launch.trials or self._interrupts.asked:
                raise _Spent
            self.processes += 1
            tried, death = outcomes(self._launch, self._place, tuple(candidates[at:]))
            at += len(tried)
            if death is None:
                continue  # all were tried, or the device was lost: the rest needs another worker
            if death == self._death and at < len(candidates):
                return at
            at += 1
        return None

    def cut(self, sequence: Sequence) -> Sequence:
        """Without steps and faults that it does not need; as far as the processes reach."""
        best = self._cut(self._cut(sequence, _fewer_steps), _fewer_faults)
        if len(best.steps) < len(sequence.steps) and not self._alone(best):
            return sequence  # it was what ran before it in the same process that made it deadly
        return best

    def _cut(self, best: Sequence, cuts: "_Cuts") -> Sequence:
        """Cut until nothing more can go, or no process is left."""
        size, start = max(1, len(best.steps) // 2), 0
        while True:
            candidates = list(cuts(best, size, start))
            try:
                found = self.first(candidates)
            except _Spent:
                return best
            if found is not None:
                best, start = candidates[found], start + found * size
                start = 0 if start >= len(best.steps) else start
            elif start:
                start = 0  # what came before may have become superfluous
            elif size > 1:
                size //= 2
            else:
                return best

    def _alone(self, sequence: Sequence) -> bool:
        """Whether it is deadly in a process that has run nothing else; no bound forbids to ask."""
        _, death = outcomes(self._launch, self._place, (sequence,))
        self.processes += 1
        return death == self._death


_Cuts = Callable[[Sequence, int, int], Iterator[Sequence]]


def _fewer_steps(sequence: Sequence, size: int, start: int) -> Iterator[Sequence]:
    """Each leaves out ``size`` steps, from ``start`` on."""
    steps = sequence.steps
    for at in range(start, len(steps), size):
        kept = steps[:at] + steps[at + size :]
        if kept:
            yield evolve(sequence, steps=kept)


def _fewer_faults(sequence: Sequence, size: int, start: int) -> Iterator[Sequence]:
    """Each leaves out one planned fault, all of them in turn."""
    if size > 1 or start:
        return
    steps = sequence.steps
    for number, step in enumerate(steps):
        for spec in step.faults.specs:
            kept = FaultPlan(tuple(other for other in step.faults.specs if other is not spec))
            changed = Step(step.operation, kept)
            yield evolve(sequence, steps=(*steps[:number], changed, *steps[number + 1 :]))
