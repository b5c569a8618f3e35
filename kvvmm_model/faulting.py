"""A wrapper that injects faults into driver calls, and knows what they left behind.

A fault may have had no effect, all of it, or a part.  The wrapper sees both sides: what the inner
driver really holds, and what its user was told.  ``settle`` ends the difference between the two,
and only that: what a user leaks without being lied to stays there for everyone to see.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from enum import Enum
from threading import Lock
from typing import NamedTuple

from attrs import frozen

from kvvmm_model.codes import CODES, STICKY, code_name
from kvvmm_model.vocabulary import Code, Driver, Fault, Rights, Step

__all__ = ["FaultPlan", "FaultSpec", "FaultingDriver", "Manner", "all_specs", "allowed"]


class Manner(Enum):
    """What the call did before it reported its error."""

    WITHOUT_EFFECT = "without effect"
    WITH_EFFECT = "with effect"
    IN_PART = "in part"

    __hash__ = object.__hash__


_RUNS = frozenset({Step.SET_ACCESS, Step.CLEAR, Step.UNMAP, Step.COPY})
_STICKY_SAMPLES = (Code.ILLEGAL_ADDRESS, Code.LAUNCH_FAILED)


def _objection(step: Step, manner: Manner, code: int) -> str | None:
    """Why no driver gives this code in this manner, and what to choose instead."""
    codes = CODES[step]
    effect = manner is not Manner.WITHOUT_EFFECT
    rules = (
        (code < 1, "is no error: choose a code of 1 or more"),
        (code in codes.answers, "is an answer, not a fault: choose another code"),
        (effect and code in codes.rules_out, "rules out an effect: choose WITHOUT_EFFECT"),
        (effect and step is Step.QUERY, "has no effect that could happen: choose WITHOUT_EFFECT"),
        (
            manner is Manner.IN_PART and step not in _RUNS,
            "does not work on a run: IN_PART is for set_access, clear, copy and unmap",
        ),
    )
    said = f"{step.value} that answers {code_name(code)} ({code}) {manner.value}"
    return next((f"{said} {objection}" for broken, objection in rules if broken), None)


def allowed(step: Step, manner: Manner, code: int) -> bool:
    """Whether the table of codes lets a call of this kind answer this code in this manner."""
    return _objection(step, manner, code) is None


def all_specs(step: Step) -> Iterator[tuple[Manner, int]]:
    """Every manner and code that may be injected at a step, two sticky codes included."""
    codes = (*CODES[step].rules_out, *CODES[step].unknown, *_STICKY_SAMPLES)
    for code in codes:
        for manner in Manner:
            if allowed(step, manner, code):
                yield manner, code


@frozen
class FaultSpec:
    """One fault to inject.

    ``nth``: at which call of its kind since arming, from 1.  ``part``: for IN_PART, how many
    mappings of the run are done, from its low end; of a copy's, those that it writes to.
    ``lasting``: every later call of the kind too.
    Raises ValueError for what no driver does (see ``allowed``).
    """

    step: Step
    manner: Manner
    code: int
    nth: int = 1
    part: int = 0
    lasting: bool = False

    def __attrs_post_init__(self) -> None:
        objection = _objection(self.step, self.manner, self.code)
        if objection is None and self.nth < 1:
            objection = f"nth={self.nth}: calls are counted from 1"
        if objection is None and self.part < 0:
            objection = f"part={self.part}: give a number of mappings, 0 or more"
        if objection is None and self.part and self.manner is not Manner.IN_PART:
            objection = f"part={self.part} with {self.manner.name}: part belongs to IN_PART"
        if objection is not None:
            raise ValueError(objection)

    @property
    def sticky(self) -> bool:
        """Whether nothing works after it (D-19)."""
        return self.code in STICKY

    def due(self, number: int) -> bool:
        """Whether it is meant for the call of this number."""
        return number == self.nth or (self.lasting and number > self.nth)


@frozen
class FaultPlan:
    """Faults for one driver; where several are due at one call, the first of them is taken."""

    specs: tuple[FaultSpec, ...] = ()


class _Held(NamedTuple):
    """A mapping in the inner driver."""

    end: int
    handle: int


class _Truth:
    """What exists in the inner driver, of all that came through one wrapper.

    Something being given back is taken out before the call and put back if that fails: its value
    may be handed to another thread before the answer is here (D-9).
    """

    def __init__(self) -> None:
        self.handles: dict[int, None] = {}  # oldest first; only those with create's reference
        self.ranges: dict[int, int] = {}
        self.mappings: dict[int, _Held] = {}
        self._starts: list[int] = []
        self._lock = Lock()

    def add_mapping(self, address: int, held: _Held) -> None:
        with self._lock:
            self._starts.insert(bisect_left(self._starts, address), address)
            self.mappings[address] = held

    def take_mappings(self, address: int, end: int) -> list[tuple[int, _Held]]:
        """Take out the mappings that begin in [address, end)."""
        with self._lock:
            first = bisect_left(self._starts, address)
            last = bisect_left(self._starts, end, first)
            starts = self._starts[first:last]
            del self._starts[first:last]
            return [(start, self.mappings.pop(start)) for start in starts]

    def touching(self, address: int, end: int) -> list[int]:
        """Where the mappings that touch [address, end) begin, in order."""
        with self._lock:
            starts = self._starts
            first = bisect_right(starts, address)
            if first and self.mappings[starts[first - 1]].end > address:
                first -= 1
            return starts[first : bisect_left(starts, end, first)]

    def inside(self, address: int, end: int) -> list[int]:
        """Where the mappings wholly inside [address, end) begin, in order."""
        return [
            start
            for start in self.touching(address, end)
            if address <= start and self.mappings[start].end <= end
        ]

    def cut(self, address: int, end: int, part: int) -> int:
        """The end of the first ``part`` mappings of [address, end)."""
        first = self.touching(address, end)[:part]
        return min(end, self.mappings[first[-1]].end) if first else address


class FaultingDriver:
    """Implements ``Driver`` over another one, and injects what it is armed with.

    With effect, the inner call is made and its answer hidden; a fault that the inner driver gives
    then goes out instead, and nothing counts as fired (the call is counted all the same).  After
    an injected sticky code every call of any kind answers that code, without effect, until
    ``settle``; those calls are not counted.

    Threads may share it: its books are guarded, and no lock is held across an inner call.
    """

    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        self._truth = _Truth()
        self._lock = Lock()
        self._quiet = True  # nothing armed and nothing lost: the short way
        self._plan: dict[Step, list[FaultSpec]] = {}
        self._numbers: dict[Step, int] = {}
        self._fired: dict[FaultSpec, None] = {}
        self._lost: int | None = None
        # What the user was not told, oldest first.
        self._hidden_handles: dict[int, None] = {}
        self._hidden_ranges: dict[int, None] = {}
        # What the user thinks may have been done.
        self._withheld_unmaps: dict[int, None] = {}
        self._withheld_releases: dict[int, None] = {}
        self._withheld_frees: dict[int, None] = {}
        self._books = (
            self._hidden_handles,
            self._hidden_ranges,
            self._withheld_unmaps,
            self._withheld_releases,
            self._withheld_frees,
        )

    # --- plans ---------------------------------------------------------------------------------

    def arm(self, plan: FaultPlan) -> None:
        """Take a plan in place of the last; calls are counted from here."""
        with self._lock:
            self._plan = {}
            for spec in plan.specs:
                self._plan.setdefault(spec.step, []).append(spec)
            self._numbers = dict.fromkeys(self._plan, 0)
            self._fired = {}
            self._quiet = not self._plan and self._lost is None

    def disarm(self) -> None:
        """Inject nothing more; what is lost stays lost, and ``fired`` can still be read."""
        with self._lock:
            self._plan = {}
            self._quiet = self._lost is None

    @property
    def fired(self) -> tuple[FaultSpec, ...]:
        """The specs of the last plan that were injected, each once, in order."""
        return tuple(self._fired)

    @property
    def lost(self) -> bool:
        """Whether an injected sticky code is in force."""
        return self._lost is not None

    def _due(self, step: Step) -> FaultSpec | Fault | None:
        """What this call has to do: inject, answer that all is lost, or nothing special."""
        with self._lock:
            if self._lost is not None:
                return Fault(step, self._lost)
            specs = self._plan.get(step)
            if specs is None:
                return None
            self._numbers[step] = number = self._numbers[step] + 1
            return next((spec for spec in specs if spec.due(number)), None)

    def _fire(self, spec: FaultSpec) -> Fault:
        with self._lock:
            self._fired[spec] = None
            if spec.sticky and self._lost is None:
                self._lost = spec.code
        return Fault(spec.step, spec.code)

    # --- the driver's calls --------------------------------------------------------------------

    @property
    def granularity_bytes(self) -> int:
        """The inner driver's; never a fault."""
        return self._inner.granularity_bytes

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """As the inner driver, or a fault; what a fault hid is remembered."""
        due = None if self._quiet else self._due(Step.ADDRESS_RESERVE)
        if due is None:
            return self._reserve(size_bytes, alignment_bytes)
        if isinstance(due, Fault):
            return due
        if due.manner is Manner.WITH_EFFECT:
            address = self._reserve(size_bytes, alignment_bytes)
            if isinstance(address, Fault):
                return address
            self._hidden_ranges[address] = None
        return self._fire(due)

    def create(self, size_bytes: int) -> int | Fault:
        """As the inner driver, or a fault; what a fault hid is remembered."""
        due = None if self._quiet else self._due(Step.CREATE)
        if due is None:
            return self._create(size_bytes)
        if isinstance(due, Fault):
            return due
        if due.manner is Manner.WITH_EFFECT:
            handle = self._create(size_bytes)
            if isinstance(handle, Fault):
                return handle
            self._hidden_handles[handle] = None
        return self._fire(due)

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """As the inner driver, or a fault."""
        due = None if self._quiet else self._due(Step.MAP)
        if due is None:
            return self._map(address, size_bytes, handle)
        return self._inject(due, lambda: self._map(address, size_bytes, handle))

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """As the inner driver, or a fault."""
        due = None if self._quiet else self._due(Step.SET_ACCESS)
        if due is None:
            return self._inner.set_access(address, size_bytes, rights)
        size = self._let_through(due, address, size_bytes)
        return self._inject(due, lambda: self._inner.set_access(address, size, rights), size)

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver, or a fault."""
        due = None if self._quiet else self._due(Step.CLEAR)
        if due is None:
            return self._inner.clear(address, size_bytes)
        size = self._let_through(due, address, size_bytes)
        return self._inject(due, lambda: self._inner.clear(address, size), size)

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver, or a fault; what a fault withheld is remembered."""
        due = None if self._quiet else self._due(Step.UNMAP)
        if due is None:
            return self._unmap(address, size_bytes)
        if isinstance(due, Fault):
            return due
        size = self._let_through(due, address, size_bytes)
        if size or due.manner is Manner.WITH_EFFECT:
            real = self._unmap(address, size)
            if real is not None:
                return real
        for start in self._truth.inside(address + size, address + size_bytes):
            self._withheld_unmaps[start] = None
        return self._fire(due)

    def release(self, handle: int) -> Fault | None:
        """As the inner driver, or a fault; what a fault withheld is remembered."""
        due = None if self._quiet else self._due(Step.RELEASE)
        if due is None:
            return self._release(handle)
        if _withholds(due) and handle in self._truth.handles:
            self._withheld_releases[handle] = None
        return self._inject(due, lambda: self._release(handle))

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver, or a fault; what a fault withheld is remembered."""
        due = None if self._quiet else self._due(Step.ADDRESS_FREE)
        if due is None:
            return self._free(address, size_bytes)
        if _withholds(due) and self._truth.ranges.get(address) == size_bytes:
            self._withheld_frees[address] = None
        return self._inject(due, lambda: self._free(address, size_bytes))

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """As the inner driver, or a fault; in part, it ends at a mapping of the target."""
        due = None if self._quiet else self._due(Step.COPY)
        if due is None:
            return self._inner.copy(target, source, size_bytes)
        size = self._let_through(due, target, size_bytes)
        return self._inject(due, lambda: self._inner.copy(target, source, size), size)

    def fence(self) -> Fault | None:
        """As the inner driver, or a fault."""
        due = None if self._quiet else self._due(Step.FENCE)
        if due is None:
            return self._inner.fence()
        return self._inject(due, self._inner.fence)

    def query(self, address: int) -> Rights | Fault | None:
        """As the inner driver, or a fault."""
        due = None if self._quiet else self._due(Step.QUERY)
        if isinstance(due, Fault):
            return due
        if due is not None:
            return self._fire(due)
        answer = self._inner.query(address)
        if self._withheld_unmaps and isinstance(answer, Rights):
            # The user has now been told the truth, so this mapping is the user's again.
            for start in self._truth.touching(address, address + 1):
                _ = self._withheld_unmaps.pop(start, None)
        return answer

    def _inject(
        self, due: FaultSpec | Fault, act: Callable[[], Fault | None], part_bytes: int = 0
    ) -> Fault:
        """Do what the spec lets through, then answer its fault; a real fault goes out instead."""
        if isinstance(due, Fault):
            return due
        if due.manner is Manner.WITH_EFFECT or part_bytes:
            real = act()
            if real is not None:
                return real
        return self._fire(due)

    def _let_through(self, due: FaultSpec | Fault, address: int, size_bytes: int) -> int:
        """How many bytes of a run are done: none, all, or up to the end of a mapping."""
        if isinstance(due, Fault) or due.manner is Manner.WITHOUT_EFFECT:
            return 0
        if due.manner is Manner.WITH_EFFECT:
            return size_bytes
        return self._truth.cut(address, address + size_bytes, due.part) - address

    # --- the end of a fault --------------------------------------------------------------------

    def settle(self) -> tuple[Fault, ...]:
        """End what was injected: the driver then holds what its user can know of, and works again.

        Disarms.  What was withheld and is still open is carried out: a release, an address_free,
        and an unmap unless a query has since told the user that the mapping is there.  What was
        hidden is given back.  After an injected sticky code, everything that came through this
        wrapper and exists is torn down, for its user may not do it any more.  Everything else
        that the user has left stays.

        The answer is what the inner driver refused; after a fault of the fence nothing was done,
        and it may be called again.
        """
        self.disarm()
        truth = self._truth
        if self._lost is None:
            unmaps = list(self._withheld_unmaps)
            releases = [*self._withheld_releases, *self._hidden_handles]
            frees = [*self._withheld_frees, *self._hidden_ranges]
        else:
            unmaps, releases, frees = list(truth.mappings), list(truth.handles), list(truth.ranges)
        fault = self._inner.fence() if unmaps else None
        if fault is not None:
            return (fault,)
        self._lost = None
        self._quiet = True
        answers = [
            *[self._unmap(start, truth.mappings[start].end - start) for start in sorted(unmaps)],
            *[self._release(handle) for handle in releases],
            *[self._free(address, truth.ranges[address]) for address in frees],
        ]
        for book in self._books:
            book.clear()
        return tuple(answer for answer in answers if answer is not None)

    def tear_down(self) -> tuple[Fault, ...]:
        """Give back everything that came through this wrapper, whoever should have done it."""
        self._lost = self._lost if self._lost is not None else int(Code.ILLEGAL_ADDRESS)
        return self.settle()

    # --- inner calls, booked -------------------------------------------------------------------

    def _reserve(self, size: int, alignment: int) -> int | Fault:
        address = self._inner.address_reserve(size, alignment)
        if not isinstance(address, Fault):
            self._truth.ranges[address] = size
        return address

    def _create(self, size: int) -> int | Fault:
        handle = self._inner.create(size)
        if not isinstance(handle, Fault):
            self._truth.handles[handle] = None
        return handle

    def _map(self, address: int, size: int, handle: int) -> Fault | None:
        fault = self._inner.map(address, size, handle)
        if fault is None:
            self._truth.add_mapping(address, _Held(address + size, handle))
        return fault

    def _unmap(self, address: int, size: int) -> Fault | None:
        taken = self._truth.take_mappings(address, address + size)
        withheld = [start for start, _ in taken if start in self._withheld_unmaps]
        for start in withheld:
            del self._withheld_unmaps[start]
        fault = self._inner.unmap(address, size)
        if fault is not None:
            for start, held in taken:
                self._truth.add_mapping(start, held)
            self._withheld_unmaps.update(dict.fromkeys(withheld))
        return fault

    def _release(self, handle: int) -> Fault | None:
        # Not put back after a fault: it may have worked, and must never be tried again (D-8).
        _ = self._truth.handles.pop(handle, None)
        _ = self._withheld_releases.pop(handle, None)
        _ = self._hidden_handles.pop(handle, None)
        return self._inner.release(handle)

    def _free(self, address: int, size: int) -> Fault | None:
        if self._truth.ranges.get(address) != size:
            return self._inner.address_free(address, size)
        del self._truth.ranges[address]
        books = [book for book in (self._withheld_frees, self._hidden_ranges) if address in book]
        for book in books:
            del book[address]
        fault = self._inner.address_free(address, size)
        if fault is not None:
            self._truth.ranges[address] = size
            for book in books:
                book[address] = None
        return fault


def _withholds(due: FaultSpec | Fault) -> bool:
    return isinstance(due, FaultSpec) and due.manner is Manner.WITHOUT_EFFECT
