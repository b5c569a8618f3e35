"""Sequences as files, so that a finding can be kept, sent and run again.

A trace says what was done, never what was answered: settings, operations and planned faults.  It
is JSON, with a version; another version is refused by name.
"""

import json
from typing import cast

from kvvmm_model.codes import Step as Kind
from kvvmm_model.codes import code_name
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import OPERATIONS, Operation, name_of
from kvvmm_model.sequence import Sequence, Step, World
from kvvmm_model.vocabulary import Policy, Settings

VERSION = 1

Json = dict[str, object]


class BadTrace(ValueError):
    """The text is no trace that this version reads."""


def dump(sequence: Sequence, finding: str = "") -> str:
    """The trace as text; ``finding`` is for people and is not read back."""
    settings, world = sequence.world.settings, sequence.world
    return json.dumps(
        {
            "kvvmm_trace": VERSION,
            "finding": finding,
            "world": {
                "granularity_bytes": settings.granularity_bytes,
                "policy": settings.policy.value,
                "longest_run": settings.longest_run,
                "retention": settings.retention,
                "clear_pooled": settings.clear_pooled,
                "limit": world.limit,
                "capacity": world.capacity,
            },
            "steps": [_dump_step(step) for step in sequence.steps],
        },
        indent=1,
    )


def _dump_step(step: Step) -> Json:
    entry: Json = {"operation": name_of(step.operation), **_arguments(step.operation)}
    if step.faults.specs:
        entry["faults"] = [
            {
                "step": spec.step.value,
                "manner": spec.manner.value,
                "code": int(spec.code),
                "nth": spec.nth,
                "part": spec.part,
                "lasting": spec.lasting,
            }
            for spec in step.faults.specs
        ]
    return entry


def _arguments(operation: Operation) -> Json:
    names = operation.__match_args__
    return {name: getattr(operation, name) for name in names}


def load(text: str) -> Sequence:
    """The sequence of a trace; raises ``BadTrace`` with what is wrong and where."""
    try:
        found: object = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadTrace(f"not JSON: {error}") from error
    entry = cast("Json", found) if isinstance(found, dict) else Json()
    version = entry.get("kvvmm_trace")
    if version != VERSION:
        raise BadTrace(f"this is version {version!r} of a trace; only version {VERSION} is read")
    try:
        world = _load_world(cast("Json", entry["world"]))
        steps = tuple(_load_step(step) for step in cast("list[Json]", entry["steps"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BadTrace(f"malformed trace: {type(error).__name__}: {error}") from error
    return Sequence(world, steps)


def _load_world(entry: Json) -> World:
    settings = Settings(
        granularity_bytes=_int(entry["granularity_bytes"]),
        policy=Policy(entry["policy"]),
        longest_run=_int(entry["longest_run"]),
        retention=_int(entry["retention"]),
        clear_pooled=bool(entry["clear_pooled"]),
    )
    return World(settings, limit=_int(entry["limit"]), capacity=_int(entry["capacity"]))


def _load_step(entry: Json) -> Step:
    kind = OPERATIONS[str(entry["operation"])]
    faults = cast("list[Json]", entry.get("faults", []))
    arguments = {key: entry[key] for key in entry if key not in ("operation", "faults")}
    return Step(kind(**arguments), FaultPlan(tuple(_load_fault(fault) for fault in faults)))


def _load_fault(entry: Json) -> FaultSpec:
    return FaultSpec(
        step=Kind(entry["step"]),
        manner=Manner(entry["manner"]),
        code=_int(entry["code"]),
        nth=_int(entry["nth"]),
        part=_int(entry["part"]),
        lasting=bool(entry["lasting"]),
    )


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def in_words(sequence: Sequence) -> list[str]:
    """The sequence as a person reads it, a line a step; sizes in granules where they are whole."""
    unit = sequence.world.settings.granularity_bytes
    return [
        f"{number}. {name_of(step.operation)}{_said(step.operation, unit)}"
        + "".join(f", while {_fault_in_words(spec)}" for spec in step.faults.specs)
        for number, step in enumerate(sequence.steps)
    ]


def _said(operation: Operation, unit: int) -> str:
    arguments = _arguments(operation)
    parts = [
        f"{name.removesuffix('_bytes')} {_amount(arguments[name], unit)}" for name in arguments
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _amount(value: object, unit: int) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and value and value % unit == 0:
        return f"{value // unit}g"
    return repr(value)


def _fault_in_words(spec: FaultSpec) -> str:
    which = f"{spec.step.value} number {spec.nth}" + (" and every later one" * spec.lasting)
    part = f" after {spec.part}" if spec.manner is Manner.IN_PART else ""
    return f"{which} fails with {code_name(spec.code)} {spec.manner.value}{part}"
