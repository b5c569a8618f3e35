"""Prefixes, sharers and children as the public classes offer them."""

import gc
import warnings

import pytest

from kvvmm_cuda import Prefix, Reservation, VirtualMemory, errors
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner
from kvvmm_model.vocabulary import Code, Fault, Step

UNIT = 2 << 20


class Parts:
    """A manager over a driver that can be made to fail, that has memory and tells the truth."""

    def __init__(self) -> None:
        self.model = DriverModel(granularity_bytes=UNIT, capacity_bytes=32 * UNIT)
        self.faulting = FaultingDriver(self.model)
        self.memory = VirtualMemory.open(self.faulting, limit_bytes=32 * UNIT)
        self.kept: list[Prefix] = []

    def owner(self, windows: int = 2) -> tuple[Reservation, Prefix]:
        """A reservation with so many windows published and sealed, and one more behind them."""
        owner = self.memory.reserve(8 * UNIT)
        _ = owner.commit(0, (windows + 1) * UNIT)
        for window in range(windows + 1):
            assert self.model.write(owner.address + window * UNIT, UNIT, 0x100 + window) is None
        prefix = owner.publish(windows * UNIT)
        assert prefix.seal() == windows * UNIT
        self.kept.append(prefix)  # dropped, it would warn
        return owner, prefix

    def fail(self, *steps: tuple[Step, int], lasting: bool = False) -> None:
        """Those calls fail, at which of their kind."""
        self.faulting.arm(
            FaultPlan(
                tuple(
                    FaultSpec(step, Manner.WITHOUT_EFFECT, Code.UNKNOWN, nth, lasting=lasting)
                    for step, nth in steps
                )
            )
        )

    def reads(self, reservation: Reservation, *windows: int) -> list[int | Fault]:
        return [self.model.read(reservation.address + window * UNIT) for window in windows]


def test_attach_of_a_sealed_prefix_reads_the_owners_bytes_and_charges_nothing() -> None:
    parts = Parts()
    with parts.memory as memory:
        owner, prefix = parts.owner()
        charged = memory.ledger.charged
        sharers = [memory.reserve(8 * UNIT) for _ in range(5)]
        for sharer in sharers:
            assert sharer.attach(prefix, UNIT) == 2 * UNIT
            assert parts.reads(sharer, 1, 2) == [0x100, 0x101]
            assert isinstance(parts.model.write(sharer.address + UNIT, UNIT, 1), Fault)
        assert memory.ledger.charged == charged
        assert memory.ledger.mapped == 3 + 5 * 2
        _ = owner.close()
        assert prefix.retire() == 0
        for sharer in sharers[1:]:
            _ = sharer.close()
        assert parts.reads(sharers[0], 1, 2) == [0x100, 0x101]
        assert memory.ledger.charged == 2
        assert sharers[0].release(UNIT, 2 * UNIT).size_bytes == 2 * UNIT
        assert memory.ledger.charged == 0
    assert parts.model.physical_bytes() == 0


def test_fork_at_a_byte_shares_what_is_sealed_and_copies_the_rest() -> None:
    parts = Parts()
    with parts.memory as memory:
        owner, _ = parts.owner()
        child = owner.fork(2 * UNIT + 4)
        assert child.size_bytes == owner.size_bytes
        assert parts.reads(child, 0, 1, 2) == [0x100, 0x101, 0x102]
        assert parts.model.read(child.address + 2 * UNIT + 4) == 0
        assert memory.ledger.charged == 4
        assert parts.model.write(child.address + 2 * UNIT, UNIT, 7) is None
        assert parts.reads(owner, 2) == [0x102]
        with pytest.raises(errors.SharedError) as refused:
            _ = child.commit(0, 4 * UNIT)
        assert refused.value.numbers == {"first_offset_bytes": 2 * UNIT}
        assert child.commit(2 * UNIT, 2 * UNIT) == UNIT


def test_fork_of_a_group_makes_all_or_none() -> None:
    parts = Parts()
    with parts.memory as memory:
        keys, _ = parts.owner()
        values, _ = parts.owner()
        before = memory.observe()
        parts.fail((Step.MAP, 6))
        with pytest.raises(errors.DriverError) as failed:
            _ = memory.fork([(keys, 2 * UNIT + 5), (values, 2 * UNIT + 5)])
        assert failed.value.undone
        assert not failed.value.residue
        assert memory.observe() == before
        children = memory.fork([(keys, 2 * UNIT + 5), (values, 2 * UNIT)])
        assert [parts.reads(child, 1) for child in children] == [[0x101], [0x101]]
        assert memory.ledger.charged == before.ledger.charged + 1


def test_attach_of_a_group_that_is_not_undone_says_so() -> None:
    parts = Parts()
    with parts.memory as memory:
        _, prefix = parts.owner(1)
        sharers = [memory.reserve(4 * UNIT) for _ in range(2)]
        targets = [(sharer, prefix, 0) for sharer in sharers]
        parts.fail((Step.SET_ACCESS, 2), (Step.UNMAP, 1))
        with pytest.raises(errors.DriverError) as failed:
            _ = memory.attach(targets)
        assert not failed.value.undone
        parts.faulting.disarm()
        with pytest.raises(errors.QuarantinedError):
            _ = memory.attach(targets)
        assert memory.reclaim() == 1
        assert memory.attach(targets) == 2 * UNIT


def test_seal_that_cannot_be_undone_bars_the_windows_until_it_is_repeated() -> None:
    parts = Parts()
    with parts.memory as memory:
        owner = memory.reserve(4 * UNIT)
        _ = owner.commit(0, 2 * UNIT)
        with owner.publish(2 * UNIT) as prefix:
            parts.fail((Step.SET_ACCESS, 1), lasting=True)
            with pytest.raises(errors.DriverError) as failed:
                _ = prefix.seal()
            assert not failed.value.undone
            assert not prefix.sealed
            parts.faulting.disarm()
            for attempt in (lambda: owner.commit(0, UNIT), lambda: owner.fork(UNIT)):
                with pytest.raises(errors.RightsUnknownError) as refused:
                    _ = attempt()
                assert refused.value.numbers["offsets_bytes"]
            assert prefix.seal() == 2 * UNIT
            assert prefix.seal() == 0
            assert repr(prefix) == f"Prefix(1, {2 * UNIT} bytes, sealed)"
        assert not prefix.live


def test_release_of_published_memory_cancels_the_prefix() -> None:
    parts = Parts()
    with parts.memory as memory:
        owner = memory.reserve(4 * UNIT)
        _ = owner.commit(0, 2 * UNIT)
        prefix = owner.publish(2 * UNIT)
        _ = owner.release(UNIT, UNIT)
        assert not prefix.live
        with pytest.raises(errors.StaleError):
            _ = prefix.seal()
        with pytest.raises(errors.StaleError):
            _ = prefix.retire()


def test_refusals_of_attach_and_publish_carry_their_numbers() -> None:
    parts = Parts()
    with parts.memory as memory:
        owner, prefix = parts.owner()
        sharer = memory.reserve(4 * UNIT)
        _ = sharer.commit(0, UNIT)
        with pytest.raises(errors.MisalignedError) as misaligned:
            _ = sharer.attach(prefix, UNIT + 1)
        assert misaligned.value.numbers["nearest_bytes"] == UNIT
        with pytest.raises(errors.TooLongError):
            _ = sharer.attach(prefix, 3 * UNIT)
        with pytest.raises(errors.OccupiedError) as occupied:
            _ = sharer.attach(prefix)
        assert occupied.value.numbers == {"offsets_bytes": (0,)}
        with pytest.raises(errors.StraddlingError) as straddling:
            _ = owner.publish(UNIT // 2)
        assert straddling.value.numbers == {"fits_bytes": 0, "next_bytes": UNIT}
        with owner.publish(3 * UNIT) as longer, pytest.raises(errors.UnsealedError):
            _ = sharer.attach(longer, UNIT)
        with pytest.raises(errors.RangeError):
            _ = memory.attach([])


def test_another_managers_prefix_or_reservation_is_foreign() -> None:
    ours, theirs = Parts(), Parts()
    with ours.memory, theirs.memory:
        owner, prefix = theirs.owner()
        sharer = ours.memory.reserve(8 * UNIT)
        calls = len(ours.model.live_mappings())
        with pytest.raises(errors.ForeignError) as foreign:
            _ = sharer.attach(prefix)
        assert foreign.value.numbers == {"prefix": 1, "manager": "another"}
        with pytest.raises(errors.ForeignError):
            _ = ours.memory.fork([(owner, UNIT)])
        assert len(ours.model.live_mappings()) == calls


def test_prefix_that_is_dropped_warns_and_calls_nothing() -> None:
    parts = Parts()
    with parts.memory as memory:
        owner = memory.reserve(4 * UNIT)
        _ = owner.commit(0, UNIT)
        only = [owner.publish(UNIT)]
        with pytest.warns(ResourceWarning, match="prefix 1 was dropped without retire"):
            only.clear()
        retired = owner.publish(UNIT)
        _ = retired.retire()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del retired
            _ = gc.collect()
    assert parts.model.physical_bytes() == 0


def test_close_of_the_manager_retires_what_is_held() -> None:
    parts = Parts()
    owner, prefix = parts.owner()
    _ = owner.close()
    assert parts.memory.ledger.held == 2
    parts.memory.close()
    assert not prefix.live
    assert parts.model.physical_bytes() == 0
