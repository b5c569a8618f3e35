"""A bench on which a test runs operations, on the model or on the backend, and sees every call.

Both sides work over the same stack: a driver that needs no device, a wrapper that injects faults
into it, and one that writes every call down.  Whatever a test checks besides, the bench checks
after each operation what has to hold after any: a refusal calls nothing and changes nothing, a
failure's residue is exactly what changed, and the books agree with what the driver really holds.
"""

from enum import Enum

from attrs import frozen

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.subject import Subject
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner
from kvvmm_model.invariants import broken
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
    apply,
)
from kvvmm_model.recording import Call, CallNames, RecordingDriver
from kvvmm_model.state import initial, observe
from kvvmm_model.vocabulary import (
    Code,
    Done,
    Driver,
    Failed,
    Fault,
    Ledger,
    Observation,
    Outcome,
    Policy,
    Refusal,
    Refused,
    Rights,
    Settings,
    Standing,
    Step,
)

GRANULE = 2 << 20
"""Bytes in a granule."""

WITHOUT, WITH, PART = Manner.WITHOUT_EFFECT, Manner.WITH_EFFECT, Manner.IN_PART


# --- operations, in granules -------------------------------------------------------------------


def reserve(size: int) -> Operation:
    return Reserve(size * GRANULE)


def commit(reservation: int, window: int, size: int) -> Operation:
    return Commit(reservation, window * GRANULE, size * GRANULE)


def release(reservation: int, window: int, size: int) -> Operation:
    return Release(reservation, window * GRANULE, size * GRANULE)


def close(reservation: int) -> Operation:
    return Close(reservation)


def publish(reservation: int, size: int) -> Operation:
    return Publish(reservation, size * GRANULE)


def seal(prefix: int) -> Operation:
    return Seal(prefix)


def attach(*targets: tuple[int, int, int]) -> Operation:
    """Each: reservation, prefix, window."""
    return Attach(tuple((serial, prefix, at * GRANULE) for serial, prefix, at in targets))


def retire(prefix: int) -> Operation:
    return Retire(prefix)


def fork(*parents: tuple[int, int]) -> Operation:
    """Each: reservation, length in bytes."""
    return Fork(parents)


def trim(size: int) -> Operation:
    return Trim(size * GRANULE)


def reclaim(reservation: int | None = None) -> Operation:
    return Reclaim(reservation)


def set_limit(size: int) -> Operation:
    return SetLimit(size * GRANULE)


def fails(
    step: Step,
    nth: int = 1,
    *,
    code: int = Code.UNKNOWN,
    manner: Manner = WITHOUT,
    part: int = 0,
    lasting: bool = False,
) -> FaultSpec:
    """The nth call of a kind in one operation fails; a part makes the manner IN_PART."""
    return FaultSpec(step, PART if part else manner, code, nth, part, lasting)


# --- the two sides -----------------------------------------------------------------------------


class Side(Enum):
    """Which implementation is on the bench."""

    MODEL = "model"
    BACKEND = "backend"


class Model:
    """The model as a subject: its state, advanced by each operation."""

    def __init__(self, driver: Driver, settings: Settings, limit_bytes: int) -> None:
        self._driver = driver
        self.state = initial(settings, limit_bytes // settings.granularity_bytes)

    def apply(self, operation: Operation) -> Outcome:
        transition = apply(self.state, operation, self._driver)
        self.state = transition.state
        return transition.outcome

    def observe(self) -> Observation:
        return observe(self.state)


class Bench:
    """One manager over one driver; sizes in granules.

    ``driver`` tells the truth, ``faulting`` lies when armed, ``recorder`` is what the manager
    calls.  ``calls`` and ``lines`` are the driver calls of the last operation, as values and as
    text in which ranges and handles are numbered as they came.
    """

    def __init__(
        self,
        side: Side,
        *,
        policy: Policy = Policy.GRANULE,
        retention: int = 0,
        limit: int = 64,
        capacity: int = 64,
        clear_pooled: bool = True,
        longest_run: int = 64,
    ) -> None:
        settings = Settings(GRANULE, policy, longest_run, retention, clear_pooled)
        self.driver = DriverModel(granularity_bytes=GRANULE, capacity_bytes=capacity * GRANULE)
        self.faulting = FaultingDriver(self.driver)
        self.recorder = RecordingDriver(self.faulting)
        make = Model if side is Side.MODEL else Backend
        self.subject: Subject = make(self.recorder, settings, limit * GRANULE)
        self.calls: list[Call] = []
        self._names = CallNames(GRANULE)
        self._lines: list[str] = []

    # --- running ---------------------------------------------------------------------------

    def run(self, operation: Operation, *faults: FaultSpec, all_fire: bool = True) -> Outcome:
        """Carry an operation out while its driver calls meet the faults."""
        before = self.observe()
        self.faulting.arm(FaultPlan(faults))
        outcome = self.subject.apply(operation)
        self.faulting.disarm()
        self.calls = self.recorder.take()
        self._lines = [self._names.describe(call) for call in self.calls]
        if all_fire:
            assert set(self.faulting.fired) == set(faults), "a planned fault was never met"
        self._check(before, outcome)
        return outcome

    def done(self, operation: Operation, *faults: FaultSpec) -> object:
        """Run what has to succeed; its value."""
        outcome = self.run(operation, *faults)
        assert isinstance(outcome, Done), outcome
        return outcome.value

    def failed(self, operation: Operation, *faults: FaultSpec) -> Failed:
        """Run what has to fail."""
        outcome = self.run(operation, *faults)
        assert isinstance(outcome, Failed), outcome
        return outcome

    def refused(self, operation: Operation) -> Refusal:
        """Run what has to be refused; why it was."""
        return self.refusal(operation).reason

    def refusal(self, operation: Operation) -> Refused:
        """Run what has to be refused."""
        outcome = self.run(operation)
        assert isinstance(outcome, Refused), outcome
        return outcome

    def reserved(self, size: int) -> int:
        """Reserve; the serial."""
        serial = self.done(reserve(size))
        assert isinstance(serial, int)
        return serial

    def filled(self, size: int, *windows: int) -> int:
        """Reserve, and commit windows one by one; the serial."""
        serial = self.reserved(size)
        for window in windows:
            assert self.done(commit(serial, window, 1)) == 1
        return serial

    def shared(self, windows: int = 2, more: int = 0) -> tuple[int, int]:
        """An owner of 8 windows with so many sealed, and so many committed behind: the serials."""
        owner = self.filled(8, *range(windows + more))
        prefix = self.done(publish(owner, windows))
        assert isinstance(prefix, int)
        assert self.done(seal(prefix)) == windows
        return owner, prefix

    def rights(self, reservation: int) -> list[Rights]:
        """Of its mappings, in window order."""
        views = [v for v in self.observe().mappings.values() if v.reservation == reservation]
        return [view.rights for view in sorted(views, key=lambda view: view.window)]

    def quarantine(self, reservation: int, window: int) -> None:
        """Commit a window so unluckily that it ends in quarantine, still mapped."""
        _ = self.failed(commit(reservation, window, 1), fails(Step.SET_ACCESS), fails(Step.UNMAP))
        assert window in self.quarantined(reservation)

    def settle(self) -> None:
        """End what was injected: the driver tells the truth again."""
        assert self.faulting.settle() == ()

    # --- looking ---------------------------------------------------------------------------

    def observe(self) -> Observation:
        return self.subject.observe()

    @property
    def ledger(self) -> Ledger:
        return self.observe().ledger

    @property
    def pool(self) -> list[int]:
        """The pooled handles, oldest first."""
        return list(self.observe().pool)

    @property
    def steps(self) -> list[Step]:
        """The kinds of the last operation's calls."""
        return [call.step for call in self.calls]

    @property
    def lines(self) -> list[str]:
        """The last operation's calls as text."""
        return self._lines

    @property
    def physical(self) -> int:
        """Granules of memory that the driver really holds."""
        return self.driver.physical_bytes() // GRANULE

    def committed(self, reservation: int) -> list[int]:
        """The windows that may be used."""
        return self._windows(reservation, quarantined=False)

    def quarantined(self, reservation: int) -> list[int]:
        """The windows that may not, because nobody knows what became of them."""
        return self._windows(reservation, quarantined=True)

    def _windows(self, reservation: int, *, quarantined: bool) -> list[int]:
        return sorted(
            window
            for view in self.observe().mappings.values()
            if view.reservation == reservation and view.quarantined is quarantined
            for window in range(view.window, view.window + view.size)
        )

    def address(self, reservation: int, window: int = 0) -> int:
        return self.observe().ranges[reservation].address + window * GRANULE

    def write(self, reservation: int, window: int, word: int) -> None:
        """Start filling a window with a word."""
        assert self.driver.write(self.address(reservation, window), GRANULE, word) is None

    def read(self, reservation: int, window: int) -> int | Fault:
        """The word that a window reads."""
        return self.driver.read(self.address(reservation, window))

    # --- what holds after every operation ---------------------------------------------------

    def _check(self, before: Observation, outcome: Outcome) -> None:
        after = self.observe()
        if isinstance(outcome, Refused):
            assert not self.calls, "a refusal calls nothing"
            assert after == before, "a refusal changes nothing"
        if isinstance(outcome, Failed):
            assert outcome.residue == after.since(before), "a residue is what changed"
        if isinstance(self.subject, Model):
            assert broken(self.subject.state) == []
        self._check_against_driver(after)

    def _check_against_driver(self, now: Observation) -> None:
        ledger = now.ledger
        assert ledger.granted == 0
        doubtful = ledger.quarantined + ledger.unattributed
        assert ledger.charged - doubtful <= self.physical <= ledger.charged
        live = self.driver.live_mappings()
        for mapping in now.mappings.values():
            there = live.pop(self.address(mapping.reservation, mapping.window), None)
            if not mapping.quarantined:
                assert there is not None
                assert there.size_bytes == mapping.size * GRANULE
                assert mapping.rights in (there.rights, Rights.UNKNOWN)
        assert not live, "the driver holds a mapping that nobody counts"
        held = {mapping.reservation for mapping in now.mappings.values()}
        for view in now.ranges.values():
            if view.standing is not Standing.OPEN:
                assert (view.standing is Standing.CLOSED) is (view.reservation in held)


@frozen
class MakeBench:
    """Makes benches of one side."""

    side: Side

    def __call__(
        self,
        *,
        policy: Policy = Policy.GRANULE,
        retention: int = 0,
        limit: int = 64,
        capacity: int = 64,
        clear_pooled: bool = True,
        longest_run: int = 64,
    ) -> Bench:
        """A fresh manager over a fresh driver."""
        return Bench(
            self.side,
            policy=policy,
            retention=retention,
            limit=limit,
            capacity=capacity,
            clear_pooled=clear_pooled,
            longest_run=longest_run,
        )
