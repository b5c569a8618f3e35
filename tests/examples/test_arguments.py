"""What may be passed to an operation, and which refusal comes first where several would do."""

import numpy as np
import pytest

from kvvmm_model.machine import (
    Close,
    Commit,
    Operation,
    Reclaim,
    Release,
    Reserve,
    SetLimit,
    Trim,
)
from kvvmm_model.vocabulary import (
    MAX_BYTES,
    Code,
    Failed,
    Refusal,
    Released,
    Standing,
    Step,
    refused,
)

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    close,
    commit,
    fails,
    release,
    reserve,
    set_limit,
)

NOT_NUMBERS: list[object] = [1.0, 2.5, "1", None, True, False, b"1", (1,), [1], np.True_]
HUGE = 1 << 70


# --- sizes and offsets --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, -1, -GRANULE, MAX_BYTES + 1, HUGE, *NOT_NUMBERS], ids=repr)
def test_reserve_of_no_size_is_refused(bench: Bench, size: object) -> None:
    assert bench.refusal(Reserve(size)) == refused(
        Refusal.RANGE, size_bytes=size, alignment_bytes=0
    )


@pytest.mark.parametrize(
    "alignment", [-1, 3, GRANULE + 1, 3 * GRANULE, HUGE, 2 * MAX_BYTES, *NOT_NUMBERS], ids=repr
)
def test_reserve_with_no_alignment_is_refused(bench: Bench, alignment: object) -> None:
    assert bench.refused(Reserve(GRANULE, alignment)) is Refusal.RANGE


@pytest.mark.parametrize("alignment", [0, 1, 2, GRANULE, 1 << 30])
def test_reserve_with_a_power_of_two_is_done(bench: Bench, alignment: int) -> None:
    assert bench.done(Reserve(GRANULE, alignment)) == 1
    assert bench.address(1) % max(1, alignment) == 0


def test_reserve_of_the_largest_size_asks_the_driver(bench: Bench) -> None:
    outcome = bench.run(Reserve(MAX_BYTES))
    assert isinstance(outcome, Failed)
    assert outcome.fault.code == Code.OUT_OF_MEMORY


@pytest.mark.parametrize("kind", [Commit, Release])
@pytest.mark.parametrize("size", [0, -1, 8 * GRANULE + 1, HUGE, -HUGE, *NOT_NUMBERS], ids=repr)
def test_range_of_no_size_is_refused(
    bench: Bench, kind: type[Commit | Release], size: object
) -> None:
    serial = bench.filled(8, 0)
    assert bench.refusal(kind(serial, 0, size)) == refused(
        Refusal.RANGE, offset_bytes=0, size_bytes=size, reservation_bytes=8 * GRANULE
    )


@pytest.mark.parametrize("kind", [Commit, Release])
@pytest.mark.parametrize("offset", [-1, 8 * GRANULE, HUGE, -HUGE, *NOT_NUMBERS], ids=repr)
def test_range_at_no_offset_is_refused(
    bench: Bench, kind: type[Commit | Release], offset: object
) -> None:
    serial = bench.filled(8, 0)
    assert bench.refused(kind(serial, offset, GRANULE)) is Refusal.RANGE


@pytest.mark.parametrize("kind", [Trim, SetLimit])
@pytest.mark.parametrize("size", [-1, -HUGE, *NOT_NUMBERS], ids=repr)
def test_amount_that_is_none_is_refused(
    bench: Bench, kind: type[Trim | SetLimit], size: object
) -> None:
    assert bench.refusal(kind(size)) == refused(Refusal.RANGE, size_bytes=size)


@pytest.mark.parametrize("number", [np.int64, np.int32, np.uint32, np.uint64])
def test_any_operation_with_numpy_integers_is_done(bench: Bench, number: type[np.integer]) -> None:
    """The driver is still called with plain integers, or it would object."""
    assert bench.done(Reserve(number(8 * GRANULE), number(GRANULE))) == 1
    assert bench.done(Commit(1, number(GRANULE), number(GRANULE + 1))) == 2
    assert bench.done(Release(1, number(GRANULE), number(GRANULE))) == Released(1, ())
    assert bench.done(Trim(number(GRANULE))) == 0
    assert bench.done(SetLimit(number(5 * GRANULE))) is None
    assert bench.ledger.limit == 5


def test_commit_of_numpy_bytes_counts_beyond_their_width(bench: Bench) -> None:
    serial = bench.reserved(8)
    assert bench.refused(Commit(serial, np.uint8(200), np.int64(8 * GRANULE))) is Refusal.RANGE


# --- serials ------------------------------------------------------------------------------------

WRONG_SERIALS: list[object] = [0, -1, 99, HUGE, True, "1", None, 1.0, (1,), [1]]


@pytest.mark.parametrize("serial", WRONG_SERIALS, ids=repr)
def test_any_operation_on_a_wrong_serial_is_refused(bench: Bench, serial: object) -> None:
    _ = bench.filled(8, 0)
    stale = refused(Refusal.STALE, reservation=serial)
    assert bench.refusal(Commit(serial, 0, GRANULE)) == stale
    assert bench.refusal(Release(serial, 0, GRANULE)) == stale
    assert bench.refusal(Close(serial)) == stale


@pytest.mark.parametrize("serial", [s for s in WRONG_SERIALS if s is not None], ids=repr)
def test_reclaim_of_a_wrong_serial_is_refused(bench: Bench, serial: object) -> None:
    _ = bench.filled(8, 0)
    assert bench.refusal(Reclaim(serial)) == refused(Refusal.STALE, reservation=serial)


@pytest.mark.parametrize("standing", [None, Standing.CLOSED, Standing.QUARANTINED])
def test_any_operation_after_close_is_refused(bench: Bench, standing: Standing | None) -> None:
    """However it went: the serial is over, whether or not something of it is left."""
    serial = bench.filled(8, 0)
    if standing is None:
        assert bench.done(close(serial)) == ()
    else:
        step = Step.FENCE if standing is Standing.CLOSED else Step.ADDRESS_FREE
        _ = bench.failed(close(serial), fails(step))
        assert bench.observe().ranges[serial].standing is standing
    for operation in (commit(serial, 0, 1), release(serial, 0, 1), close(serial)):
        assert bench.refusal(operation) == refused(Refusal.STALE, reservation=serial)


# --- precedence ---------------------------------------------------------------------------------


def _no_limit_left(make_bench: MakeBench) -> Bench:
    """Reservation 1 with window 0 quarantined, window 1 committed, and nothing left to grant."""
    bench = make_bench(limit=2)
    serial = bench.reserved(8)
    bench.quarantine(serial, 0)
    assert bench.done(commit(serial, 1, 1)) == 1
    return bench


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Commit(99, -1, 0), Refusal.STALE),
        (Release(99, -1, 0), Refusal.STALE),
        (Commit(1, 0, 9 * GRANULE), Refusal.RANGE),  # touches quarantine, and the limit
        (Release(1, 0, 9 * GRANULE), Refusal.RANGE),
        (Release(1, 2 * GRANULE, 9 * GRANULE), Refusal.RANGE),  # nothing committed there either
        (commit(1, 0, 4), Refusal.QUARANTINED),  # over the limit too
        (release(1, 0, 1), Refusal.QUARANTINED),  # no committed mapping inside either
        (release(1, 2, 4), Refusal.NOT_COMMITTED),
        (commit(1, 1, 4), Refusal.BUDGET),
    ],
)
def test_any_operation_with_two_faults_of_its_own_names_the_first(
    make_bench: MakeBench, operation: Operation, reason: Refusal
) -> None:
    assert _no_limit_left(make_bench).refused(operation) is reason


def test_any_operation_on_a_lost_device_names_that_first(make_bench: MakeBench) -> None:
    bench = _no_limit_left(make_bench)
    _ = bench.failed(reserve(1), fails(Step.ADDRESS_RESERVE, code=Code.ILLEGAL_ADDRESS))
    operations: list[Operation] = [
        Reserve(-1),
        Commit(99, -1, 0),
        Commit(1, 0, 9 * GRANULE),
        commit(1, 0, 4),
        commit(1, 1, 4),
        Release(99, -1, 0),
        release(1, 2, 4),
        Close(99),
        Trim(-1),
        Reclaim(99),
        SetLimit(-1),
    ]
    for operation in operations:
        assert bench.refused(operation) is Refusal.DEVICE_LOST


def test_refusal_reads_as_a_sentence_with_its_numbers(bench: Bench) -> None:
    serial = bench.reserved(1)
    text = str(bench.refusal(release(serial, 0, 1)))
    assert text.startswith(f"NOT_COMMITTED (offset_bytes=0, size_bytes={GRANULE}): ")
    assert bench.done(set_limit(0)) is None
    assert f"needed_bytes={GRANULE}" in str(bench.refusal(commit(serial, 0, 1)))
