"""The result of a run as data, for a file that programs read."""

from datetime import UTC, datetime
from platform import python_version

from attrs import frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.campaign import Finding, Result, Timings
from kvvmm_model.conformance.reached import OUTCOMES, POSSIBLE_REFUSALS, Reached, states
from kvvmm_model.machine import OPERATIONS, name_of
from kvvmm_model.trace import in_words
from kvvmm_model.vocabulary import Policy

VERSION = 1

Json = dict[str, object]


@frozen
class Machine:
    """What a run ran on; None stands for what there is not, or nobody tells.

    ``driver``: ``sim`` or ``cuda``.
    """

    driver: str
    kvvmm_version: str
    gpu: str | None = None
    gpu_uuid: str | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    bindings_version: str | None = None
    free_bytes_before: int | None = None
    free_bytes_after: int | None = None


def closing_line(result: Result) -> str:
    """One line that a shell can take apart: a name, then ``key=value``."""
    reached = result.reached
    canary = {True: "caught", False: "missed", None: "unfinished"}[result.canary_caught]
    return (
        f"kvvmm: ops={reached.operations}"
        f" faults={reached.faults_fired}/{reached.faults_planned}"
        f" states={result.states_reached}/{result.states_possible}"
        f" diverged={result.diverged} canary={canary}" + " interrupted=1" * result.interrupted
    )


def as_json(result: Result, machine: Machine, trace: str | None = None) -> Json:
    """Everything that a run showed; ``trace`` is where its finding was written."""
    reached = result.reached
    return {
        "kvvmm_report": VERSION,
        "form": result.form,
        "driver": machine.driver,
        "gpu": machine.gpu,
        "gpu_uuid": machine.gpu_uuid,
        "driver_version": machine.driver_version,
        "cuda_version": machine.cuda_version,
        "bindings_version": machine.bindings_version,
        "python_version": python_version(),
        "kvvmm_version": machine.kvvmm_version,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": result.seed,
        "with_faults": result.faults,
        "seconds": round(result.seconds, 3),
        "sequences": reached.sequences,
        "operations": reached.operations,
        "operations_by_policy": {policy.value: reached.policies[policy] for policy in Policy},
        "driver_calls": reached.driver_calls,
        "faults_planned": reached.faults_planned,
        "faults_fired": reached.faults_fired,
        "diverged": result.diverged,
        "interrupted": result.interrupted,
        "void": result.void,
        "canary": result.canary,
        "canary_caught": result.canary_caught,
        "never": result.never,
        "free_bytes_before": machine.free_bytes_before,
        "free_bytes_after": machine.free_bytes_after,
        "calls": {kind.value: _calls(result.timings, kind) for kind in Kind},
        "outcomes": _outcomes(reached),
        "refusals": _refusals(reached),
        "fault_points": _fault_points(reached),
        "states": {name: reached.states[name] for name in states(faults=result.faults)},
        "finding": None if result.finding is None else _finding(result.finding, trace),
    }


def _calls(timings: Timings, kind: Kind) -> Json:
    duration = timings.median_ns(kind)
    return {
        "count": timings.counts[kind],
        "median_us": None if duration is None else round(duration / 1000, 3),
    }


def _outcomes(reached: Reached) -> Json:
    return {
        name: {outcome: reached.outcomes[name, outcome] for outcome in OUTCOMES}
        for name in OPERATIONS
    }


def _refusals(reached: Reached) -> Json:
    return {
        name: {reason.name: reached.refusals[name, reason] for reason in reasons}
        for name, reasons in POSSIBLE_REFUSALS.items()
    }


def _fault_points(reached: Reached) -> Json:
    """By operation, kind of call and manner; only what fired."""
    points: dict[str, dict[str, dict[str, int]]] = {name: {} for name in OPERATIONS}
    for (name, kind, manner), count in reached.fault_points.items():
        points[name].setdefault(kind.value, {})[manner.value] = count
    return dict(points)


def _finding(finding: Finding, trace: str | None) -> Json:
    divergence = finding.divergence
    return {
        "kind": divergence.kind,
        "detail": divergence.detail,
        "step": divergence.number,
        "operation": None if divergence.operation is None else name_of(divergence.operation),
        "sequence": in_words(finding.sequence),
        "trace": trace,
    }
