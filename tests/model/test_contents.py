"""What the contents judge expects of bytes: by memory, through every alias, across a copy's cut."""

import pytest

from kvvmm_model.conformance.contents import Contents
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Release,
    Reserve,
    Retire,
    Seal,
    Trim,
    apply,
)
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.state import initial
from kvvmm_model.vocabulary import Code, Done, Failed, Fault, Outcome, Rights, Settings, Step

G = 64
WORD = 0xA4A3A2A1


class Judged:
    """The model over a simulated driver, with the judge beside it; nobody writes unless asked."""

    def __init__(
        self,
        *,
        retention: int = 0,
        clear_pooled: bool = True,
        driver: DriverModel | None = None,
    ) -> None:
        self.model = DriverModel(granularity_bytes=G) if driver is None else driver
        self.faulting = FaultingDriver(self.model)
        self.recording = RecordingDriver(self.faulting)
        settings = Settings(G, retention=retention, clear_pooled=clear_pooled)
        self.state = initial(settings, limit=64)
        self.judge = Contents(self.model, G)

    def apply(self, operation: Operation, *faults: FaultSpec) -> Outcome:
        self.faulting.arm(FaultPlan(faults))
        transition = apply(self.state, operation, self.recording)
        self.faulting.disarm()
        self.state = transition.state
        self.judge.follow(self.state, operation, transition.outcome, self.recording.take())
        return transition.outcome

    def done(self, *operations: Operation) -> None:
        for operation in operations:
            assert isinstance(self.apply(operation), Done), operation

    def address(self, reservation: int, window: int = 0, byte: int = 0) -> int:
        return self.state.reservations[reservation].address + window * G + byte

    def spoil(self, reservation: int, window: int) -> None:
        """Write behind the judge's back."""
        assert self.model.write(self.address(reservation, window), G, WORD) is None

    def wrong(self) -> list[str]:
        return list(self.judge.wrong())

    def fill(self, times: int = 8) -> None:
        """Let the judge write, so often that every writable window has its own word."""
        for _ in range(times):
            assert list(self.judge.write()) == []


def shared(
    retention: int = 0, *, clear_pooled: bool = True, driver: DriverModel | None = None
) -> Judged:
    """Reservation 1 with four windows, two of them sealed; 2 sees the sealed ones."""
    judged = Judged(retention=retention, clear_pooled=clear_pooled, driver=driver)
    judged.done(Reserve(8 * G), Reserve(8 * G), Commit(1, 0, 4 * G))
    judged.fill()
    judged.done(Publish(1, 2 * G), Seal(1), Attach(((2, 1, 3 * G),)))
    return judged


# --- by memory -----------------------------------------------------------------------------------


def test_memory_is_expected_to_be_zero_and_then_what_was_written() -> None:
    judged = Judged()
    judged.done(Reserve(8 * G), Commit(1, 0, 3 * G))
    assert judged.wrong() == []
    judged.fill(7)
    assert judged.wrong() == []
    judged.spoil(1, 2)
    assert [line.split(" reads")[0] for line in judged.wrong()] == [
        "window (1, 2) at byte 0",
        "window (1, 2) at byte 60",
    ]


def test_aliases_are_all_read_and_show_what_the_owner_wrote() -> None:
    judged = shared()
    assert judged.wrong() == []
    owner = [judged.model.read(judged.address(1, window)) for window in range(2)]
    assert 0 not in owner
    assert owner == [judged.model.read(judged.address(2, 3 + window)) for window in range(2)]
    # Another handle behind the sharer's window, as no book shows.
    unmapped, at = judged.model.unmap, judged.address(2, 3)
    assert unmapped(at, G) is None
    value = judged.model.create(G)
    assert isinstance(value, int)
    assert judged.model.map(at, G, value) is None
    assert any("(2, 3) at byte 0 cannot be read" in line for line in judged.wrong())


def test_memory_that_only_a_prefix_holds_keeps_its_contents() -> None:
    judged = shared()
    words = [judged.model.read(judged.address(1, window)) for window in range(2)]
    judged.done(Close(1), Close(2), Reserve(8 * G), Attach(((3, 1, 0),)))
    assert judged.wrong() == []
    assert [judged.model.read(judged.address(3, window)) for window in range(2)] == words
    judged.done(Retire(1))
    assert judged.wrong() == []


@pytest.mark.parametrize("clear_pooled", [True, False])
def test_memory_that_leaves_the_pool_is_zero_or_anything(clear_pooled: bool) -> None:
    judged = Judged(retention=4, clear_pooled=clear_pooled)
    judged.done(Reserve(8 * G), Commit(1, 0, 2 * G))
    judged.fill()
    judged.done(Release(1, 0, 2 * G), Commit(1, 4 * G, G))
    assert judged.wrong() == []
    judged.spoil(1, 4)
    assert bool(judged.wrong()) is clear_pooled
    judged.done(Commit(1, 5 * G, G), Trim(4 * G), Commit(1, 6 * G, G))  # the last one is fresh
    judged.spoil(1, 6)
    assert any("window (1, 6)" in line for line in judged.wrong())


def test_memory_that_a_failed_release_left_mapped_may_be_zero_until_written_again() -> None:
    judged = Judged(retention=8)
    judged.done(Reserve(8 * G), Commit(1, 0, 2 * G))
    judged.fill()
    failing = FaultSpec(Step.UNMAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN)
    assert isinstance(judged.apply(Release(1, 0, 2 * G), failing), Failed)
    assert judged.wrong() == []
    assert judged.model.read(judged.address(1)) == 0
    judged.spoil(1, 0)
    assert judged.wrong()
    judged.fill()
    assert judged.wrong() == []
    assert judged.model.clear(judged.address(1), G) is None
    assert judged.wrong()


# --- what takes no write -------------------------------------------------------------------------


def test_sealed_window_is_written_to_now_and_then_and_keeps_its_words() -> None:
    judged = shared()
    judged.fill(16)
    assert judged.wrong() == []


def test_sealed_window_that_takes_a_write_is_told() -> None:
    judged = shared()
    for reservation, window in ((1, 0), (1, 1), (2, 3), (2, 4)):
        at = judged.address(reservation, window)
        assert judged.model.fence() is None
        assert judged.model.set_access(at, G, Rights.RW) is None
    told = [line for _ in range(8) for line in judged.judge.write()]
    assert any("sealed window" in line for line in told)


# --- forks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2 * G, 2 * G + 1, 2 * G + 4, 2 * G + 7, 2 * G + 62, 2 * G + 63])
@pytest.mark.parametrize("clear_pooled", [True, False])
def test_fork_shows_the_parent_up_to_its_length_and_nothing_beyond(
    length: int, clear_pooled: bool
) -> None:
    judged = shared(retention=8, clear_pooled=clear_pooled)
    judged.done(Fork(((1, length),)))
    assert judged.wrong() == []
    judged.fill(24)  # parent and child go their own ways
    assert judged.wrong() == []


class Inexact(DriverModel):
    """Copies so many bytes more than it is asked for, and says nothing."""

    more = 0

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        size = size_bytes + self.more
        return super().copy(target, source, size) if size else None


@pytest.mark.parametrize("size", [1, 3, 4, 5, 40, 62])
@pytest.mark.parametrize("more", [-1, 1])
def test_copy_of_a_byte_more_or_less_is_told(size: int, more: int) -> None:
    driver = Inexact(granularity_bytes=G)
    judged = shared(driver=driver)
    driver.more = more
    judged.done(Fork(((1, 2 * G + size),)))
    assert any("window (3, 2)" in line for line in judged.wrong())


def test_fork_of_a_fork_copies_what_may_stand_there() -> None:
    judged = Judged(retention=8, clear_pooled=False)
    judged.done(Reserve(8 * G), Commit(1, 0, G))
    judged.fill(1)
    judged.done(Release(1, 0, G), Commit(1, 0, G), Fork(((1, 9),)))
    # Nobody knows what a pooled granule holds; the copy of it is as unknown, what lies behind is 0.
    assert judged.wrong() == []
    at = judged.address(2, 0)
    assert judged.model.write(at, G, WORD) is None
    told = judged.wrong()
    assert told
    assert not any("at byte 0 " in line or "at byte 4 " in line for line in told)


def test_fork_of_what_a_failed_release_left_copies_both_possibilities() -> None:
    judged = Judged(retention=8)
    judged.done(Reserve(8 * G), Commit(1, 0, G))
    judged.fill(1)
    failing = FaultSpec(Step.UNMAP, Manner.WITHOUT_EFFECT, Code.UNKNOWN)
    assert isinstance(judged.apply(Release(1, 0, G), failing), Failed)
    judged.done(Fork(((1, 10),)))
    assert judged.wrong() == []
    assert judged.model.write(judged.address(2), G, WORD) is None
    assert any("window (2, 0) at byte 0 " in line for line in judged.wrong())


def test_fork_that_failed_changes_what_is_expected_of_nobody() -> None:
    judged = shared()
    failing = FaultSpec(Step.COPY, Manner.WITH_EFFECT, Code.UNKNOWN)
    assert isinstance(judged.apply(Fork(((1, 2 * G + 5),)), failing), Failed)
    assert judged.wrong() == []
    assert judged.apply(Fork(((1, 2 * G + 5),))) == Done((4,))
