"""Sequences as files: what is written is what is read, in this version and in the first."""

import json
from pathlib import Path

import pytest

from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.language import parse
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Reclaim,
    Release,
    Reserve,
    Retire,
    Seal,
    SetLimit,
    Trim,
)
from kvvmm_model.sequence import NAN, NO_FAULTS, Sequence, Step, World
from kvvmm_model.trace import BadTrace, dump, in_words, load, read
from kvvmm_model.vocabulary import Policy, Settings

UNIT = 2 << 20
VERSION_1 = Path(__file__).with_name("trace_version_1.json")
SCRIPT = """
world policy=run longest_run=4 retention=2 limit=16 capacity=32 clear_pooled=no
reserve 8 align 2
reserve 1.5
fault set_access OUT_OF_MEMORY part=2
fault unmap 2 code=77 lasting
commit r1 0..5
release r1 at -1B size nan
fault create effect
commit r9 3B..4MiB
reclaim
reclaim r1
trim true
set_limit "two"
close r=none
"""
SHARING = """
reserve 8
commit 0..4
publish r1 3
fault fence; fault set_access part=1 UNKNOWN
seal p1
reserve 8; reserve 8
attach r2 p1 0 and r3 p1 1
attach r2 p=none 4096B
attach nothing
fork r1 5MiB and r2 3
fault copy part=1; fault fence 2 effect
fork r3 none
retire p1
"""


def small(*operations: Operation) -> Sequence:
    steps = tuple(Step(operation) for operation in operations)
    return Sequence(World(Settings(UNIT), limit=8, capacity=8), steps)


def entry(**changed: object) -> str:
    written: dict[str, object] = json.loads(dump(small(Reserve(UNIT), Reclaim())))
    return json.dumps({**written, **changed})


def test_trace_is_the_language_in_json() -> None:
    sequence = small(Reserve(4 * UNIT), Commit(1, 0, 4 * UNIT))
    plan = FaultPlan((FaultSpec(Kind.MAP, Manner.WITH_EFFECT, 999, nth=2),))
    sequence = Sequence(sequence.world, (sequence.steps[0], Step(Commit(1, 0, UNIT), plan)))
    assert json.loads(dump(sequence, "said")) == {
        "kvvmm_trace": 2,
        "finding": "said",
        "world": "world granularity=2MiB policy=granule longest_run=64 retention=0"
        " clear_pooled=yes limit=8 capacity=8",
        "script": ["reserve 4", "fault map 2 UNKNOWN effect; commit r1 0..1"],
    }


@pytest.mark.parametrize("script", [SCRIPT, SHARING], ids=["private", "sharing"])
def test_what_is_written_is_read_again(script: str) -> None:
    sequence = parse(script).sequence
    assert repr(load(dump(sequence))) == repr(sequence)  # NaN equals nothing


def test_faultless_steps_stay_without_a_plan() -> None:
    assert load(dump(small(Reserve(UNIT)))).steps[0].faults is NO_FAULTS


@pytest.mark.parametrize(
    "value", [0, 1, UNIT, UNIT + 1, 1 << 63, (1 << 64) + 1, -1, None, True, 1.5, NAN, "x", ""]
)
def test_every_argument_is_written_and_read(value: object) -> None:
    sequence = small(
        Reserve(value, 0),
        Reserve(UNIT, value),
        Commit(1, value, UNIT),
        Commit(1, 0, value),
        Release(1, value, value),
        Trim(value),
        SetLimit(value),
        Publish(1, value),
        Attach(((1, 1, value),)),
        Fork(((1, value), (1, UNIT))),
    )
    assert repr(load(dump(sequence))) == repr(sequence)


@pytest.mark.parametrize("serial", [0, 1, 99, None, True, 1.5, NAN])
def test_every_serial_is_written_and_read(serial: object) -> None:
    sequence = small(
        *(Commit(serial, 0, UNIT), Release(serial, 0, UNIT), Close(serial)),
        *(Publish(serial, UNIT), Seal(serial), Retire(serial), Fork(((serial, UNIT),))),
        *(Attach(((serial, 1, 0), (1, serial, UNIT))), Attach(()), Fork(())),
    )
    sequence = Sequence(sequence.world, (*sequence.steps, Step(Reclaim(serial))))
    assert repr(load(dump(sequence))) == repr(sequence)


@pytest.mark.parametrize("policy", Policy)
def test_every_setting_is_written_and_read(policy: Policy) -> None:
    settings = Settings(4096, policy, longest_run=3, retention=5, clear_pooled=False)
    sequence = Sequence(World(settings, limit=0, capacity=7), ())
    assert load(dump(sequence)) == sequence


def test_finding_is_read_for_people() -> None:
    assert read(dump(small(), "what was wrong")).finding == "what was wrong"


def test_operation_that_repeats_the_last_is_read_as_its_retry() -> None:
    steps = load(dump(small(Trim(1), Trim(1), Trim(True), Trim(2)))).steps
    assert steps[0].operation is steps[1].operation
    assert repr(steps[2].operation) == "Trim(size_bytes=True)"  # equal to 1, and no size


# --- version 1 ----------------------------------------------------------------------------------


def test_version_1_is_read_as_it_was() -> None:
    trace = read(VERSION_1.read_text(encoding="utf-8"))
    assert repr(trace.sequence) == repr(parse(SCRIPT).sequence)
    assert trace.finding == "written by the first version"


def test_version_1_is_written_again_as_the_language() -> None:
    sequence = load(VERSION_1.read_text(encoding="utf-8"))
    assert repr(load(dump(sequence))) == repr(sequence)


# --- what is no trace ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 7, 99])
def test_another_version_is_refused_by_name(version: int) -> None:
    with pytest.raises(BadTrace, match=f"this is version {version} of a trace"):
        _ = load(entry(kvvmm_trace=version))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[]", "does not say which version"),
        ("{}", "does not say which version"),
        (entry(script=["reserve 1; reclaim"]), "one operation with its faults"),
        (entry(script=["reserve 1; expect done"]), "nothing can be expected"),
        (entry(script=["reserve 1", "resrve 1"]), "this is no statement"),
        (entry(script=[3]), "3 is no text"),
        (entry(world=None), "None is no text"),
        (entry(world="world limit=many"), "limit cannot be that"),
        ('{"kvvmm_trace": 2}', "KeyError"),
        ('{"kvvmm_trace": 1, "world": {}}', "KeyError"),
    ],
)
def test_bad_trace_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BadTrace, match=said):
        _ = load(text)


def test_bad_word_in_a_script_is_pointed_at() -> None:
    with pytest.raises(BadTrace, match=r"resrve 1\n  \^{6}"):
        _ = load(entry(script=["resrve 1"]))


# --- for people ---------------------------------------------------------------------------------


def test_in_words_is_a_numbered_line_a_step() -> None:
    sequence = parse("reserve 4; fault unmap; commit 0..4").sequence
    assert in_words(sequence) == ["0. reserve 4", "1. fault unmap UNKNOWN; commit r1 0..4"]
    sequence = parse("attach r2 p1 0 and r3 p1 1B; fault copy part=1; fork 5MiB").sequence
    assert in_words(sequence) == [
        "0. attach r2 p1 0 and r3 p1 1B",
        "1. fault copy UNKNOWN part=1; fork r1 5MiB",
    ]
