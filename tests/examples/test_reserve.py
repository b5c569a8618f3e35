"""reserve: address space, and nothing else."""

import pytest

from kvvmm_model.faulting import Manner
from kvvmm_model.machine import Reserve
from kvvmm_model.vocabulary import Code, Failed, Ledger, Step

from support.bench import GRANULE, WITH, WITHOUT, Bench, fails, reserve

TIB = 1 << 40


def test_reserve_one_tebibyte_charges_nothing(bench: Bench) -> None:
    """Scenario 1.  Addresses are free of charge, however many."""
    assert bench.done(Reserve(TIB)) == 1
    assert bench.ledger == Ledger(limit=64)
    assert bench.physical == 0
    assert bench.driver.live_ranges() == {bench.address(1): TIB}


@pytest.mark.parametrize(
    ("size_bytes", "granules"), [(1, 1), (GRANULE, 1), (GRANULE + 1, 2), (3 * GRANULE - 1, 3)]
)
def test_reserve_part_of_a_granule_rounds_up(bench: Bench, size_bytes: int, granules: int) -> None:
    assert bench.done(Reserve(size_bytes)) == 1
    assert bench.lines == [f"address_reserve({granules}g) -> range1"]
    assert bench.observe().ranges[1].size == granules


def test_reserve_with_alignment_gives_an_aligned_address(bench: Bench) -> None:
    assert bench.reserved(1) == 1
    assert bench.done(Reserve(GRANULE, 64 * GRANULE)) == 2
    assert bench.lines == ["address_reserve(1g, aligned 64g) -> range2"]
    assert bench.address(2) % (64 * GRANULE) == 0


def test_reserve_again_gives_the_next_serial(bench: Bench) -> None:
    assert [bench.reserved(1), bench.reserved(1)] == [1, 2]
    assert bench.address(1) != bench.address(2)


@pytest.mark.parametrize("code", [Code.OUT_OF_MEMORY, Code.INVALID_VALUE])
def test_reserve_failing_for_certain_records_nothing(bench: Bench, code: Code) -> None:
    """Scenario 6.  These two codes rule out that anything was reserved."""
    failed = bench.failed(reserve(4), fails(Step.ADDRESS_RESERVE, code=code))
    assert failed.fault.code == code
    assert not failed.residue
    assert bench.reserved(4) == 1


@pytest.mark.parametrize("manner", [WITHOUT, WITH])
@pytest.mark.parametrize("code", [Code.UNKNOWN, Code.NOT_PERMITTED])
def test_reserve_failing_without_certainty_lists_address_space(
    bench: Bench, code: Code, manner: Manner
) -> None:
    """Scenario 6.  With any other code, a range may exist that nobody can name."""
    failed = bench.failed(reserve(4), fails(Step.ADDRESS_RESERVE, code=code, manner=manner))
    assert failed.residue.ledger == Ledger(unattributed_addresses=4)
    assert not failed.residue.new
    assert bench.ledger.unattributed_addresses == 4
    assert bench.ledger.charged == 0


def test_reserve_more_than_the_driver_has_fails_without_residue(bench: Bench) -> None:
    failed = bench.run(Reserve(127 * TIB))
    assert isinstance(failed, Failed)
    assert failed.fault.code == Code.OUT_OF_MEMORY
    assert not failed.residue
