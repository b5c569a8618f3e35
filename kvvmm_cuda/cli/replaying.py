"""A trace, run once and told step by step."""

import click

from kvvmm_cuda.cli.choosing import Chosen
from kvvmm_cuda.cli.printing import say
from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.run import run
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.recording import CallNames
from kvvmm_model.sequence import Sequence, Step
from kvvmm_model.trace import in_words
from kvvmm_model.vocabulary import Done, Failed, Outcome, Refused, ordered

__all__ = ["replayed"]


def replayed(sequence: Sequence, chosen: Chosen, make: MakeSubject) -> bool:
    """Whether manager and model agree to the end; tells every step."""
    unit = sequence.world.settings.granularity_bytes
    if chosen.device is not None and unit != chosen.granularity_bytes:
        raise click.UsageError(
            f"the trace has granules of {unit} bytes, the device of {chosen.granularity_bytes};"
            " use --driver sim"
        )
    comparison = Comparison(make, chosen.open_driver(sequence.world), sequence.world)
    teller = _Teller(sequence, comparison)
    try:
        run(comparison, sequence, teller.tell)
    except Divergence as divergence:
        teller.tell_divergence(divergence)
        return False
    say("no divergence")
    return True


class _Teller:
    """Prints steps; addresses and handles keep their names throughout."""

    def __init__(self, sequence: Sequence, comparison: Comparison) -> None:
        self._sequence = sequence
        self._comparison = comparison
        self._names = CallNames(sequence.world.settings.granularity_bytes)
        self._number = 0

    def tell(self, seen: Seen) -> None:
        """A step on which both sides agree."""
        say(self._words(seen.step))
        self._tell_calls()
        say(f"     = {_in_words(seen.transition.outcome)}")
        self._number += 1

    def tell_divergence(self, divergence: Divergence) -> None:
        """The step on which they do not."""
        if divergence.operation is not None:
            steps = self._sequence.steps
            planned = steps[self._number] if self._number < len(steps) else None
            same = planned is not None and planned.operation is divergence.operation
            say(self._words(planned if planned and same else Step(divergence.operation)))
            self._tell_calls()
        say(f"DIVERGED at step {divergence.number}: {divergence.kind}: {divergence.detail}")

    def _words(self, step: Step) -> str:
        (line,) = in_words(Sequence(self._sequence.world, (step,)))
        steps = self._sequence.steps
        ours = self._number < len(steps) and steps[self._number] is step
        return f"{self._number}. {line.removeprefix('0. ')}" + " (to end)" * (not ours)

    def _tell_calls(self) -> None:
        for call in self._comparison.calls:
            say(f"     {self._names.describe(call)}")


def _in_words(outcome: Outcome) -> str:
    match outcome:
        case Done(value):
            return "done" if value is None else f"done: {value}"
        case Refused():
            return f"refused: {outcome}"
        case Failed(fault, residue, cleanup_faults):
            faults = ", then ".join(str(each) for each in (fault, *cleanup_faults))
            if not residue:
                return f"failed: {faults}; nothing changed"
            facts = [f"+{fact}" for fact in ordered(residue.new)]
            facts += [f"-{fact}" for fact in ordered(residue.gone)]
            return f"failed: {faults}; changed: {'; '.join(facts) or residue.ledger}"
