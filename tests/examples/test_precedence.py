"""Which refusal is the answer where two would do: each row holds two that follow each other.

The order is that of ``Refusal``'s members.  ``test_arguments.py`` has the rows of private memory.
"""

from collections.abc import Callable

import pytest

from kvvmm_model.machine import Attach, Fork, Operation, Publish
from kvvmm_model.vocabulary import Code, Policy, Refusal, Refused, Step, refused

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fails,
    fork,
    publish,
    release,
    reserve,
    retire,
    seal,
)

# --- what comes before: reservation 1 owns prefix 1, reservation 2 is looked at ------------------


def sealed(bench: Bench) -> None:
    """Prefix 1, of two windows, sealed; reservation 2, of four, empty."""
    _ = bench.shared(2)
    _ = bench.reserved(4)


def uncertain(bench: Bench) -> None:
    """Besides: windows 0 and 1 of reservation 2 are backed, and 0 has unknown rights."""
    sealed(bench)
    _ = bench.done(commit(2, 0, 1))
    _ = bench.done(publish(2, 1))
    _ = bench.failed(seal(2), fails(Step.SET_ACCESS, lasting=True))
    _ = bench.done(commit(2, 1, 1))


def doubtful(bench: Bench) -> None:
    """Besides: window 1 of reservation 2 is quarantined."""
    uncertain(bench)
    _ = bench.done(release(2, 1, 1))
    bench.quarantine(2, 1)


def last_doubtful(bench: Bench) -> None:
    sealed(bench)
    bench.quarantine(2, 3)


def repeated(bench: Bench) -> None:
    """Prefix 1 lies at 0 and at 2 of reservation 2, which is longer here."""
    _ = bench.shared(2)
    _ = bench.reserved(8)
    _ = bench.done(attach((2, 1, 0), (2, 1, 2)))


def repeated_and_uncertain(bench: Bench) -> None:
    _ = bench.shared(2)
    _ = bench.filled(8, 0)
    _ = bench.done(publish(2, 1))
    _ = bench.failed(seal(2), fails(Step.SET_ACCESS, lasting=True))
    _ = bench.done(attach((2, 1, 1), (2, 1, 3)))


def sealed_and_uncertain(bench: Bench) -> None:
    """Reservation 1: window 0 sealed, window 1 of unknown rights."""
    _ = bench.filled(8, 0, 1)
    _ = bench.done(publish(1, 1))
    _ = bench.done(seal(1))
    _ = bench.done(publish(1, 2))
    _ = bench.failed(seal(2), fails(Step.SET_ACCESS, lasting=True))


def unsealed(bench: Bench) -> None:
    _ = bench.filled(8, 0)
    _ = bench.done(publish(1, 1))


def straddling(bench: Bench) -> None:
    """Window 0 is quarantined, one handle fills 1 and 2."""
    _ = bench.reserved(8)
    bench.quarantine(1, 0)
    _ = bench.done(commit(1, 1, 2))


def full(bench: Bench) -> None:
    """Nothing more can be charged."""
    _ = bench.shared(2)


Prepare = Callable[[Bench], None]
ROWS: list[tuple[Prepare, Operation, Refused]] = [
    # publish
    (sealed, Publish(9, -1), refused(Refusal.STALE, reservation=9)),
    (
        sealed,
        Publish(1, 0),
        refused(Refusal.RANGE, offset_bytes=0, size_bytes=0, reservation_bytes=8 * GRANULE),
    ),
    (
        straddling,
        publish(1, 2),
        refused(Refusal.STRADDLING, fits_bytes=GRANULE, next_bytes=3 * GRANULE),
    ),
    (doubtful, publish(2, 2), refused(Refusal.QUARANTINED, offsets_bytes=(GRANULE,))),
    (repeated_and_uncertain, publish(2, 5), refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(0,))),
    (repeated, publish(2, 6), refused(Refusal.REPEATED, fits_bytes=2 * GRANULE)),
    # attach
    (sealed, Attach(((9, 9, -1),)), refused(Refusal.STALE, reservation=9)),
    (sealed, Attach(((2, 9, -1),)), refused(Refusal.STALE, prefix=9)),
    (sealed, Attach(((2, 1, -1),)), refused(Refusal.RANGE, offset_bytes=-1)),
    (
        sealed,
        Attach(((2, 1, 3 * GRANULE + 1),)),
        refused(Refusal.MISALIGNED, offset_bytes=3 * GRANULE + 1, nearest_bytes=3 * GRANULE),
    ),
    (
        last_doubtful,
        attach((2, 1, 3)),
        refused(
            Refusal.TOO_LONG,
            offset_bytes=3 * GRANULE,
            prefix_bytes=2 * GRANULE,
            reservation_bytes=4 * GRANULE,
        ),
    ),
    (doubtful, attach((2, 1, 0)), refused(Refusal.QUARANTINED, offsets_bytes=(GRANULE,))),
    (uncertain, attach((2, 1, 0)), refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(0,))),
    (unsealed, attach((1, 1, 0)), refused(Refusal.OCCUPIED, offsets_bytes=(0,))),
    # fork
    (sealed, Fork(((9, -1),)), refused(Refusal.STALE, reservation=9)),
    (
        doubtful,
        fork((2, 9 * GRANULE)),
        refused(Refusal.RANGE, length_bytes=9 * GRANULE, reservation_bytes=4 * GRANULE),
    ),
    (doubtful, fork((2, 2 * GRANULE)), refused(Refusal.QUARANTINED, offsets_bytes=(GRANULE,))),
    (uncertain, fork((2, 2 * GRANULE)), refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(0,))),
    (
        unsealed,
        fork((1, 2 * GRANULE)),
        refused(Refusal.UNSEALED, offset_bytes=0, length_bytes=2 * GRANULE),
    ),
    (
        full,
        fork((1, 2 * GRANULE + 1)),
        refused(Refusal.NOT_COMMITTED, offset_bytes=2 * GRANULE, length_bytes=2 * GRANULE + 1),
    ),
    # commit
    (doubtful, commit(2, 0, 2), refused(Refusal.QUARANTINED, offsets_bytes=(GRANULE,))),
    (
        sealed_and_uncertain,
        commit(1, 0, 3),
        refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(GRANULE,)),
    ),
    (full, commit(1, 0, 3), refused(Refusal.SHARED, first_offset_bytes=2 * GRANULE)),
]


def _name(row: tuple[Prepare, Operation, Refused]) -> str:
    _, operation, refusal = row
    (number, _), *_ = refusal.numbers
    return f"{type(operation).__name__.lower()}-{refusal.reason.name}-{number}"


@pytest.mark.parametrize(("prepare", "operation", "refusal"), ROWS, ids=map(_name, ROWS))
def test_any_operation_that_two_refusals_fit_is_refused_for_the_first(
    make_bench: MakeBench, prepare: Prepare, operation: Operation, refusal: Refused
) -> None:
    run = prepare is straddling
    bench = make_bench(
        policy=Policy.RUN if run else Policy.GRANULE, limit=2 if prepare is full else 64
    )
    prepare(bench)
    assert bench.refusal(operation) == refusal


@pytest.mark.parametrize("operation", [row[1] for row in ROWS], ids=map(_name, ROWS))
def test_any_operation_on_a_lost_device_is_refused_for_that_first(
    bench: Bench, operation: Operation
) -> None:
    sealed(bench)
    _ = bench.failed(reserve(1), fails(Step.ADDRESS_RESERVE, code=Code.ILLEGAL_ADDRESS))
    lost = refused(Refusal.DEVICE_LOST, code=Code.ILLEGAL_ADDRESS)
    assert bench.refusal(operation) == lost
    for other in (seal(1), seal(9), retire(1), retire(9), Attach(()), Fork(())):
        assert bench.refusal(other) == lost


# --- groups -------------------------------------------------------------------------------------

OF_EACH: dict[Refusal, tuple[object, object, object]] = {
    Refusal.STALE: (9, 1, 0),
    Refusal.RANGE: (3, 1, -1),
    Refusal.MISALIGNED: (3, 1, 1),
    Refusal.TOO_LONG: (3, 1, 7 * GRANULE),
    Refusal.QUARANTINED: (2, 1, GRANULE),
    Refusal.RIGHTS_UNKNOWN: (2, 3, 0),
    Refusal.OCCUPIED: (1, 1, 0),
    Refusal.UNSEALED: (3, 4, 5 * GRANULE),
}
"""Targets of an attach, one for each refusal, after ``everything``."""


def everything(bench: Bench) -> None:
    """Reservation 3 is empty; prefixes 1 and 3 are sealed, of two windows and of one; 4 is not."""
    doubtful(bench)
    _ = bench.reserved(8)
    other, _ = bench.shared(1, more=1)
    assert bench.done(publish(other, 2)) == 4


def _alone(bench: Bench, target: tuple[object, object, object]) -> Refused:
    return bench.refusal(Attach((target,)))


@pytest.mark.parametrize("reason", OF_EACH, ids=lambda reason: reason.name)
def test_attach_of_a_group_is_refused_for_what_comes_first_wherever_it_stands(
    bench: Bench, reason: Refusal
) -> None:
    everything(bench)
    own = _alone(bench, OF_EACH[reason])
    assert own.reason is reason
    order = list(Refusal)
    for other, target in OF_EACH.items():
        first = min(reason, other, key=order.index)
        for group in ((OF_EACH[reason], target), (target, OF_EACH[reason])):
            refusal = bench.refusal(Attach(group))
            assert refusal == _alone(bench, OF_EACH[first])


def test_attach_of_a_group_with_equal_refusals_names_the_first_target(bench: Bench) -> None:
    sealed(bench)
    refusal = bench.refusal(attach((2, 1, 0), (2, 8, 0), (7, 1, 0)))
    assert refusal == refused(Refusal.STALE, prefix=8)


def test_fork_of_a_group_is_refused_for_what_comes_first_wherever_it_stands(bench: Bench) -> None:
    everything(bench)
    parents: dict[Refusal, tuple[int, int]] = {
        Refusal.STALE: (9, GRANULE),
        Refusal.RANGE: (1, 0),
        Refusal.QUARANTINED: (2, 2 * GRANULE),
        Refusal.RIGHTS_UNKNOWN: (2, GRANULE),
        Refusal.UNSEALED: (4, 2 * GRANULE),
        Refusal.NOT_COMMITTED: (3, 1),
    }
    order = list(Refusal)
    for one, first in parents.items():
        assert bench.refused(fork(first)) is one
        for other, second in parents.items():
            assert bench.refused(fork(first, second)) is min(one, other, key=order.index)


def test_fork_of_a_group_is_refused_for_a_later_parent_before_the_budget(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(limit=3)
    owner, _ = bench.shared(2, more=1)
    rest = (owner, 2 * GRANULE + 1)
    assert bench.refused(fork(rest)) is Refusal.BUDGET
    assert bench.refused(fork(rest, (owner, 4 * GRANULE))) is Refusal.UNSEALED
    assert bench.refused(fork(rest, (9, 1))) is Refusal.STALE


def test_refusal_of_a_closed_reservation_names_it_whichever_target_it_is(bench: Bench) -> None:
    sealed(bench)
    _ = bench.done(close(2))
    stale = refused(Refusal.STALE, reservation=2)
    assert bench.refusal(attach((2, 1, 0))) == stale
    assert bench.refusal(fork((1, GRANULE), (2, GRANULE))) == stale
    assert bench.refusal(publish(2, 1)) == stale
