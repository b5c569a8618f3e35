"""Words of the language: cutting a text into them, amounts, and errors that point at one."""

import json
import math
import re
from collections.abc import Iterable, Iterator

from attrs import frozen

from kvvmm_model.sequence import NAN

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

_WORD = re.compile(r'(?:[^\s;#"]|"(?:[^"\\\n]|\\.)*")+|[;\n"]|#[^\n]*')
_NUMBER = re.compile(r"(-?[0-9]+)(B|KiB|MiB|GiB|TiB)?")
_WHOLE = re.compile(r"-?[0-9]{1,1000}")
_LITERALS: dict[str, object] = {"none": None, "true": True, "false": False, "nan": NAN}


class LanguageError(ValueError):
    """A text that does not say anything; shows the line, and points at the word.

    ``line`` and ``column`` count from 1.
    """

    def __init__(self, text: str, start: int, length: int, problem: str) -> None:
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        shown = text[line_start : line_end if line_end >= 0 else len(text)]
        self.problem = problem
        self.line = text.count("\n", 0, start) + 1
        self.column = start - line_start + 1
        before = text[line_start:start]
        marks = re.sub(r"[^\t]", " ", before) + "^" * max(1, length)
        super().__init__(f"line {self.line}: {problem}\n  {shown}\n  {marks}")


@frozen
class Word:
    """A word and where it stands in its text."""

    text: str
    start: int


@frozen
class Statement:
    """The words up to a ``;`` or the end of a line; at least one."""

    source: str
    words: tuple[Word, ...]

    def error(self, word: Word, problem: str) -> LanguageError:
        """An error that points at a word of this statement."""
        return LanguageError(self.source, word.start, len(word.text), problem)

    def missing(self, problem: str) -> LanguageError:
        """An error that points behind the last word."""
        last = self.words[-1]
        return LanguageError(self.source, last.start + len(last.text), 1, problem)

    def unexpected(self, word: Word | None, problem: str) -> LanguageError:
        """An error at what stands where something else should, or at the end."""
        return self.missing(problem) if word is None else self.error(word, problem)


def statements(text: str) -> Iterator[Statement]:
    """Cut a text into statements; comments are left out."""
    words: list[Word] = []
    for found in _WORD.finditer(text):
        word = found.group()
        if word in (";", "\n"):
            if words:
                yield Statement(text, tuple(words))
            words = []
        elif not word.startswith("#"):
            words.append(Word(word, found.start()))
    if words:
        yield Statement(text, tuple(words))


def amount(text: str, unit: int) -> object:
    """The bytes that a word means, or a value that no operation takes; raises ValueError."""
    if text in _LITERALS:
        return _LITERALS[text]
    if text.startswith('"'):
        return json.loads(text, strict=False)
    found = _NUMBER.fullmatch(text)
    if found is not None:
        return int(found[1]) * (unit if found[2] is None else UNITS[found[2]])
    value = float(text)
    return NAN if math.isnan(value) else value


def whole(text: str) -> int | None:
    """The whole number that a word is, if it is one."""
    return int(text) if _WHOLE.fullmatch(text) else None


def show_amount(value: object, unit: int) -> str:
    """The shortest word that means a value."""
    if type(value) is int:
        return str(value // unit) if value % unit == 0 else show_bytes(value)
    if isinstance(value, str):
        return json.dumps(value)
    return "nan" if value is NAN else str(value).lower()


def show_bytes(value: int) -> str:
    """Bytes with the largest unit that measures them."""
    for name, size in reversed(UNITS.items()):
        if value % size == 0:
            return f"{value // size}{name}"
    raise AssertionError(value)  # every number is a multiple of one byte


def one_of(words: Iterable[str]) -> str:
    """What could have stood there."""
    return "one of " + ", ".join(words)
