"""A script on manager and model together, one step after the other, as data that can be told."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from attrs import field, frozen

from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.run import OpenDriver
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.faulting import FaultSpec
from kvvmm_model.language import Expect, Script
from kvvmm_model.recording import Call, CallNames
from kvvmm_model.sequence import NO_FAULTS, Step
from kvvmm_model.state import State
from kvvmm_model.vocabulary import Outcome

__all__ = ["Asked", "Lab", "Made", "Told", "planned"]


@frozen
class Made:
    """A driver call: its line, the call, and the planned fault that answered it, if one did."""

    line: str
    call: Call
    fault: FaultSpec | None


@frozen
class Asked:
    """An expectation, and what was wrong with it, if anything."""

    text: str
    problem: str | None


@frozen
class Told:
    """What one step did, on both sides or until they parted.

    ``step``: None for what was seen after the last operation.  ``outcome``: None where manager and
    model part, and ``after`` is then as far as the model had come.  ``unmet``: planned faults that
    met no call.  ``to_end``: not of the script, but of the clearing up behind it.
    """

    number: int
    step: Step | None
    before: State
    after: State
    calls: tuple[Made, ...] = ()
    outcome: Outcome | None = None
    unmet: tuple[FaultSpec, ...] = ()
    asked: tuple[Asked, ...] = ()
    divergence: Divergence | None = None
    to_end: bool = field(default=False, kw_only=True)

    @property
    def fine(self) -> bool:
        """Whether both sides agree and everything expected holds."""
        return self.divergence is None and all(each.problem is None for each in self.asked)


class Lab(AbstractContextManager["Lab"]):
    """A fresh manager beside a fresh model, over one driver; left, the driver is as it was."""

    def __init__(self, script: Script, make: MakeSubject, open_driver: OpenDriver) -> None:
        self.script = script
        sequence = script.sequence
        self._comparison = Comparison(make, open_driver(sequence.world), sequence.world)
        self._names = CallNames(sequence.world.settings.granularity_bytes)
        self._number = 0
        self._over = False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """What a script that was left early still holds is given back."""
        if not self._over:
            _ = self._comparison.faulting.tear_down()

    def steps(self) -> Iterator[Told]:
        """All steps of the script, then those that clear up behind it; ends at a divergence."""
        for step in self.script.sequence.steps:
            told = self._step(step)
            yield told
            if told.divergence is not None:
                return
        yield from self._end()

    def _step(self, step: Step) -> Told:
        before = self._comparison.state
        expected = self.script.expected.get(self._number, ())
        try:
            seen = self._comparison.step(step)
        except Divergence as divergence:
            return self._parted(step, before, divergence, expected)
        return self._agreed(seen, expected)

    def _end(self) -> Iterator[Told]:
        before = self._comparison.state
        try:
            for seen in self._comparison.end():
                yield self._agreed(seen, (), to_end=True)
                before = self._comparison.state
        except Divergence as divergence:
            operation = divergence.operation
            step = None if operation is None else Step(operation, NO_FAULTS)
            yield self._parted(step, before, divergence, (), to_end=True)
            return
        self._over = True

    def _agreed(self, seen: Seen, expected: Sequence[Expect], *, to_end: bool = False) -> Told:
        told = Told(
            self._number,
            seen.step,
            seen.before,
            seen.transition.state,
            self._made(seen.calls, seen.fired),
            seen.transition.outcome,
            _unmet(seen.step, seen.fired),
            tuple(Asked(each.text, each.check(seen)) for each in expected),
            to_end=to_end,
        )
        self._number += 1
        return told

    def _parted(
        self,
        step: Step | None,
        before: State,
        divergence: Divergence,
        expected: Sequence[Expect],
        *,
        to_end: bool = False,
    ) -> Told:
        armed = step is not None and step.faults is not NO_FAULTS
        fired = self._comparison.faulting.fired if armed else ()
        return Told(
            self._number,
            step,
            before,
            self._comparison.state,
            () if step is None else self._made(self._comparison.calls, fired),
            unmet=() if step is None else _unmet(step, fired),
            asked=tuple(Asked(each.text, "nobody knows: they part here") for each in expected),
            divergence=divergence,
            to_end=to_end,
        )

    def _made(self, calls: Sequence[Call], fired: Sequence[FaultSpec]) -> tuple[Made, ...]:
        faults = planned(calls, fired)
        return tuple(
            Made(self._names.describe(call), call, fault)
            for call, fault in zip(calls, faults, strict=True)
        )


def _unmet(step: Step, fired: Sequence[FaultSpec]) -> tuple[FaultSpec, ...]:
    return tuple(spec for spec in step.faults.specs if spec not in fired)


def planned(calls: Sequence[Call], fired: Sequence[FaultSpec]) -> list[FaultSpec | None]:
    """For each call of an operation the fault that was injected there."""
    counts = {spec.step: 0 for spec in fired}
    found: list[FaultSpec | None] = []
    for call in calls:
        due: FaultSpec | None = None
        if call.step in counts:
            counts[call.step] += 1
            number = counts[call.step]
            of_kind = (spec for spec in fired if spec.step is call.step)
            due = next((spec for spec in of_kind if spec.due(number)), None)
        found.append(due if due is not None and _answers(call, due) else None)
    return found


def _answers(call: Call, spec: FaultSpec) -> bool:
    """Whether this is the spec's answer, and not what the driver itself objected to."""
    return getattr(call.answer, "code", None) == spec.code
