"""What a run reached: operations, refusals, fault points, states.  And what it never did."""

from collections import Counter
from collections.abc import Callable, Iterator

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.comparison import Seen
from kvvmm_model.conformance.ingredients import FAULT_POINTS
from kvvmm_model.faulting import FaultSpec, Manner, all_specs
from kvvmm_model.machine import OPERATIONS, Attach, Commit, Fork, name_of
from kvvmm_model.state import Mapping
from kvvmm_model.vocabulary import Done, Failed, Policy, Refusal, Refused, Rights, Standing

OUTCOMES = ("Done", "Refused", "Failed")

POSSIBLE_REFUSALS: dict[str, tuple[Refusal, ...]] = {
    "reserve": (Refusal.DEVICE_LOST, Refusal.RANGE),
    "commit": (
        Refusal.DEVICE_LOST,
        Refusal.STALE,
        Refusal.RANGE,
        Refusal.QUARANTINED,
        Refusal.RIGHTS_UNKNOWN,
        Refusal.SHARED,
        Refusal.BUDGET,
    ),
    "release": (
        Refusal.DEVICE_LOST,
        Refusal.STALE,
        Refusal.RANGE,
        Refusal.QUARANTINED,
        Refusal.NOT_COMMITTED,
    ),
    "close": (Refusal.DEVICE_LOST, Refusal.STALE),
    "publish": (
        Refusal.DEVICE_LOST,
        Refusal.STALE,
        Refusal.RANGE,
        Refusal.STRADDLING,
        Refusal.QUARANTINED,
        Refusal.RIGHTS_UNKNOWN,
        Refusal.REPEATED,
        Refusal.NOT_COMMITTED,
    ),
    "seal": (Refusal.DEVICE_LOST, Refusal.STALE),
    "attach": (
        Refusal.DEVICE_LOST,
        Refusal.STALE,
        Refusal.RANGE,
        Refusal.MISALIGNED,
        Refusal.TOO_LONG,
        Refusal.QUARANTINED,
        Refusal.RIGHTS_UNKNOWN,
        Refusal.OCCUPIED,
        Refusal.UNSEALED,
    ),
    "retire": (Refusal.DEVICE_LOST, Refusal.STALE),
    "fork": (
        Refusal.DEVICE_LOST,
        Refusal.STALE,
        Refusal.RANGE,
        Refusal.QUARANTINED,
        Refusal.RIGHTS_UNKNOWN,
        Refusal.UNSEALED,
        Refusal.NOT_COMMITTED,
        Refusal.BUDGET,
    ),
    "trim": (Refusal.DEVICE_LOST, Refusal.RANGE),
    "reclaim": (Refusal.DEVICE_LOST, Refusal.STALE),
    "set_limit": (Refusal.DEVICE_LOST, Refusal.RANGE),
}


def _standing(seen: Seen, standing: Standing) -> bool:
    return any(found.standing is standing for found in seen.transition.state.reservations.values())


def _quarantined_windows(seen: Seen) -> int:
    return sum(
        mapping.quarantined
        for found in seen.transition.state.reservations.values()
        for mapping in found.mappings
    )


def _shrank(seen: Seen) -> bool:
    return seen.transition.state.ledger.mapped < seen.before.ledger.mapped


def _kinds(seen: Seen) -> Counter[Kind]:
    return Counter(call.step for call in seen.calls)


def _from_pool(seen: Seen) -> bool:
    made = isinstance(seen.step.operation, Commit) and isinstance(seen.transition.outcome, Done)
    kinds = _kinds(seen)
    return made and kinds[Kind.MAP] > 0 and kinds[Kind.CREATE] == 0


def _gave_up(seen: Seen) -> bool:
    done = isinstance(seen.transition.outcome, Done) and isinstance(seen.step.operation, Commit)
    return done and _kinds(seen)[Kind.RELEASE] > 0


def _overcame(seen: Seen) -> bool:
    done = isinstance(seen.transition.outcome, Done) and isinstance(seen.step.operation, Commit)
    faults = [
        call for call in seen.calls if call.step is Kind.CREATE and hasattr(call.answer, "code")
    ]
    return done and bool(faults)


def _proved_handle(seen: Seen) -> bool:
    before = {h.serial for h in seen.before.handles.values() if h.quarantined}
    return bool(before - set(seen.transition.state.handles))


def _proved_range(seen: Seen) -> bool:
    before = {
        found.serial
        for found in seen.before.reservations.values()
        if found.standing is Standing.QUARANTINED
    }
    return bool(before - set(seen.transition.state.reservations))


def _mappings(seen: Seen) -> Iterator[Mapping]:
    for found in seen.transition.state.reservations.values():
        yield from found.mappings


def _new_mappings(seen: Seen) -> Iterator[Mapping]:
    before = seen.before.reservations
    return (mapping for mapping in _mappings(seen) if mapping.reservation not in before)


def _most_mappings(seen: Seen) -> int:
    return max((handle.mappings for handle in seen.transition.state.handles.values()), default=0)


def _doubtful_sharer(seen: Seen) -> bool:
    handles = seen.transition.state.handles
    return any(m.quarantined and handles[m.handle].references > 1 for m in _mappings(seen))


def _group(seen: Seen) -> bool:
    done = isinstance(seen.transition.outcome, Done)
    match seen.step.operation:
        case Attach(members) | Fork(members):
            return done and len(members) > 1
        case _:
            return False


STATES: dict[str, Callable[[Seen], bool]] = {
    "a handle of several granules": lambda seen: any(
        handle.size > 1 for handle in seen.transition.state.handles.values()
    ),
    "a pooled handle": lambda seen: bool(seen.transition.state.pool),
    "a commit from the pool alone": _from_pool,
    "pooled memory given up for a commit": _gave_up,
    "an OUT_OF_MEMORY that was overcome": _overcame,
    "charged above the limit": lambda seen: seen.transition.state.ledger.free < 0,
    "a quarantined window": lambda seen: _quarantined_windows(seen) > 0,
    "a closed reservation with quarantined windows": lambda seen: _standing(seen, Standing.CLOSED),
    "a quarantined address range": lambda seen: _standing(seen, Standing.QUARANTINED),
    "a quarantined handle": lambda seen: seen.transition.state.ledger.quarantined > 0,
    "unattributed memory": lambda seen: seen.transition.state.ledger.unattributed > 0,
    "unattributed addresses": lambda seen: seen.transition.state.ledger.unattributed_addresses > 0,
    "a fault during the unwinding of another": lambda seen: (
        isinstance(seen.transition.outcome, Failed) and bool(seen.transition.outcome.cleanup_faults)
    ),
    "a failure that changed nothing": lambda seen: (
        isinstance(seen.transition.outcome, Failed) and not seen.transition.outcome.residue
    ),
    "a quarantine that reclaim ended": lambda seen: (
        name_of(seen.step.operation) == "reclaim" and _shrank(seen)
    ),
    "a handle's release proved by its recycled value": _proved_handle,
    "a range's freeing proved by its recycled address": _proved_range,
    "memory that prefixes alone hold": lambda seen: seen.transition.state.ledger.held > 0,
    "memory with three mappings or more": lambda seen: _most_mappings(seen) > 2,
    "a sealed window": lambda seen: any(mapping.sealed for mapping in _mappings(seen)),
    "two prefixes over one handle": lambda seen: any(
        handle.prefixes > 1 for handle in seen.transition.state.handles.values()
    ),
    "a window of unknown rights": lambda seen: any(
        mapping.rights is Rights.UNKNOWN and not mapping.quarantined for mapping in _mappings(seen)
    ),
    "a doubtful mapping that keeps shared memory": _doubtful_sharer,
    "a copy": lambda seen: _kinds(seen)[Kind.COPY] > 0,
    "a child that shares and copies": lambda seen: (
        _kinds(seen)[Kind.COPY] > 0 and any(mapping.sealed for mapping in _new_mappings(seen))
    ),
    "several children or sharers at once": _group,
    "a lost device": lambda seen: seen.transition.state.lost != 0,
}
"""Situations worth reaching, by what they are; each is looked for at every step."""

WITHOUT_FAULTS: tuple[str, ...] = (
    "a handle of several granules",
    "a pooled handle",
    "a commit from the pool alone",
    "pooled memory given up for a commit",
    "charged above the limit",
    "memory that prefixes alone hold",
    "memory with three mappings or more",
    "a sealed window",
    "two prefixes over one handle",
    "a copy",
    "a child that shares and copies",
    "several children or sharers at once",
)
"""The states that need no fault, on any driver."""


class Reached:
    """Counts over a run; ``never`` names what stayed at zero though it can be reached."""

    def __init__(self) -> None:
        self.sequences = 0
        self.operations = 0
        self.policies: Counter[Policy] = Counter()
        self.driver_calls = 0
        self.faults_planned = 0
        self.faults_fired = 0
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.refusals: Counter[tuple[str, Refusal]] = Counter()
        self.fault_points: Counter[tuple[str, Kind, Manner]] = Counter()
        self.states: Counter[str] = Counter()

    def note(self, seen: Seen) -> None:
        """Count one step."""
        name, outcome = name_of(seen.step.operation), seen.transition.outcome
        self.operations += 1
        self.policies[seen.before.settings.policy] += 1
        self.driver_calls += len(seen.calls)
        self.outcomes[name, type(outcome).__name__] += 1
        if isinstance(outcome, Refused):
            self.refusals[name, outcome.reason] += 1
        if seen.step.faults.specs:
            self._note_faults(name, seen.step.faults.specs, seen.fired)
        if seen.transition.state is not seen.before:
            for state, holds in STATES.items():
                if holds(seen):
                    self.states[state] += 1

    def _note_faults(
        self, name: str, planned: tuple[FaultSpec, ...], fired: tuple[FaultSpec, ...]
    ) -> None:
        self.faults_planned += len(planned)
        self.faults_fired += len(fired)
        for spec in fired:
            self.fault_points[name, spec.step, spec.manner] += 1

    def never(self, *, faults: bool = True) -> list[str]:
        """What a run with these operations could have reached and did not."""
        missing = [f"operation {name}" for name in OPERATIONS if not self.outcomes[name, "Done"]]
        for name, reasons in POSSIBLE_REFUSALS.items():
            missing += [
                f"refusal {name}: {reason.name}"
                for reason in reasons
                if not self.refusals[name, reason] and (faults or reason in _WITHOUT_FAULTS)
            ]
        if faults:
            missing += [
                f"fault {name}: {kind.value} {manner.value}"
                for name, kind, manner in possible_fault_points()
                if not self.fault_points[name, kind, manner]
            ]
        missing += [f"state {name}" for name in states(faults=faults) if not self.states[name]]
        return missing


_WITHOUT_FAULTS = frozenset(Refusal) - {
    Refusal.DEVICE_LOST,
    Refusal.QUARANTINED,
    Refusal.RIGHTS_UNKNOWN,
}


def states(*, faults: bool) -> tuple[str, ...]:
    """The states that a run can reach."""
    return tuple(STATES) if faults else WITHOUT_FAULTS


def possible_fault_points() -> list[tuple[str, Kind, Manner]]:
    """Operation, kind of call, manner: everything that can be injected somewhere."""
    return [
        (name, kind, manner)
        for name, kinds in FAULT_POINTS.items()
        for kind in kinds
        for manner in Manner
        if any(pair[0] is manner for pair in all_specs(kind))
    ]
