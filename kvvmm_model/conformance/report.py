"""The result of a run as data, for a file that programs read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from platform import python_version
from typing import cast

from attrs import frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.reached import OUTCOMES, POSSIBLE_REFUSALS, Reached, states
from kvvmm_model.conformance.results import Finding, Result, Timings
from kvvmm_model.conformance.worker_campaign import Casualties, Casualty
from kvvmm_model.machine import OPERATIONS, name_of
from kvvmm_model.trace import in_words
from kvvmm_model.vocabulary import Policy

VERSION = 1

Json = dict[str, object]


@frozen
class Machine:
    """What a run ran on; None stands for what there is not, or nobody tells.

    ``driver``: ``sim``, ``cuda``, or ``module:attribute``.
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

    @property
    def free_bytes_change(self) -> int | None:
        """How much more is free than before; other users of the device are in it."""
        if self.free_bytes_before is None or self.free_bytes_after is None:
            return None
        return self.free_bytes_after - self.free_bytes_before


@frozen
class Earlier:
    """A finding of an earlier run, tried again.

    ``code``: the exit code that it stands for: 0 it fails no more, 1 manager and model still part,
    2 it could not be run here, 3 it still kills or hangs its process.
    """

    name: str
    code: int
    words: str

    @property
    def verdict(self) -> str:
        """In words that do not change."""
        return {0: "fails no more", 2: "was not run"}.get(self.code, "still fails")


@frozen
class Around:
    """What a report says besides the result: of workers, of files, of earlier findings.

    ``trace`` is where the finding was written; ``casualties`` where there were workers, ``traces``
    where the sequences that killed them went, by their order.
    """

    trace: str | None = None
    casualties: Casualties | None = None
    traces: tuple[str | None, ...] = ()
    earlier: tuple[Earlier, ...] = ()


def closing_line(result: Result, casualties: Casualties | None = None) -> str:
    """One line that a shell can take apart: a name, then ``key=value``."""
    reached = result.reached
    canary = {True: "caught", False: "missed", None: "unfinished"}[result.canary_caught]
    worker = ""
    if casualties is not None:
        worker = f" died={casualties.died} hung={casualties.hung}"
    return (
        f"kvvmm: ops={reached.operations}"
        f" faults={reached.faults_fired}/{reached.faults_planned}"
        f" states={result.states_reached}/{result.states_possible}"
        f" diverged={result.diverged} canary={canary}{worker}"
        + " interrupted=1"
        * result.interrupted
    )


def exit_code(result: Result, around: Around) -> int:
    """1 a divergence, 3 something died, hung or was given up, 130 interrupted, 2 void, else 0."""
    codes = [each.code for each in around.earlier]
    ended = around.casualties
    if result.finding is not None or 1 in codes:
        return 1
    if 3 in codes or (ended is not None and (ended.ended or ended.gave_up)):
        return 3
    if result.interrupted:
        return 130
    return 2 if result.void else 0


VARIES = (
    "gpu",
    "gpu_uuid",
    "driver_version",
    "cuda_version",
    "bindings_version",
    "python_version",
    "kvvmm_version",
    "date",
    "seconds",
    "free_bytes_before",
    "free_bytes_after",
    "free_bytes_change",
)
"""What differs between two runs that did the same, besides how long each call took."""


def repeatable(report: Mapping[str, object]) -> Json:
    """The report without what differs between two runs that did the same."""
    kept = {key: value for key, value in report.items() if key not in VARIES}
    calls = cast("dict[str, Json]", report["calls"])
    return kept | {"calls": {kind: {"count": entry["count"]} for kind, entry in calls.items()}}


def as_json(result: Result, machine: Machine, around: Around | None = None) -> Json:
    """Everything that a run showed."""
    around = Around() if around is None else around
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
        "exit_code": exit_code(result, around),
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
        "free_bytes_change": machine.free_bytes_change,
        "calls": {kind.value: _calls(result.timings, kind) for kind in Kind},
        "outcomes": _outcomes(reached),
        "refusals": _refusals(reached),
        "fault_points": _fault_points(reached),
        "states": {name: reached.states[name] for name in states(faults=result.faults)},
        "finding": None if result.finding is None else _finding(result.finding, around.trace),
        "earlier": [_earlier(each) for each in around.earlier],
        "worker": None if around.casualties is None else _worker(around.casualties, around.traces),
    }


def _earlier(earlier: Earlier) -> Json:
    return {"trace": earlier.name, "verdict": earlier.verdict, "what": earlier.words}


def _worker(casualties: Casualties, traces: tuple[str | None, ...]) -> Json:
    return {
        "restarts": casualties.restarts,
        "died": casualties.died,
        "hung": casualties.hung,
        "contexts_lost": casualties.contexts_lost,
        "gave_up": casualties.gave_up,
        "interrupted": [
            _casualty(each, trace) for each, trace in zip(casualties.ended, traces, strict=True)
        ],
    }


def _casualty(casualty: Casualty, trace: str | None) -> Json:
    """How a worker ended; ``again`` is None where nobody tried whether the sequence repeats it."""
    found, short, sequence = casualty.found, casualty.short, casualty.sequence
    return {
        "trace": trace,
        "how": casualty.death.how,
        "call": None if found is None or found.call is None else found.call.value,
        "number": None if found is None else found.number,
        "planted": None if found is None else found.planted or None,
        "steps": None if found is None else len(found.sequence.steps),
        "again": None if short is None else short.again,
        "processes": 0 if short is None else short.processes,
        "sequence": None if sequence is None else in_words(sequence),
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
