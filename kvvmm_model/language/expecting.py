"""What a script says must hold: after an operation, of its outcome, the ledger and its calls."""

from collections.abc import Callable
from typing import cast

from attrs import frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.comparison import Seen
from kvvmm_model.language.words import Statement, Word, one_of, whole
from kvvmm_model.state import Mapping, State
from kvvmm_model.vocabulary import Code, Done, Failed, Fault, Refusal, Refused, Released, Rights

LEDGER = ("charged", "owned", "mapped", "held", "pooled", "quarantined", "unattributed", "free")
STATES: dict[str, Callable[[Mapping], bool]] = {
    "committed": lambda mapping: not mapping.quarantined,
    "shared": lambda mapping: mapping.sealed and not mapping.quarantined,
    "uncertain": lambda mapping: mapping.rights is Rights.UNKNOWN and not mapping.quarantined,
    "doubtful": lambda mapping: mapping.quarantined,
}
"""Of windows: any that are not in doubt; those of them that are sealed, or of unknown rights."""
WORDS = (
    *("done", "kept", "refused", "failed", "attached", "unchanged", "calls"),
    *(*LEDGER, *STATES, "ranges", "prefixes", "lost"),
)


@frozen
class Expect:
    """One ``expect`` statement: its text, and what is wrong with a step, if anything."""

    text: str
    check: Callable[[Seen], str | None]


def read_expect(statement: Statement) -> Expect:
    """The expectation that a statement means."""
    words = statement.words[1:]
    if not words:
        raise statement.missing(f"expect what? {one_of(WORDS)}")
    text = " ".join(word.text for word in statement.words)
    return Expect(text, _check(statement, words[0], words[1:]))


def _check(
    statement: Statement, first: Word, rest: tuple[Word, ...]
) -> Callable[[Seen], str | None]:
    match first.text:
        case "done":
            return _done(statement, rest)
        case "kept":
            return _kept(statement, rest)
        case "refused":
            return _refused(statement, rest)
        case "failed":
            return _failed(statement, rest)
        case "attached":
            return _attached(statement, rest)
        case "unchanged":
            _no_more(statement, rest)
            return _unchanged
        case "lost":
            _no_more(statement, rest)
            return _lost
        case "calls":
            return _calls(statement, rest)
        case "ranges":
            return _count_of(statement, "ranges are held", rest, lambda s: len(s.reservations))
        case "prefixes":
            return _count_of(statement, "prefixes live", rest, lambda s: len(s.prefixes))
        case name if name in LEDGER:
            return _ledger(statement, name, rest)
        case name if name in STATES:
            return _windows(statement, name, rest)
        case _:
            raise statement.error(first, f"nobody can expect that; {one_of(WORDS)}")


def _no_more(statement: Statement, rest: tuple[Word, ...]) -> None:
    if rest:
        raise statement.error(rest[0], "nothing more can stand here")


def _number(statement: Statement, rest: tuple[Word, ...]) -> int:
    if not rest:
        raise statement.missing("a number is missing")
    _no_more(statement, rest[1:])
    return _whole(statement, rest[0])


def _whole(statement: Statement, word: Word) -> int:
    number = whole(word.text)
    if number is None:
        raise statement.error(word, "this is no whole number")
    return number


def _done(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Seen], str | None]:
    """What was done, as a number: of close, how many windows it left behind in quarantine."""
    wanted = _number(statement, rest) if rest else None

    def check(seen: Seen) -> str | None:
        outcome = seen.transition.outcome
        right = isinstance(outcome, Done) and wanted in (None, _amount_done(outcome.value))
        return None if right else f"the outcome is {outcome}"

    return check


def _amount_done(value: object) -> object:
    match value:
        case Released(size, _):
            return size
        case tuple():
            return len(cast("tuple[object, ...]", value))
        case _:
            return value


def _kept(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Seen], str | None]:
    """Which windows of its range a release left, since their handle reaches beyond it."""
    if not rest:
        raise statement.missing("which windows are kept? their numbers, or none")
    nothing = [word.text for word in rest] == ["none"]
    wanted = () if nothing else tuple(_whole(statement, word) for word in rest)

    def check(seen: Seen) -> str | None:
        outcome = seen.transition.outcome
        value = outcome.value if isinstance(outcome, Done) else None
        right = isinstance(value, Released) and value.kept == wanted
        return None if right else f"the outcome is {outcome}"

    return check


def _refused(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Seen], str | None]:
    reasons = [reason.name for reason in Refusal]
    if not rest:
        raise statement.missing(f"refused why? {one_of(reasons)}")
    _no_more(statement, rest[1:])
    if rest[0].text not in reasons:
        raise statement.error(rest[0], f"there is no such refusal; {one_of(reasons)}")

    def check(seen: Seen) -> str | None:
        outcome = seen.transition.outcome
        right = isinstance(outcome, Refused) and outcome.reason.name == rest[0].text
        return None if right else f"the outcome is {outcome}"

    return check


def _failed(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Seen], str | None]:
    """The first fault, as far as it is given."""
    fits = _fault(statement, rest)

    def check(seen: Seen) -> str | None:
        outcome = seen.transition.outcome
        right = isinstance(outcome, Failed) and fits(outcome.fault)
        return None if right else f"the outcome is {outcome}"

    return check


def _attached(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Seen], str | None]:
    """One of the faults that came after the first."""
    if not rest:
        raise statement.missing("a fault of which call is attached?")
    fits = _fault(statement, rest)

    def check(seen: Seen) -> str | None:
        outcome = seen.transition.outcome
        right = isinstance(outcome, Failed) and any(map(fits, outcome.cleanup_faults))
        return None if right else f"the outcome is {outcome}"

    return check


def _fault(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Fault], bool]:
    """Whether a fault is of this call and this code."""
    kinds, codes = [kind.value for kind in Kind], [code.name for code in Code]
    if rest and rest[0].text not in kinds:
        raise statement.error(rest[0], f"there is no such call; {one_of(kinds)}")
    if len(rest) > 1 and rest[1].text not in codes:
        raise statement.error(rest[1], f"there is no such code; {one_of(codes)}")
    _no_more(statement, rest[2:])

    def fits(fault: Fault) -> bool:
        told = (fault.step.value, fault.name)
        return all(word.text == is_told for word, is_told in zip(rest, told, strict=False))

    return fits


def _unchanged(seen: Seen) -> str | None:
    before, after = seen.before, seen.transition.state
    same = (before.reservations, before.handles, before.prefixes, before.pool, before.ledger) == (
        after.reservations,
        after.handles,
        after.prefixes,
        after.pool,
        after.ledger,
    )
    return None if same else f"the state changed: {before.ledger} became {after.ledger}"


def _lost(seen: Seen) -> str | None:
    return None if seen.transition.state.lost else "the device is still there"


def _calls(statement: Statement, rest: tuple[Word, ...]) -> Callable[[Seen], str | None]:
    """All calls of the operation, in their order."""
    kinds = [kind.value for kind in Kind]
    if not rest:
        raise statement.missing(f"which calls? none, or {one_of(kinds)}")
    wanted = [word.text for word in rest]
    if wanted == ["none"]:
        wanted, rest = [], ()
    for word in rest:
        if word.text not in kinds:
            raise statement.error(word, f"there is no such call; {one_of(kinds)}")

    def check(seen: Seen) -> str | None:
        made = [call.step.value for call in seen.calls]
        return None if made == wanted else f"the calls are {' '.join(made) or 'none'}"

    return check


def _ledger(
    statement: Statement, name: str, rest: tuple[Word, ...]
) -> Callable[[Seen], str | None]:
    wanted = _number(statement, rest)

    def check(seen: Seen) -> str | None:
        found = getattr(seen.transition.state.ledger, name)
        return None if found == wanted else f"{name} is {found}"

    return check


def _windows(
    statement: Statement, name: str, rest: tuple[Word, ...]
) -> Callable[[Seen], str | None]:
    """How many windows are in a state, in all reservations together."""
    wanted, fits = _number(statement, rest), STATES[name]

    def check(seen: Seen) -> str | None:
        found = sum(
            mapping.size
            for found in seen.transition.state.reservations.values()
            for mapping in found.mappings
            if fits(mapping)
        )
        return None if found == wanted else f"{found} windows are {name}"

    return check


def _count_of(
    statement: Statement, what: str, rest: tuple[Word, ...], count: Callable[[State], int]
) -> Callable[[Seen], str | None]:
    """How many address ranges are held or not confirmed given back, or how many prefixes live."""
    wanted = _number(statement, rest)

    def check(seen: Seen) -> str | None:
        found = count(seen.transition.state)
        return None if found == wanted else f"{found} {what}"

    return check
