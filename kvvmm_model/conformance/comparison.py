"""One manager and the model, step by step over the same driver answers.

The manager runs first, over a driver whose calls are recorded and whose faults are planned.  The
model then runs over those answers.  Demanded: the same calls in the same order, the same outcome,
the same observable state; every invariant; and what the driver itself says.
"""

from collections.abc import Iterator, Sequence
from typing import Never

from attrs import frozen

from kvvmm_model.conformance.contents import Contents
from kvvmm_model.conformance.replay import CallsDiffer, Replay
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.truth import TellsTruth, untrue, wrong_rights
from kvvmm_model.driver_model import Memory
from kvvmm_model.faulting import FaultingDriver, FaultSpec
from kvvmm_model.invariants import broken
from kvvmm_model.machine import Close, Operation, Reclaim, Retire, Trim, apply, name_of
from kvvmm_model.recording import Call, CallNames, RecordingDriver
from kvvmm_model.sequence import NO_FAULTS, Step, World
from kvvmm_model.state import State, Transition, initial, observe
from kvvmm_model.vocabulary import (
    MAX_BYTES,
    Code,
    Driver,
    Failed,
    MappingView,
    Observation,
    Outcome,
    Refusal,
    Refused,
    Standing,
    ordered,
)


class Divergence(Exception):
    """Manager and model part, or both are wrong by an outside judge.

    ``kind`` is one word for what differs; ``number`` the step, from 0, where it was seen.
    """

    def __init__(self, kind: str, detail: str, number: int, operation: Operation | None) -> None:
        super().__init__(f"step {number} {operation}: {kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.number = number
        self.operation = operation


@frozen
class Seen:
    """What one step showed: for counting what was reached."""

    step: Step
    before: State
    transition: Transition
    calls: Sequence[Call]
    fired: tuple[FaultSpec, ...]


class Comparison:
    """A manager and the model over one driver, for one sequence.

    ``calls``: what the manager called in the last step, whether or not that step came to its end.
    """

    def __init__(
        self, make: MakeSubject, driver: Driver, world: World, *, timed: bool = False
    ) -> None:
        self._driver = driver
        self.faulting = FaultingDriver(driver)
        self.recording = RecordingDriver(self.faulting, timed=timed)
        self.state = initial(world.settings, world.limit)
        self._ours = observe(self.state)
        limit_bytes = world.limit * world.settings.granularity_bytes
        self._subject = make(self.recording, world.settings, limit_bytes)
        unit = world.settings.granularity_bytes
        self._contents = Contents(driver, unit) if isinstance(driver, Memory) else None
        self._truth = driver if isinstance(driver, TellsTruth) else None
        self.calls: Sequence[Call] = ()
        self._number = 0
        self._retry: tuple[Operation, Failed] | None = None

    def step(self, step: Step) -> Seen:
        """One operation on both sides; raises ``Divergence``."""
        operation = step.operation
        planned = step.faults is not NO_FAULTS
        if planned:
            self.faulting.arm(step.faults)
        self.calls = self.recording.calls  # filled in place, so that a divergence shows them too
        outcome = self._run_subject(operation)
        calls = self.recording.take()
        fired = self.faulting.fired if planned else ()
        if planned:
            self.faulting.disarm()
        before = self.state
        transition = self._run_model(operation, calls)
        if transition.outcome != outcome:
            self._diverged("outcome", _two(transition.outcome, outcome), operation)
        self.state = transition.state
        seen = Seen(step, before, transition, calls, fired)
        self._judge(seen)
        self._number += 1
        return seen

    def _run_subject(self, operation: Operation) -> Outcome:
        try:
            return self._subject.apply(operation)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the finding
            self._diverged("exception", f"{type(error).__name__}: {error}", operation, error)

    def _run_model(self, operation: Operation, calls: Sequence[Call]) -> Transition:
        unit = self.state.settings.granularity_bytes
        replay = Replay(calls, unit)
        try:
            transition = apply(self.state, operation, replay)
            replay.finish()
        except CallsDiffer as differ:
            wanted, theirs = _two_calls(self.state, calls, differ)
            self._diverged(
                "calls",
                f"call {differ.number + 1} of {name_of(operation)}: the model makes {wanted},"
                f" the manager {theirs}",
                operation,
            )
        except Exception as error:  # noqa: BLE001 - the model answers, it never raises
            self._diverged("model", f"{type(error).__name__}: {error}", operation, error)
        return transition

    def _judge(self, seen: Seen) -> None:
        operation = seen.step.operation
        if self.state is not seen.before:
            self._ours = observe(self.state)
            for finding in broken(self.state):
                self._diverged("invariant", finding, operation)
        theirs = self._subject.observe()
        if self._ours != theirs:
            self._diverged("state", _difference(self._ours, theirs), operation)
        for finding in self._repeated(seen):
            self._diverged("retry", finding, operation)
        if not seen.calls:
            return  # nothing was called, so that neither the driver nor any byte can be another
        for finding in self._outside(seen):
            self._diverged("driver", finding, operation)
        for finding in self._bytes(seen):
            self._diverged("contents", finding, operation)

    def _outside(self, seen: Seen) -> Iterator[str]:
        if self._truth is not None:
            yield from untrue(self.state, self._truth)
            oddities, self._truth.oddities[:] = list(self._truth.oddities), []
            if not seen.fired:
                yield from oddities
        elif not self.state.lost:
            yield from wrong_rights(self.state, self._driver)

    def _bytes(self, seen: Seen) -> Iterator[str]:
        if self._contents is not None and not self.state.lost:
            self._contents.follow(
                self.state, seen.step.operation, seen.transition.outcome, seen.calls
            )
            yield from self._contents.wrong()
            yield from self._contents.write()

    def _repeated(self, seen: Seen) -> Iterator[str]:
        """L-11: what failed succeeds when the fault is gone, or is refused for what it left."""
        last, self._retry = self._retry, None
        outcome, operation = seen.transition.outcome, seen.step.operation
        retried = last if last is not None and last[0] is operation else None
        if seen.step.faults.specs:
            retried = None
        elif self._truth is not None and isinstance(outcome, Failed) and not _full(outcome):
            yield f"L-11 nothing was injected, and yet it failed: {outcome}"
        if (
            retried is not None
            and isinstance(outcome, Refused)
            and not _explained(outcome.reason, retried[1], seen.before)
        ):
            yield f"L-11 the retry was refused with {outcome}, after {retried[1]}"
        if isinstance(outcome, Failed):
            self._retry = (operation, outcome)

    # --- the end of a sequence --------------------------------------------------------------

    def end(self) -> Iterator[Seen]:
        """Close, retire, trim and reclaim everything without faults; see what is left (L-10)."""
        reservations = [
            found.serial
            for found in self.state.reservations.values()
            if found.standing is Standing.OPEN
        ]
        operations: list[Operation] = [
            Reclaim(),
            *map(Close, reservations),
            *map(Retire, self.state.prefixes),
        ]
        for operation in (*operations, Trim(MAX_BYTES), Reclaim()):
            yield self.step(Step(operation, NO_FAULTS))
        for finding in self._left():
            self._diverged("leak", finding, None)

    def _left(self) -> Iterator[str]:
        state = self.state
        if not state.lost:
            ledger = state.ledger
            if ledger.charged != ledger.quarantined + ledger.unattributed or ledger.mapped:
                yield f"L-10 charged at the end without a quarantine that says why: {ledger}"
            for found in state.reservations.values():
                if found.standing is not Standing.QUARANTINED:
                    yield f"L-10 a range is left that nothing keeps: {found}"
        for fault in self.faulting.settle():
            yield f"settling failed: {fault}"
        if self._truth is not None:
            left = (self._truth.physical_bytes(), dict(self._truth.live_ranges()))
            if left != (0, {}):
                yield f"L-10 the driver still holds, after settling: bytes and ranges {left}"

    def _diverged(
        self,
        kind: str,
        detail: str,
        operation: Operation | None,
        cause: Exception | None = None,
    ) -> Never:
        raise Divergence(kind, detail, self._number, operation) from cause


def _full(failed: Failed) -> bool:
    """Whether a simulated driver said that it has no more to give, which needs no injection."""
    return failed.fault.code == Code.OUT_OF_MEMORY


def _explained(reason: Refusal, failed: Failed, before: State) -> bool:
    """Whether what a failure left behind is a reason to refuse the same call now."""
    residue = failed.residue
    match reason:
        case Refusal.DEVICE_LOST:
            return before.lost != 0
        case Refusal.STALE | Refusal.NOT_COMMITTED:
            return bool(residue.gone)
        case Refusal.QUARANTINED:
            return any(isinstance(fact, MappingView) and fact.quarantined for fact in residue.new)
        case Refusal.BUDGET:
            # What was given up for a commit may have been replaced by what nobody can name.
            kept = (residue.ledger.charged, residue.ledger.quarantined, residue.ledger.unattributed)
            # A pool hit that ended in quarantine cannot be had again.
            return any(amount > 0 for amount in kept) or residue.ledger.pooled < 0
        case _:
            return False


def _two_calls(state: State, calls: Sequence[Call], differ: CallsDiffer) -> tuple[str, str]:
    """The call that the model makes and the one that the manager made, with the same names."""

    def text(call: Call | None) -> str:
        names = CallNames(state.settings.granularity_bytes)
        names.know(
            {
                r.serial: (r.address, r.address + state.bytes(r.size))
                for r in state.reservations.values()
            },
            {h.serial: h.value for h in state.handles.values()},
        )
        for earlier in calls[: differ.number]:
            _ = names.describe(earlier)
        return "nothing" if call is None else names.describe(call)

    wanted = Call(*differ.wanted, None) if differ.wanted is not None else None
    theirs = calls[differ.number] if differ.number < len(calls) else None
    return text(wanted).split(" -> ")[0], text(theirs)


def _two(ours: Outcome, theirs: Outcome) -> str:
    return f"the model says {ours}, the manager {theirs}"


def _difference(ours: Observation, theirs: Observation) -> str:
    """What differs, and only that."""
    parts: list[str] = []
    residue = theirs.since(ours)
    if residue.gone:
        parts.append(f"only the model has {ordered(residue.gone)}")
    if residue.new:
        parts.append(f"only the manager has {ordered(residue.new)}")
    if ours.pool != theirs.pool:
        parts.append(f"pool: model {ours.pool}, manager {theirs.pool}")
    if ours.ledger != theirs.ledger:
        parts.append(f"ledger: model {ours.ledger}, manager {theirs.ledger}")
    if ours.lost != theirs.lost:
        parts.append(f"device lost: model {ours.lost}, manager {theirs.lost}")
    return "; ".join(parts)
