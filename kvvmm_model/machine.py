"""Operations as values, and one function that applies any of them to a state."""

from typing import assert_never

from attrs import frozen

from kvvmm_model.ops.attach import Target, attach
from kvvmm_model.ops.close import close
from kvvmm_model.ops.commit import commit
from kvvmm_model.ops.fork import Parent, fork
from kvvmm_model.ops.publish import publish
from kvvmm_model.ops.reclaim import reclaim
from kvvmm_model.ops.release import release
from kvvmm_model.ops.reserve import reserve
from kvvmm_model.ops.retire import retire
from kvvmm_model.ops.seal import seal
from kvvmm_model.ops.set_limit import set_limit
from kvvmm_model.ops.trim import trim
from kvvmm_model.state import State, Transition
from kvvmm_model.vocabulary import Driver


@frozen
class Reserve:
    """Take an address range."""

    size_bytes: object
    alignment_bytes: object = 0


@frozen
class Commit:
    """Back windows with memory; ``reservation`` is a serial."""

    reservation: object
    offset_bytes: object
    size_bytes: object


@frozen
class Release:
    """Take memory from windows."""

    reservation: object
    offset_bytes: object
    size_bytes: object


@frozen
class Close:
    """End a reservation."""

    reservation: object


@frozen
class Publish:
    """Make a prefix of a reservation's leading memory."""

    reservation: object
    size_bytes: object


@frozen
class Seal:
    """Make a prefix readable for all and writable for nobody."""

    prefix: object


@frozen
class Attach:
    """Map prefixes into reservations: each target is a reservation, a prefix, an offset."""

    targets: tuple[Target, ...]


@frozen
class Retire:
    """End a prefix."""

    prefix: object


@frozen
class Fork:
    """Make children: each parent is a reservation and a length in bytes."""

    parents: tuple[Parent, ...]


@frozen
class Trim:
    """Give pooled memory back."""

    size_bytes: object


@frozen
class Reclaim:
    """End quarantine: of one reservation, or of all."""

    reservation: object = None


@frozen
class SetLimit:
    """Set how much may be charged."""

    size_bytes: object


Operation = (
    Reserve
    | Commit
    | Release
    | Close
    | Publish
    | Seal
    | Attach
    | Retire
    | Fork
    | Trim
    | Reclaim
    | SetLimit
)

OPERATIONS: dict[str, type[Operation]] = {
    "reserve": Reserve,
    "commit": Commit,
    "release": Release,
    "close": Close,
    "publish": Publish,
    "seal": Seal,
    "attach": Attach,
    "retire": Retire,
    "fork": Fork,
    "trim": Trim,
    "reclaim": Reclaim,
    "set_limit": SetLimit,
}


def name_of(operation: Operation) -> str:
    """The operation's name, as the glossary spells it."""
    return _NAMES[type(operation)]


_NAMES: dict[type[Operation], str] = {kind: name for name, kind in OPERATIONS.items()}


def apply(state: State, operation: Operation, driver: Driver) -> Transition:
    """The transition that an operation makes; every operation has one in every state."""
    match operation:
        case Reserve(size, alignment):
            return reserve(state, size, alignment, driver)
        case Commit(reservation, offset, size):
            return commit(state, reservation, offset, size, driver)
        case Release(reservation, offset, size):
            return release(state, reservation, offset, size, driver)
        case Close(reservation):
            return close(state, reservation, driver)
        case Publish(reservation, size):
            return publish(state, reservation, size)
        case Seal(prefix):
            return seal(state, prefix, driver)
        case Attach(targets):
            return attach(state, targets, driver)
        case Retire(prefix):
            return retire(state, prefix, driver)
        case Fork(parents):
            return fork(state, parents, driver)
        case Trim(size):
            return trim(state, size, driver)
        case Reclaim(reservation):
            return reclaim(state, reservation, driver)
        case SetLimit(size):
            return set_limit(state, size)
        case _:
            assert_never(operation)
