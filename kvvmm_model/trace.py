"""Sequences as files, so that a finding can be kept, sent and run again.

A trace says what was done, never what was answered: a world, operations and planned faults, in
the language of ``kvvmm_model/language/``.  It is JSON, with a version; version 1, which spelled
everything out, is still read, and any other is refused by name.
"""

import json
from collections.abc import Callable
from typing import cast

from attrs import evolve, frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.language import LanguageError, parse, show_step, show_world
from kvvmm_model.machine import (
    Close,
    Commit,
    Operation,
    Reclaim,
    Release,
    Reserve,
    SetLimit,
    Trim,
)
from kvvmm_model.sequence import NAN, NO_FAULTS, Sequence, Step, World
from kvvmm_model.vocabulary import Policy, Settings

__all__ = ["VERSION", "BadTrace", "Trace", "dump", "in_words", "load", "read", "with_retries"]

VERSION = 2

Json = dict[str, object]


class BadTrace(ValueError):
    """The text is no trace that this version reads."""


@frozen
class Trace:
    """A sequence, and the sentence that whoever wrote it down had to say about it."""

    sequence: Sequence
    finding: str = ""


def dump(sequence: Sequence, finding: str = "") -> str:
    """The trace as text; ``finding`` is for people."""
    unit = sequence.world.settings.granularity_bytes
    return json.dumps(
        {
            "kvvmm_trace": VERSION,
            "finding": finding,
            "world": show_world(sequence.world),
            "script": [show_step(step, unit) for step in sequence.steps],
        },
        indent=1,
    )


def load(text: str) -> Sequence:
    """The sequence of a trace; raises ``BadTrace`` with what is wrong and where."""
    return read(text).sequence


def read(text: str) -> Trace:
    """All that a trace says; raises ``BadTrace`` with what is wrong and where."""
    try:
        found: object = json.loads(text, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise BadTrace(f"not JSON: {error}") from error
    entry = cast("Json", found) if isinstance(found, dict) else Json()
    version = entry.get("kvvmm_trace")
    try:
        match version:
            case 1:
                sequence = _read_1(entry)
            case 2:
                sequence = _read_2(entry)
            case None:
                raise BadTrace('no trace: it does not say which version it is ("kvvmm_trace")')
            case _:
                raise BadTrace(f"this is version {version} of a trace; versions 1 and 2 are read")
    except LanguageError as error:
        raise BadTrace(f"malformed script: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadTrace):
            raise
        raise BadTrace(f"malformed trace: {type(error).__name__}: {error}") from error
    return Trace(with_retries(sequence), str(entry.get("finding", "")))


def _constant(name: str) -> object:
    """The one NaN that sequences use, so that two readings of a trace are equal."""
    return NAN if name == "NaN" else float(name)


def with_retries(sequence: Sequence) -> Sequence:
    """The same steps, where an operation that says what the one before it says is that one.

    The comparison takes the very same operation, next in line, for the retry of what failed
    (L-11); text cannot say "the very same".
    """
    steps: list[Step] = []
    for step in sequence.steps:
        last = steps[-1].operation if steps else None
        # By what they print: 1 and true are equal, and are not the same argument.
        if last is not None and repr(last) == repr(step.operation):
            steps.append(Step(last, step.faults))
        else:
            steps.append(step)
    return evolve(sequence, steps=tuple(steps))


# --- version 2 ----------------------------------------------------------------------------------


def _read_2(entry: Json) -> Sequence:
    lines = [_text(entry["world"]), *map(_text, cast("list[object]", entry["script"]))]
    script = parse("\n".join(lines))
    if script.expected:
        raise BadTrace("a trace says what was done: nothing can be expected in it")
    if len(script.sequence.steps) != len(lines) - 1:
        raise BadTrace("each entry of a trace's script is one operation with its faults")
    return script.sequence


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


# --- version 1 ----------------------------------------------------------------------------------

_OPERATIONS_1: dict[str, Callable[..., Operation]] = {
    "reserve": Reserve,
    "commit": Commit,
    "release": Release,
    "close": Close,
    "trim": Trim,
    "reclaim": Reclaim,
    "set_limit": SetLimit,
}


def _read_1(entry: Json) -> Sequence:
    world = _read_world(cast("Json", entry["world"]))
    return Sequence(world, tuple(_read_step(step) for step in cast("list[Json]", entry["steps"])))


def _read_world(entry: Json) -> World:
    settings = Settings(
        granularity_bytes=_int(entry["granularity_bytes"]),
        policy=Policy(entry["policy"]),
        longest_run=_int(entry["longest_run"]),
        retention=_int(entry["retention"]),
        clear_pooled=bool(entry["clear_pooled"]),
    )
    return World(settings, limit=_int(entry["limit"]), capacity=_int(entry["capacity"]))


def _read_step(entry: Json) -> Step:
    kind = _OPERATIONS_1[str(entry["operation"])]
    faults = cast("list[Json]", entry.get("faults", []))
    arguments = {key: entry[key] for key in entry if key not in ("operation", "faults")}
    plan = FaultPlan(tuple(_read_fault(fault) for fault in faults)) if faults else NO_FAULTS
    return Step(kind(**arguments), plan)


def _read_fault(entry: Json) -> FaultSpec:
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


# --- for people ---------------------------------------------------------------------------------


def in_words(sequence: Sequence) -> list[str]:
    """The sequence as a person reads it, a numbered line a step."""
    unit = sequence.world.settings.granularity_bytes
    return [f"{number}. {show_step(step, unit)}" for number, step in enumerate(sequence.steps)]
