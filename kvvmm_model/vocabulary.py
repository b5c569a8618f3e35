"""The nouns that the model, the backend and the drivers share.

Sizes without a unit in their name count granules.  A *serial* is our own number for a thing and
is never reused; addresses and handle values are the driver's and are recycled (D-3, D-9).
"""

from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol

from attrs import field, frozen

from kvvmm_model.codes import CODES, STICKY, Code, Step, code_name

__all__ = [
    "MAX_BYTES",
    "Code",
    "Done",
    "Driver",
    "Failed",
    "Fault",
    "HandleView",
    "Ledger",
    "MappingView",
    "Observation",
    "Outcome",
    "Policy",
    "PrefixView",
    "RangeView",
    "Refusal",
    "Refused",
    "Released",
    "Residue",
    "Rights",
    "Settings",
    "Standing",
    "Step",
    "ordered",
    "refused",
]

MAX_BYTES = 1 << 63
"""No size, offset or alignment beyond this is passed to a driver."""


# --- what a driver answers ---------------------------------------------------------------------


@frozen
class Fault:
    """An answer other than success: which call, and the code it gave."""

    step: Step
    code: int

    @property
    def name(self) -> str:
        """The code as the documentation spells it."""
        return code_name(self.code)

    @property
    def sticky(self) -> bool:
        """Whether the process is lost to the device (D-19)."""
        return self.code in STICKY

    @property
    def rules_out_effect(self) -> bool:
        """Whether the call certainly did nothing."""
        return self.code in CODES[self.step].rules_out

    def __str__(self) -> str:
        """For people: ``map: UNKNOWN``."""
        return f"{self.step.value}: {self.name}"


class Rights(IntEnum):
    """What the device may do on a mapping (D-25's numbers); UNKNOWN is ours, after a fault."""

    UNKNOWN = -1
    NONE = 0
    READ = 1
    RW = 3


class Driver(Protocol):
    """The calls that an operation may make; one driver call a method, no decisions inside.

    Addresses and handles are integers; sizes are bytes.  A method gives back what was asked for
    (or None where there is nothing to give), or a ``Fault``.
    """

    @property
    def granularity_bytes(self) -> int:
        """The unit of every size, asked of the driver."""
        ...

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """Take an address range; the address."""
        ...

    def create(self, size_bytes: int) -> int | Fault:
        """Create physical memory that reads as zero; the handle's value."""
        ...

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """Map a whole handle at an address, without rights (D-13)."""
        ...

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """Give rights on a run of whole mappings."""
        ...

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """Start writing zeros over a run of mappings; complete only after a fence."""
        ...

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """Unmap a run of whole mappings; does not wait for the device (D-22)."""
        ...

    def release(self, handle: int) -> Fault | None:
        """Give a handle back."""
        ...

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """Give back exactly one reserved range (D-4)."""
        ...

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """Start copying bytes from one address to another; complete only after a fence."""
        ...

    def fence(self) -> Fault | None:
        """Wait until the device has finished everything that was launched."""
        ...

    def query(self, address: int) -> Rights | None | Fault:
        """The rights of the mapping at an address, or None where nothing is mapped (D-25)."""
        ...


# --- what a manager is set to ------------------------------------------------------------------


class Policy(Enum):
    """How a commit cuts a run of windows into handles."""

    GRANULE = "granule"
    RUN = "run"


@frozen
class Settings:
    """What does not change while a manager lives.

    ``longest_run``: the largest handle that policy ``run`` creates.
    ``retention``: at most this much is kept in the pool.
    ``clear_pooled``: whether memory is cleared on its way into the pool.
    """

    granularity_bytes: int
    policy: Policy = Policy.GRANULE
    longest_run: int = 64
    retention: int = 0
    clear_pooled: bool = True


# --- what an operation answers -----------------------------------------------------------------


class Refusal(Enum):
    """Why an operation was refused before any driver call, in order of precedence.

    The value is the sentence that a user reads: what is wrong, and what to do.
    """

    DEVICE_LOST = "the device was lost to an earlier error; only a new process helps"
    STALE = (
        "this manager has no open reservation, or no live prefix, of that serial; it was closed or"
        " retired, or never ours"
    )
    RANGE = (
        "sizes and offsets are whole bytes, not negative, within the reservation, and a size is"
        " at least 1; an alignment is 0 or a power of two; a group is not empty"
    )
    MISALIGNED = "a prefix is attached at a multiple of the granularity; use the nearest_bytes"
    TOO_LONG = "the prefix reaches beyond the reservation; attach it earlier, or reserve more"
    STRADDLING = (
        "a prefix ends where a handle ends: publish fits_bytes or next_bytes, or commit up to the"
        " cut by itself, so that a handle ends there"
    )
    QUARANTINED = (
        "windows in the range are quarantined: what became of them is not known; call reclaim,"
        " or use another range"
    )
    RIGHTS_UNKNOWN = (
        "a seal failed and could not be undone, so that the rights of windows in the range are not"
        " known; repeat the seal, or release them"
    )
    SHARED = (
        "windows in the range are sealed, and no sealed window is written again; commit from"
        " first_offset_bytes on, or release them first"
    )
    OCCUPIED = "windows in the range hold something; release them, or attach elsewhere"
    REPEATED = (
        "a handle lies twice in the range, and a prefix holds it once; publish fits_bytes, or"
        " attach without repeating"
    )
    UNSEALED = (
        "what is to be shared is not sealed, and could be written under its readers; publish and"
        " seal it first"
    )
    NOT_COMMITTED = (
        "there is no memory where the operation needs it: release wants a whole mapping inside the"
        " range, publish and fork want no hole"
    )
    BUDGET = "the limit leaves no room, even with the pool given up; release memory, or set_limit"


@frozen
class Refused:
    """A "no" before any step: nothing was called and nothing changed."""

    reason: Refusal
    numbers: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        """For people: the reason, its numbers, the remedy."""
        numbers = ", ".join(f"{name}={value!r}" for name, value in self.numbers)
        return f"{self.reason.name} ({numbers}): {self.reason.value}"


def refused(reason: Refusal, **numbers: object) -> Refused:
    """A refusal with its numbers, in the order they are given."""
    return Refused(reason, tuple(numbers.items()))


class Released(NamedTuple):
    """What a release did: granules unmapped, and the windows that a straddling handle keeps."""

    size: int
    kept: tuple[int, ...]


@frozen
class Done:
    """The operation did what it says.

    ``value`` by operation: reserve, the serial; commit, granules newly backed; release, a
    ``Released``; close, the windows that stay quarantined; publish, the prefix's serial; seal,
    granules whose rights were changed; attach, granules mapped; retire and trim, granules confirmed
    released; fork, the children's serials; reclaim, mappings confirmed gone; set_limit, None.
    """

    value: object = None


class Ledger(NamedTuple):
    """What is held and who is charged, in granules; also the difference of two ledgers.

    ``charged`` = ``owned`` + ``unattributed``.  ``owned`` counts handles from create until their
    release is confirmed, each once; ``mapped`` counts mappings not confirmed gone, so that shared
    memory counts once for every window it is seen in; ``held`` (by prefixes alone), ``pooled`` and
    ``quarantined`` count handles; ``unattributed`` is memory that a failed create may have taken,
    ``unattributed_addresses`` the same for address_reserve.
    """

    limit: int = 0
    charged: int = 0
    granted: int = 0
    owned: int = 0
    mapped: int = 0
    held: int = 0
    pooled: int = 0
    quarantined: int = 0
    unattributed: int = 0
    unattributed_addresses: int = 0

    @property
    def free(self) -> int:
        """What may still be granted; negative only after ``set_limit`` (L-2)."""
        return self.limit - self.charged - self.granted

    def plus(self, other: "Ledger") -> "Ledger":
        """Field by field."""
        return Ledger(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: "Ledger") -> "Ledger":
        """Field by field."""
        return Ledger(*(a - b for a, b in zip(self, other, strict=True)))


# --- what can be observed of a manager ---------------------------------------------------------


class Standing(Enum):
    """Of an address range: open; closed around what is quarantined; itself quarantined."""

    OPEN = "open"
    CLOSED = "closed"
    QUARANTINED = "quarantined"

    __hash__ = object.__hash__


class RangeView(NamedTuple):
    """An address range that is held, or not confirmed given back."""

    reservation: int
    address: int
    size: int
    standing: Standing


class MappingView(NamedTuple):
    """A mapping not confirmed gone: a whole handle in ``size`` windows from ``window``."""

    reservation: int
    window: int
    handle: int
    size: int
    rights: Rights
    quarantined: bool


class HandleView(NamedTuple):
    """A handle not confirmed released."""

    handle: int
    size: int
    quarantined: bool


class PrefixView(NamedTuple):
    """A live prefix: who published it, the handles it holds in window order, and its seal."""

    prefix: int
    reservation: int
    handles: tuple[int, ...]
    sealed: bool


@frozen
class Observation:
    """All that can be observed of a manager at rest, by serial.

    ``ranges`` by reservation, ``mappings`` by (reservation, window), ``handles`` and ``prefixes``
    by serial; ``pool`` is the serials of pooled handles, oldest first.
    """

    ranges: Mapping[int, RangeView]
    mappings: Mapping[tuple[int, int], MappingView]
    handles: Mapping[int, HandleView]
    prefixes: Mapping[int, PrefixView]
    pool: tuple[int, ...]
    ledger: Ledger
    lost: bool

    def since(self, before: "Observation") -> "Residue":
        """The signed difference to an earlier observation."""
        ours, theirs = self._facts(), before._facts()
        return Residue(
            new=ours - theirs, gone=theirs - ours, ledger=self.ledger.minus(before.ledger)
        )

    def _facts(self) -> frozenset["Fact"]:
        return frozenset(
            (
                *self.ranges.values(),
                *self.mappings.values(),
                *self.handles.values(),
                *self.prefixes.values(),
                *(("pooled", serial) for serial in self.pool),
            )
        )


Fact = RangeView | MappingView | HandleView | PrefixView | tuple[str, int]
"""One observable thing; ``("pooled", serial)`` is a handle's place in the pool."""


@frozen
class Residue:
    """What an operation that failed left different: after minus before, by serial."""

    new: frozenset[Fact] = frozenset()
    gone: frozenset[Fact] = frozenset()
    ledger: Ledger = field(default=Ledger())

    def __bool__(self) -> bool:
        """Whether anything changed; an empty residue means that nothing did."""
        return bool(self.new or self.gone or any(self.ledger))


@frozen
class Failed:
    """A driver call failed.

    ``fault`` is the first; ``cleanup_faults`` are those that came after it, in order.
    """

    fault: Fault
    residue: Residue
    cleanup_faults: tuple[Fault, ...] = ()

    @property
    def undone(self) -> bool:
        """Whether all that was begun is undone: nothing is left in doubt.

        Then, and only then, a caller may go on as if the operation had been refused, for example
        with private memory in place of shared.  Pooled memory that was given up is gone all the
        same.
        """
        ledger = self.residue.ledger
        return not (self.residue.new or ledger.unattributed or ledger.unattributed_addresses)


Outcome = Done | Refused | Failed


def ordered(facts: Iterable[Fact]) -> list[Fact]:
    """Facts in an order that does not change from run to run."""
    return sorted(facts, key=lambda fact: (type(fact).__name__, repr(fact)))
