"""What a script may expect: each word holds where it should, and says what is the case if not."""

import pytest

from kvvmm_model.conformance.comparison import Seen
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver
from kvvmm_model.language import LanguageError, parse
from kvvmm_model.machine import apply
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.state import initial


def finding(text: str) -> str | None:
    """What the first expectation of a script finds wrong."""
    script = parse(text)
    world = script.sequence.world
    unit = world.settings.granularity_bytes
    faulting = FaultingDriver(
        DriverModel(granularity_bytes=unit, capacity_bytes=world.capacity * unit)
    )
    recording = RecordingDriver(faulting)
    state = initial(world.settings, world.limit)
    for number, step in enumerate(script.sequence.steps):
        faulting.arm(step.faults)
        transition = apply(state, step.operation, recording)
        if number in script.expected:
            (expect,) = script.expected[number]
            return expect.check(Seen(step, state, transition, recording.take(), faulting.fired))
        state = transition.state
        _ = recording.take()
    raise AssertionError(text)


FILLED = "world policy=run retention=4; reserve 5; commit 0..4; commit 4..5; "
BROKEN = "reserve 2; fault map 2 OUT_OF_MEMORY; fault unmap; fault release; commit 0..2; "
SHARED = (
    "reserve 4; commit 0..3; publish 2; seal; reserve 4; attach r2 p1 0; fork r2 3MiB; close r1; "
)
UNCERTAIN = "reserve 2; commit 0..2; publish 1; fault set_access lasting; seal; "
LOST = "reserve 1; fault map ILLEGAL_ADDRESS; commit 0..1; "


@pytest.mark.parametrize(
    ("script", "holds", "does_not", "found"),
    [
        ("reserve 2; ", "done", "failed", "the outcome is Done(value=1)"),
        ("reserve 2; ", "done 1", "done 2", "the outcome is Done(value=1)"),
        ("reserve 0; ", "refused RANGE", "done", "the outcome is RANGE (size_bytes=0"),
        ("reserve 0; ", "refused RANGE", "failed", "the outcome is RANGE (size_bytes=0"),
        ("reserve 0; ", "refused RANGE", "refused STALE", "the outcome is RANGE"),
        ("reserve 0; ", "calls none", "calls fence", "the calls are none"),
        ("reserve 0; ", "unchanged", "lost", "the device is still there"),
        ("close; ", "refused STALE", "kept none", "the outcome is STALE"),
        ("set_limit 3; ", "done", "done 0", "the outcome is Done(value=None)"),
        (f"{FILLED}commit 0..4; ", "done 0", "done 4", "the outcome is Done(value=0)"),
        (f"{FILLED}release 0..5; ", "done 5", "done 4", "the outcome is Done(value=Released("),
        (f"{FILLED}release 2..5; ", "kept 2 3", "kept none", "kept=(2, 3)"),
        (f"{FILLED}release 0..5; ", "kept none", "kept 1", "kept=()"),
        (f"{FILLED}commit 0..4; ", "done", "kept none", "the outcome is Done(value=0)"),
        (f"{FILLED}release 0..4; ", "pooled 4", "pooled 3", "pooled is 4"),
        (f"{FILLED}release 0..4; ", "mapped 1", "mapped 0", "mapped is 1"),
        (f"{FILLED}release 0..4; ", "charged 5", "charged 4", "charged is 5"),
        (f"{FILLED}release 0..4; ", "owned 5", "owned 1", "owned is 5"),
        (f"{FILLED}release 0..4; ", "committed 1", "committed 5", "1 windows are committed"),
        (f"{FILLED}set_limit 3; ", "free -2", "free 2", "free is -2"),
        (f"{FILLED}set_limit 3; ", "done", "unchanged", "the state changed: Ledger("),
        (
            f"{FILLED}release 0..4; ",
            "calls fence clear fence unmap",
            "calls fence unmap",
            "the calls are fence clear fence unmap",
        ),
        (f"{FILLED}close; ", "ranges 0", "ranges 1", "0 ranges are held"),
        (f"{FILLED}close; ", "done 0", "done 1", "the outcome is Done(value=())"),
        (f"{BROKEN}", "failed", "done", "the outcome is Failed("),
        (f"{BROKEN}", "failed map", "failed unmap", "the outcome is Failed("),
        (
            f"{BROKEN}",
            "failed map OUT_OF_MEMORY",
            "failed map UNKNOWN",
            "the outcome is Failed(",
        ),
        (f"{BROKEN}", "attached release", "attached map", "the outcome is Failed("),
        (
            f"{BROKEN}",
            "attached unmap UNKNOWN",
            "attached unmap INVALID_VALUE",
            "the outcome is Failed(",
        ),
        (f"{BROKEN}", "failed", "refused RANGE", "the outcome is Failed("),
        (f"{BROKEN}", "failed", "unchanged", "the state changed"),
        (f"{BROKEN}", "doubtful 1", "doubtful 2", "1 windows are doubtful"),
        (f"{BROKEN}", "quarantined 1", "quarantined 0", "quarantined is 1"),
        (f"{BROKEN}close; ", "done 1", "done 0", "the outcome is Done(value=(0,))"),
        ("reserve 1; ", "done", "attached map", "the outcome is Done(value=1)"),
        (
            "reserve 1; fault create; commit 0..1; ",
            "unattributed 1",
            "unattributed 0",
            "unattributed is 1",
        ),
        (SHARED, "shared 3", "shared 2", "3 windows are shared"),
        (SHARED, "committed 4", "committed 3", "4 windows are committed"),
        (SHARED, "mapped 4", "mapped 2", "mapped is 4"),
        (SHARED, "charged 3", "charged 4", "charged is 3"),
        (SHARED, "prefixes 1", "prefixes 0", "1 prefixes live"),
        (f"{SHARED}close r3; ", "held 0", "held 1", "held is 0"),
        (f"{SHARED}close r3; release r2 1..2; ", "held 1", "held 0", "held is 1"),
        (f"{SHARED}close r2; close r3; ", "held 2", "held 3", "held is 2"),
        (f"{SHARED}close r2; close r3; ", "shared 0", "shared 2", "0 windows are shared"),
        (f"{SHARED}retire; ", "prefixes 0", "prefixes 1", "0 prefixes live"),
        (f"{SHARED}retire; ", "done 0", "done 2", "the outcome is Done(value=0)"),
        (f"{SHARED}attach r2 p1 2; ", "done 2", "done 1", "the outcome is Done(value=2)"),
        (f"{SHARED}attach r2 p1 1; ", "refused OCCUPIED", "done", "the outcome is OCCUPIED"),
        (f"{SHARED}fork r2 1 and r2 2; ", "done 2", "done 1", "the outcome is Done(value=(4, 5))"),
        (f"{SHARED}publish r3 1; ", "done 2", "done 1", "the outcome is Done(value=2)"),
        (f"{SHARED}publish r3 1; ", "prefixes 2", "unchanged", "the state changed"),
        (f"{SHARED}seal; ", "unchanged", "calls fence", "the calls are none"),
        (UNCERTAIN, "uncertain 1", "uncertain 0", "1 windows are uncertain"),
        (UNCERTAIN, "committed 2", "doubtful 1", "0 windows are doubtful"),
        (f"{UNCERTAIN}seal; ", "uncertain 0", "shared 0", "1 windows are shared"),
        (LOST, "lost", "done", "the outcome is Failed("),
        ("reserve 1; ", "ranges 1", "ranges -1", "1 ranges are held"),
    ],
)
def test_expectation_holds_or_says_what_is_the_case(
    script: str, holds: str, does_not: str, found: str
) -> None:
    assert finding(f"{script}expect {holds}") is None
    assert found in (finding(f"{script}expect {does_not}") or "")


CALLS = (
    "one of address_reserve, create, map, set_access, clear, unmap, release, address_free,"
    " fence, query, copy"
)
WORDS = (
    "one of done, kept, refused, failed, attached, unchanged, calls, charged, owned, mapped,"
    " held, pooled, quarantined, unattributed, free, committed, shared, uncertain, doubtful,"
    " ranges, prefixes, lost"
)
REFUSALS = (
    "one of DEVICE_LOST, STALE, RANGE, MISALIGNED, TOO_LONG, STRADDLING, QUARANTINED,"
    " RIGHTS_UNKNOWN, SHARED, OCCUPIED, REPEATED, UNSEALED, NOT_COMMITTED, BUDGET"
)


@pytest.mark.parametrize(
    ("marked", "problem"),
    [
        # The word in brackets is what is pointed at; empty ones point behind the last word.
        ("expect<>", f"expect what? {WORDS}"),
        ("expect <luck>", f"nobody can expect that; {WORDS}"),
        ("expect done <well>", "this is no whole number"),
        ("expect done 1 <2>", "nothing more can stand here"),
        ("expect kept<>", "which windows are kept? their numbers, or none"),
        ("expect kept 1 <none>", "this is no whole number"),
        ("expect refused<>", f"refused why? {REFUSALS}"),
        ("expect refused <FULL>", f"there is no such refusal; {REFUSALS}"),
        ("expect refused RANGE <STALE>", "nothing more can stand here"),
        ("expect failed <mmap>", f"there is no such call; {CALLS}"),
        ("expect failed map <OOM>", "there is no such code; one of INVALID_VALUE, OUT_OF_MEMORY"),
        ("expect failed map UNKNOWN <2>", "nothing more can stand here"),
        ("expect attached<>", "a fault of which call is attached?"),
        ("expect attached <none>", f"there is no such call; {CALLS}"),
        ("expect attached map <2>", "there is no such code; one of INVALID_VALUE, OUT_OF_MEMORY"),
        ("expect unchanged <much>", "nothing more can stand here"),
        ("expect lost <1>", "nothing more can stand here"),
        ("expect calls<>", f"which calls? none, or {CALLS}"),
        ("expect calls map <mmap>", f"there is no such call; {CALLS}"),
        ("expect calls map <none>", f"there is no such call; {CALLS}"),
        ("expect free<>", "a number is missing"),
        ("expect free <much>", "this is no whole number"),
        ("expect free <--3>", "this is no whole number"),
        ("expect free <²>", "this is no whole number"),
        ("expect free 1 <2>", "nothing more can stand here"),
        ("expect doubtful<>", "a number is missing"),
        ("expect ranges 1 <2>", "nothing more can stand here"),
        ("expect held<>", "a number is missing"),
        ("expect held <much>", "this is no whole number"),
        ("expect shared<>", "a number is missing"),
        ("expect shared 1 <2>", "nothing more can stand here"),
        ("expect uncertain <x>", "this is no whole number"),
        ("expect prefixes<>", "a number is missing"),
        ("expect prefixes <p1>", "this is no whole number"),
        ("expect prefixes 1 <2>", "nothing more can stand here"),
        ("expect failed <sealed>", f"there is no such call; {CALLS}"),
    ],
)
def test_mistake_is_pointed_at(marked: str, problem: str) -> None:
    before, _, rest = marked.partition("<")
    word, _, after = rest.partition(">")
    line = f"  {before}{word}{after}; close"
    with pytest.raises(LanguageError) as caught:
        _ = parse(f"reserve 1\n{line}\n")
    error = caught.value
    assert error.problem.startswith(problem)
    assert (error.line, error.column) == (2, len(before) + 3)
    first, shown, marks = str(error).split("\n")
    assert first == f"line 2: {error.problem}"
    assert shown == f"  {line}"
    assert marks == " " * (error.column + 1) + "^" * max(1, len(word))


def test_expectation_keeps_its_text() -> None:
    ((expect,),) = parse("close; expect   refused STALE # gone\n").expected.values()
    assert expect.text == "expect refused STALE"
