"""Text into sequences; every mistake is pointed at."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import evolve, field, frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner, allowed
from kvvmm_model.language.expecting import Expect, read_expect
from kvvmm_model.language.words import Statement, Word, amount, one_of, statements, whole
from kvvmm_model.machine import (
    OPERATIONS,
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
from kvvmm_model.sequence import NO_FAULTS, Sequence, Step, World
from kvvmm_model.vocabulary import Code, Policy, Settings

USUAL = World(Settings(2 << 20, longest_run=64), limit=64, capacity=64)
"""The world of a script that does not say."""

FIRST_WORDS = ("world", "fault", "expect", *OPERATIONS)


@frozen
class Script:
    """A sequence, and what is expected after its steps: by the number of the step, from 0."""

    sequence: Sequence
    expected: dict[int, tuple[Expect, ...]] = field(factory=dict[int, tuple[Expect, ...]])


def parse(text: str, world: World = USUAL) -> Script:
    """The script that a text means; raises ``LanguageError``.

    ``world`` is what it runs in unless it says otherwise.
    """
    steps: list[Step] = []
    faults: list[FaultSpec] = []
    expected: dict[int, tuple[Expect, ...]] = {}
    last: Statement | None = None
    for statement in statements(text):
        first = statement.words[0]
        match first.text:
            case "world":
                if steps or faults:
                    raise statement.error(first, "the world comes before everything in it")
                world = _read_world(statement, world)
            case "fault":
                faults.append(read_fault(statement))
                last = statement
            case "expect":
                if not steps or faults:
                    raise statement.error(first, "expect what after which operation?")
                number = len(steps) - 1
                expected[number] = (*expected.get(number, ()), read_expect(statement))
            case _:
                operation = read_operation(statement, world.settings.granularity_bytes)
                steps.append(Step(operation, FaultPlan(tuple(faults)) if faults else NO_FAULTS))
                faults = []
    if faults and last is not None:
        raise last.error(last.words[0], "no operation follows that this fault could belong to")
    return Script(Sequence(world, tuple(steps)), expected)


def parse_statement(text: str, unit: int) -> Step:
    """One step: faults, and the operation that they belong to."""
    world = evolve(USUAL, settings=evolve(USUAL.settings, granularity_bytes=unit))
    steps = parse(text, world).sequence.steps
    if len(steps) != 1:
        raise ValueError(f"{text!r} is {len(steps)} steps: give one operation with its faults")
    return steps[0]


# --- operations ----------------------------------------------------------------------------------


_CALLED = {"r": "reservation", "p": "prefix"}
_ALL_CALLED = {"r": "reservations", "p": "prefixes"}
Member = TypeVar("Member")


class _Reader:
    """The words of a statement, one after the other."""

    def __init__(self, statement: Statement, unit: int) -> None:
        self.statement = statement
        self._rest: Iterator[Word] = iter(statement.words[1:])
        self._unit = unit
        self.word: Word | None = next(self._rest, None)

    def take(self, wanted: str) -> Word:
        """The next word, which has to be there."""
        word = self.word
        if word is None:
            raise self.statement.missing(f"{wanted} is missing")
        self.word = next(self._rest, None)
        return word

    def keyword(self, text: str) -> bool:
        """Take the next word if it is this one."""
        if self.word is None or self.word.text != text:
            return False
        _ = self.take(text)
        return True

    def amount(self, wanted: str) -> object:
        """An amount, in bytes."""
        return self._amount_of(self.take(wanted), wanted)

    def _amount_of(self, word: Word, wanted: str, text: str | None = None) -> object:
        try:
            return amount(word.text if text is None else text, self._unit)
        except ValueError:
            problem = f"this is no {wanted}: give granules, or bytes with a unit, as 4 or 2MiB"
            raise self.statement.error(word, problem) from None

    def reference(self, missing: object, letter: str = "r") -> object:
        """A reservation or a prefix, by its letter, or what stands for none."""
        word = self.word
        if word is None or not word.text.startswith(letter):
            return missing
        _ = self.take(_CALLED[letter])
        number = whole(word.text[1:])
        if number is not None and number >= 0:
            return number
        try:
            return amount(word.text.removeprefix(f"{letter}="), 1)  # r=-1, r=none: none can be that
        except ValueError:
            problem = f"{_ALL_CALLED[letter]} are {letter}1, {letter}2 and so on"
            raise self.statement.error(word, problem) from None

    def group(self, each: Callable[[], Member]) -> tuple[Member, ...]:
        """What is written between ``and``, or nothing."""
        if self.keyword("nothing"):
            return ()
        found = [each()]
        while self.keyword("and"):
            found.append(each())
        return tuple(found)

    def span(self) -> tuple[object, object]:
        """Offset and size in bytes, of ``A..B`` or ``at A size B``."""
        if self.keyword("at"):
            offset = self.amount("offset")
            if not self.keyword("size"):
                problem = "after at and an offset comes size, as in at 1MiB size 4KiB"
                raise self.statement.unexpected(self.word, problem)
            return offset, self.amount("size")
        word = self.take("a range of windows, as 0..4,")
        low, dots, high = word.text.partition("..")
        if not dots:
            raise self.statement.error(word, "a range of windows is written as 0..4")
        first = self._amount_of(word, "window", low)
        end = self._amount_of(word, "window", high)
        if type(first) is not int or type(end) is not int or end < first:
            raise self.statement.error(word, "a range goes up, from the first to behind the last")
        return first, end - first

    def end(self, operation: Operation) -> Operation:
        """Nothing more may stand there."""
        if self.word is not None:
            raise self.statement.error(self.word, "nothing more can stand here")
        return operation


def _read_reserve(reader: _Reader) -> Operation:
    size = reader.amount("size")
    return Reserve(size, reader.amount("alignment") if reader.keyword("align") else 0)


def _read_attach(reader: _Reader) -> Operation:
    def target() -> tuple[object, object, object]:
        reservation, prefix = reader.reference(1), reader.reference(1, "p")
        return reservation, prefix, reader.amount("offset")

    return Attach(reader.group(target))


def _read_fork(reader: _Reader) -> Operation:
    return Fork(reader.group(lambda: (reader.reference(1), reader.amount("length"))))


_READERS: dict[str, Callable[[_Reader], Operation]] = {
    "reserve": _read_reserve,
    "commit": lambda reader: Commit(reader.reference(1), *reader.span()),
    "release": lambda reader: Release(reader.reference(1), *reader.span()),
    "close": lambda reader: Close(reader.reference(1)),
    "publish": lambda reader: Publish(reader.reference(1), reader.amount("size")),
    "seal": lambda reader: Seal(reader.reference(1, "p")),
    "attach": _read_attach,
    "retire": lambda reader: Retire(reader.reference(1, "p")),
    "fork": _read_fork,
    "trim": lambda reader: Trim(reader.amount("size")),
    "reclaim": lambda reader: Reclaim(reader.reference(None)),
    "set_limit": lambda reader: SetLimit(reader.amount("size")),
}


def read_operation(statement: Statement, unit: int) -> Operation:
    """The operation that a statement means."""
    first = statement.words[0]
    if first.text not in _READERS:
        raise statement.error(first, f"this is no statement; {one_of(FIRST_WORDS)}")
    reader = _Reader(statement, unit)
    return reader.end(_READERS[first.text](reader))


# --- faults --------------------------------------------------------------------------------------


def read_fault(statement: Statement) -> FaultSpec:
    """The planned fault that a statement means."""
    kinds = {kind.value: kind for kind in Kind}
    if len(statement.words) < 2:
        raise statement.missing(f"a fault of which call? {one_of(kinds)}")
    named = statement.words[1]
    if named.text not in kinds:
        raise statement.error(named, f"there is no such call; {one_of(kinds)}")
    spec: dict[str, int] = {"code": int(Code.UNKNOWN), "nth": 1, "part": 0}
    said: dict[str, Word] = {}
    for word in statement.words[2:]:
        name, value = _fault_word(statement, word)
        about = "manner" if name in ("effect", "part") else name
        if about in said:
            raise statement.error(word, f"{said[about].text} has said that already")
        said[about] = word
        spec[name] = value
    lasting, effect = bool(spec.pop("lasting", 0)), bool(spec.pop("effect", 0))
    manner = Manner.WITH_EFFECT if effect else Manner.WITHOUT_EFFECT
    if not effect and "manner" in said:
        manner = Manner.IN_PART
    kind = kinds[named.text]
    try:
        return FaultSpec(kind, manner, lasting=lasting, **spec)
    except ValueError as error:
        wrong = "nth" if spec["nth"] < 1 else "manner"
        if not allowed(kind, Manner.WITHOUT_EFFECT, spec["code"]):
            wrong = "code"
        raise statement.error(said[wrong], str(error)) from error


def _fault_word(statement: Statement, word: Word) -> tuple[str, int]:
    """What a word says a fault is: which part of it, and its value."""
    if word.text in ("effect", "lasting"):
        return word.text, 1
    if word.text in Code.__members__:
        return "code", int(Code[word.text])
    name, equals, text = word.text.partition("=")
    value = whole(text if equals else word.text)
    if value is not None and value >= 0 and (not equals or name in ("part", "code")):
        return (name if equals else "nth"), value
    raise statement.error(
        word, "this is no code, and none of a number, effect, lasting, part=K, code=N"
    )


# --- worlds --------------------------------------------------------------------------------------


def _read_world(statement: Statement, world: World) -> World:
    for word in statement.words[1:]:
        name, _, text = word.text.partition("=")
        if name not in _WORLD_WORDS:
            problem = f"a world has no such thing; {one_of(_WORLD_WORDS)}"
            raise statement.error(word, problem)
        try:
            world = _WORLD_WORDS[name](world, text)
        except (KeyError, ValueError) as error:
            raise statement.error(word, f"{name} cannot be that: {_remedy(name)}") from error
    return world


def _remedy(name: str) -> str:
    match name:
        case "policy":
            return one_of(policy.value for policy in Policy)
        case "clear_pooled":
            return one_of(_YES_NO)
        case "granularity":
            return "give bytes with a unit, as 2MiB"
        case _:
            return f"give a whole number of granules from {_least(name)} on"


def _least(name: str) -> int:
    return 0 if name in ("retention", "limit") else 1


def _granules(name: str, text: str) -> int:
    value = int(text)
    if value < _least(name):
        raise ValueError(text)
    return value


def _granularity(text: str) -> int:
    value = amount(text, 1)
    if type(value) is not int or value < 1:
        raise ValueError(text)
    return value


def _settings(world: World, settings: Settings) -> World:
    return evolve(world, settings=settings)


_YES_NO = {"yes": True, "no": False}
_WORLD_WORDS: dict[str, Callable[[World, str], World]] = {
    "granularity": lambda world, text: _settings(
        world, evolve(world.settings, granularity_bytes=_granularity(text))
    ),
    "policy": lambda world, text: _settings(world, evolve(world.settings, policy=Policy(text))),
    "longest_run": lambda world, text: _settings(
        world, evolve(world.settings, longest_run=_granules("longest_run", text))
    ),
    "retention": lambda world, text: _settings(
        world, evolve(world.settings, retention=_granules("retention", text))
    ),
    "clear_pooled": lambda world, text: _settings(
        world, evolve(world.settings, clear_pooled=_YES_NO[text])
    ),
    "limit": lambda world, text: evolve(world, limit=_granules("limit", text)),
    "capacity": lambda world, text: evolve(world, capacity=_granules("capacity", text)),
}
