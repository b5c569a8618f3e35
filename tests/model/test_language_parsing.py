"""Text into sequences: what may be written, and where each mistake is pointed at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.language import LanguageError, Script, parse, parse_statement
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
from kvvmm_model.sequence import NAN, NO_FAULTS, Step, World
from kvvmm_model.vocabulary import Code, Policy, Settings

G = 2 << 20
USUAL = World(Settings(G, longest_run=64), limit=64, capacity=64)


def operations_of(text: str) -> list[Operation]:
    return [step.operation for step in parse(text).sequence.steps]


# --- statements ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "reserve 4; commit 0..4",
        "reserve 4\ncommit 0..4\n",
        "reserve 4;\n\n;; commit 0..4;",
        "# a comment\nreserve 4  # another; close\n  commit  0..4#close",
        "reserve\t4\r\ncommit r1 0..4\r\n",
    ],
)
def test_statements_end_with_a_semicolon_or_a_line(text: str) -> None:
    assert operations_of(text) == [Reserve(4 * G), Commit(1, 0, 4 * G)]


@pytest.mark.parametrize("text", ["", " \n;\n# nothing\n"])
def test_text_without_statements_is_an_empty_sequence(text: str) -> None:
    assert parse(text) == Script(parse("", USUAL).sequence, {})
    assert parse(text).sequence.steps == ()
    assert parse(text).sequence.world == USUAL


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("0", 0), ("3", 3 * G), ("-3", -3 * G), ("1B", 1), ("-1B", -1), ("4KiB", 4096)),
        *(("2MiB", G), ("1GiB", 1 << 30), ("3TiB", 3 << 40), ("007", 7 * G)),
        *(("none", None), ("true", True), ("false", False), ("1.5", 1.5), ("-inf", -float("inf"))),
        *(('"4096"', "4096"), ('"a; b # c"', "a; b # c"), ('""', ""), ('"\\u00e4\\n"', "ä\n")),
    ],
)
def test_amounts(text: str, size: object) -> None:
    (operation,) = operations_of(f"trim {text}")
    assert repr(operation) == repr(Trim(size))


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan"])
def test_there_is_one_nan(text: str) -> None:
    (operation,) = operations_of(f"trim {text}")
    assert isinstance(operation, Trim)
    assert operation.size_bytes is NAN


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("reserve 2 align 1GiB", Reserve(2 * G, 1 << 30)),
        ("commit 1..3", Commit(1, G, 2 * G)),
        ("commit r2 1..3", Commit(2, G, 2 * G)),
        ("commit r2 1B..4KiB", Commit(2, 1, 4095)),
        ("commit 2..2", Commit(1, 2 * G, 0)),
        ("commit -1..1", Commit(1, -G, 2 * G)),
        ("release at 1 size -3B", Release(1, G, -3)),
        ("release r=none at none size true", Release(None, None, True)),
        ("close", Close(1)),
        ("close r0", Close(0)),
        ("close r=7", Close(7)),
        ("close r=-7", Close(-7)),
        ('close r="r1"', Close("r1")),
        ("reclaim", Reclaim(None)),
        ("reclaim r1", Reclaim(1)),
        ("set_limit 3", SetLimit(3 * G)),
        ("publish 4", Publish(1, 4 * G)),
        ("publish r2 5MiB", Publish(2, 5 << 20)),
        ("publish r=none true", Publish(None, True)),
        ("seal", Seal(1)),
        ("seal p2", Seal(2)),
        ("seal p=-1", Seal(-1)),
        ("retire", Retire(1)),
        ("retire p0", Retire(0)),
        ('retire p="p1"', Retire("p1")),
        ("attach 0", Attach(((1, 1, 0),))),
        ("attach r2 0", Attach(((2, 1, 0),))),
        ("attach p2 1", Attach(((1, 2, G),))),
        ("attach r2 p1 3", Attach(((2, 1, 3 * G),))),
        ("attach r2 p1 4KiB and r3 p2 -1B", Attach(((2, 1, 4096), (3, 2, -1)))),
        ("attach r=none p=1.5 none", Attach(((None, 1.5, None),))),
        ("attach nothing", Attach(())),
        ("fork 6", Fork(((1, 6 * G),))),
        ("fork r2 5MiB", Fork(((2, 5 << 20),))),
        ("fork r1 3 and r2 3 and 1B", Fork(((1, 3 * G), (2, 3 * G), (1, 1)))),
        ("fork nothing", Fork(())),
    ],
)
def test_operations(text: str, operation: Operation) -> None:
    assert [repr(found) for found in operations_of(text)] == [repr(operation)]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("map", FaultSpec(Kind.MAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN)),
        ("map 2", FaultSpec(Kind.MAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN, nth=2)),
        ("map effect 2", FaultSpec(Kind.MAP, Manner.WITH_EFFECT, Code.UNKNOWN, nth=2)),
        (
            "unmap lasting part=3 NOT_PERMITTED 4",
            FaultSpec(Kind.UNMAP, Manner.IN_PART, Code.NOT_PERMITTED, 4, 3, lasting=True),
        ),
        ("unmap part=0", FaultSpec(Kind.UNMAP, Manner.IN_PART, Code.UNKNOWN)),
        ("query code=77", FaultSpec(Kind.QUERY, Manner.WITHOUT_EFFECT, 77)),
    ],
)
def test_faults(text: str, spec: FaultSpec) -> None:
    assert parse_statement(f"fault {text}; trim 0", G).faults.specs == (spec,)


def test_faults_belong_to_the_next_operation() -> None:
    script = parse("reserve 1; fault map; fault unmap 2\n commit 0..1; commit 0..1")
    plans = [step.faults for step in script.sequence.steps]
    assert [[spec.step for spec in plan.specs] for plan in plans] == [
        [],
        [Kind.MAP, Kind.UNMAP],
        [],
    ]
    assert plans[0] is plans[2] is NO_FAULTS


def test_expectations_belong_to_the_operation_before() -> None:
    script = parse("reserve 1; expect done; expect free 64\ncommit 0..1; close; expect  ranges  0")
    assert {number: [each.text for each in found] for number, found in script.expected.items()} == {
        0: ["expect done", "expect free 64"],
        2: ["expect ranges 0"],
    }


def test_world_is_the_usual_one_but_for_what_is_said() -> None:
    text = (
        "world granularity=4KiB policy=run longest_run=4 retention=2 clear_pooled=no\n"
        "world limit=0 capacity=9; reserve 2"
    )
    sequence = parse(text).sequence
    assert sequence.world == World(Settings(4096, Policy.RUN, 4, 2, clear_pooled=False), 0, 9)
    assert sequence.steps == (Step(Reserve(8192)),)
    assert parse("world clear_pooled=yes", sequence.world).sequence.world.settings.clear_pooled


def test_one_statement_is_one_operation_with_its_faults() -> None:
    assert parse_statement("commit 0..2", 4096) == Step(Commit(1, 0, 8192))
    with pytest.raises(ValueError, match="is 0 steps: give one operation with its faults"):
        _ = parse_statement("# nothing", 4096)
    with pytest.raises(ValueError, match="is 2 steps: give one operation with its faults"):
        _ = parse_statement("close; close", 4096)


# --- mistakes -----------------------------------------------------------------------------------


def test_error_shows_the_line_and_points_at_the_word() -> None:
    with pytest.raises(LanguageError) as caught:
        _ = parse("# growing\nreserve 4\n  commit 0..4; close r1 now; trim 1\nreclaim\n")
    error = caught.value
    assert (error.line, error.column) == (3, 25)
    assert error.problem == "nothing more can stand here"
    assert str(error) == (
        "line 3: nothing more can stand here\n"
        "    commit 0..4; close r1 now; trim 1\n"
        "                          ^^^"
    )


def test_error_points_behind_the_last_word_when_something_is_missing() -> None:
    with pytest.raises(LanguageError) as caught:
        _ = parse("reserve  # how much?\n")
    assert (caught.value.line, caught.value.column) == (1, 8)
    assert str(caught.value) == ("line 1: size is missing\n  reserve  # how much?\n         ^")


def test_error_points_at_the_word_behind_tabs() -> None:
    with pytest.raises(LanguageError) as caught:
        _ = parse("\treserve\tx")
    assert caught.value.column == 10
    assert str(caught.value).splitlines()[1:] == ["  \treserve\tx", "  \t       \t^"]


NO_SIZE = "this is no size: give granules, or bytes with a unit, as 4 or 2MiB"
CALLS = "one of address_reserve, create, map, set_access, clear, unmap, release, address_free,"
STATEMENTS = (
    "one of world, fault, expect, reserve, commit, release, close,"
    " publish, seal, attach, retire, fork, trim, reclaim, set_limit"
)
NO_PREFIX = "prefixes are p1, p2 and so on"
NO_CODE = "this is no code, and none of a number, effect, lasting, part=K, code=N"
QUERY, CREATE, MAP = (f"{name} that answers" for name in ("query", "create", "map"))
IN_PART = "IN_PART is for set_access, clear, copy and unmap"
OF_A_WORLD = "one of granularity, policy, longest_run, retention, clear_pooled, limit, capacity"
FROM_0, FROM_1 = (f"cannot be that: give a whole number of granules from {n} on" for n in (0, 1))
MISTAKES = [
    # The word in brackets is what is pointed at; empty ones point behind the last word.
    ("<resrve> 4", f"this is no statement; {STATEMENTS}"),
    ("reserve 4\n<4>; close", f"this is no statement; {STATEMENTS}"),
    ("reserve<>", "size is missing"),
    ("reserve <x>", NO_SIZE),
    ("reserve <4XB>", NO_SIZE),
    ("reserve <4kib>", NO_SIZE),
    ('reserve <">4', NO_SIZE),
    ('reserve <"\\q">', NO_SIZE),
    ('reserve <"4"4>', NO_SIZE),
    ("reserve 4 align<>", "alignment is missing"),
    ("reserve 4 align <r1>", NO_SIZE.replace("size", "alignment")),
    ("reserve 4 <algn> 4", "nothing more can stand here"),
    ("commit<>; close", "a range of windows, as 0..4, is missing"),
    ("commit r1<>\n", "a range of windows, as 0..4, is missing"),
    ("commit <4>", "a range of windows is written as 0..4"),
    ("commit <0..x>", NO_SIZE.replace("size", "window")),
    ("commit <..4>", NO_SIZE.replace("size", "window")),
    ("commit <0..>", NO_SIZE.replace("size", "window")),
    ("commit <4..0>", "a range goes up, from the first to behind the last"),
    ("commit <none..4>", "a range goes up, from the first to behind the last"),
    ("commit <0..1.5>", "a range goes up, from the first to behind the last"),
    ("commit <0..true>", "a range goes up, from the first to behind the last"),
    ("commit 0..4 <0..4>", "nothing more can stand here"),
    ("commit at<>", "offset is missing"),
    ("commit at <x> size 4", NO_SIZE.replace("size", "offset")),
    ("commit at 0<>", "after at and an offset comes size, as in at 1MiB size 4KiB"),
    ("commit at 0 <4>", "after at and an offset comes size, as in at 1MiB size 4KiB"),
    ("commit at 0 size<>", "size is missing"),
    ("release <rx> 0..4", "reservations are r1, r2 and so on"),
    ("close <r>", "reservations are r1, r2 and so on"),
    ("close <r=>", "reservations are r1, r2 and so on"),
    ("close <r-1>", "reservations are r1, r2 and so on"),
    ("close <r²>", "reservations are r1, r2 and so on"),
    ('close <r"1">', "reservations are r1, r2 and so on"),
    ("close <1>", "nothing more can stand here"),
    ("publish<>", "size is missing"),
    ("publish r1<>; close", "size is missing"),
    ("publish r1 <0..4>", NO_SIZE),
    ("publish <p1> 4", NO_SIZE),
    ("publish r1 4 <5>", "nothing more can stand here"),
    ("publish <rx> 4", "reservations are r1, r2 and so on"),
    ("seal <r1>", "nothing more can stand here"),
    ("seal <1>", "nothing more can stand here"),
    ("seal <p>", NO_PREFIX),
    ("seal <p-1>", NO_PREFIX),
    ("seal p1 <p2>", "nothing more can stand here"),
    ("retire <px>", NO_PREFIX),
    ("retire p1 <and> p2", "nothing more can stand here"),
    ("attach<>", "offset is missing"),
    ("attach r2 p1<>; close", "offset is missing"),
    ("attach p1 <r2> 0", NO_SIZE.replace("size", "offset")),
    ("attach r2 <r3> 0", NO_SIZE.replace("size", "offset")),
    ("attach r2 p1 <0..2>", NO_SIZE.replace("size", "offset")),
    ("attach r2 <p²> 0", NO_PREFIX),
    ("attach r2 p1 0 and<>", "offset is missing"),
    ("attach r2 p1 0 and r3 <px> 0", NO_PREFIX),
    ("attach r2 p1 0 <r3> p1 0", "nothing more can stand here"),
    ("attach nothing <and> r2 p1 0", "nothing more can stand here"),
    ("attach r2 p1 0 and <nothing>", NO_SIZE.replace("size", "offset")),
    ("fork<>", "length is missing"),
    ("fork r1<>\n", "length is missing"),
    ("fork r1 <p1>", NO_SIZE.replace("size", "length")),
    ("fork <rx> 4", "reservations are r1, r2 and so on"),
    ("fork r1 4 and<>", "length is missing"),
    ("fork r1 4 and r2 <0..1>", NO_SIZE.replace("size", "length")),
    ("fork r1 4 <5>", "nothing more can stand here"),
    ("trim<>", "size is missing"),
    ("trim 4 <4>", "nothing more can stand here"),
    ("reclaim r1 <r2>", "nothing more can stand here"),
    ("set_limit<> # to what?", "size is missing"),
    ("fault<>; close", f"a fault of which call? {CALLS} fence, query, copy"),
    ("fault <mmap>; close", f"there is no such call; {CALLS} fence, query, copy"),
    ("fault map <OOM>; close", NO_CODE),
    ("fault map <-1>; close", NO_CODE),
    ("fault map <²>; close", NO_CODE),
    ("fault map <nth=2>; close", NO_CODE),
    ("fault map <2=2>; close", NO_CODE),
    ("fault unmap <part=>; close", NO_CODE),
    ("fault unmap <part=-1>; close", NO_CODE),
    ("fault unmap <part>; close", NO_CODE),
    ("fault map code=77 <UNKNOWN>; close", "code=77 has said that already"),
    ("fault map 1 <1>; close", "1 has said that already"),
    ("fault unmap effect <part=1>; close", "effect has said that already"),
    ("fault unmap part=1 <effect>; close", "part=1 has said that already"),
    ("fault unmap lasting <lasting>; close", "lasting has said that already"),
    ("fault map <0>; close", "nth=0: calls are counted from 1"),
    (
        "fault map 2 <code=0> effect; close",
        "map that answers code 0 (0) with effect is no error: choose a code of 1 or more",
    ),
    (
        "fault query <INVALID_VALUE> 2; close",
        f"{QUERY} INVALID_VALUE (1) without effect is an answer, not a fault: choose another code",
    ),
    (
        "fault create OUT_OF_MEMORY <effect> 2; close",
        f"{CREATE} OUT_OF_MEMORY (2) with effect rules out an effect: choose WITHOUT_EFFECT",
    ),
    (
        "fault query <effect>; close",
        f"{QUERY} UNKNOWN (999) with effect has no effect that could happen: choose WITHOUT_EFFECT",
    ),
    (
        "fault map <part=2> NOT_PERMITTED; close",
        f"{MAP} NOT_PERMITTED (800) in part does not work on a run: {IN_PART}",
    ),
    ("fault map; <fault> unmap # where?", "no operation follows that this fault could belong to"),
    ("close; <world> limit=4", "the world comes before everything in it"),
    ("fault map; <world> limit=4; close", "the world comes before everything in it"),
    (
        "world <size=4>",
        f"a world has no such thing; {OF_A_WORLD}",
    ),
    ("world limit=4 <policy=big>", "policy cannot be that: one of granule, run"),
    ("world <clear_pooled=maybe>", "clear_pooled cannot be that: one of yes, no"),
    ("world <granularity=x>", "granularity cannot be that: give bytes with a unit, as 2MiB"),
    ("world <granularity=0>", "granularity cannot be that: give bytes with a unit, as 2MiB"),
    ("world <granularity=none>", "granularity cannot be that: give bytes with a unit, as 2MiB"),
    ("world <limit>", f"limit {FROM_0}"),
    ("world <limit=-1>", f"limit {FROM_0}"),
    (
        "world <retention=1.5>",
        f"retention {FROM_0}",
    ),
    ("world <capacity=0>", f"capacity {FROM_1}"),
    (
        "world <longest_run=0>",
        f"longest_run {FROM_1}",
    ),
    ("<expect> done", "expect what after which operation?"),
    ("close; fault map; <expect> done; close", "expect what after which operation?"),
]


@pytest.mark.parametrize(("marked", "problem"), MISTAKES)
def test_mistake_is_pointed_at(marked: str, problem: str) -> None:
    before, _, rest = marked.partition("<")
    word, _, after = rest.partition(">")
    with pytest.raises(LanguageError) as caught:
        _ = parse(before + word + after)
    error = caught.value
    assert error.problem == problem
    assert (error.line, error.column) == (
        before.count("\n") + 1,
        len(before.rpartition("\n")[2]) + 1,
    )
    first, shown, marks = str(error).split("\n")
    assert first == f"line {error.line}: {problem}"
    assert shown == "  " + (before + word + after).split("\n")[error.line - 1]
    assert marks == " " * (error.column + 1) + "^" * max(1, len(word))


def mistake_in(text: str) -> LanguageError | None:
    try:
        _ = parse(text)
    except LanguageError as error:
        return error
    return None


@given(st.text() | st.text('reservcommit 0123456789.rfault"#;=\n-BKi'))
def test_any_text_is_read_or_pointed_at(text: str) -> None:
    error = mistake_in(text)
    if error is not None:
        line = text.split("\n")[error.line - 1]
        assert 1 <= error.column <= len(line) + 1


ANY_WORDS = [
    *{word for text, _ in MISTAKES for word in text.replace("<", "").replace(">", "").split()},
    *("r1", "p1", "calls", "none", "kept", "done", "refused", "free", "STALE", ";"),
    *("and", "nothing", "held", "shared", "uncertain", "prefixes"),
]


@given(st.lists(st.sampled_from(sorted(ANY_WORDS))))
def test_any_words_are_read_or_pointed_at(words: list[str]) -> None:
    text = "reserve 4; " + " ".join(words)
    error = mistake_in(text)
    if error is not None:
        assert error.line == 1
        assert 1 <= error.column <= len(text) + 1
