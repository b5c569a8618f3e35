"""attach: a sealed prefix is mapped, to be read.  All or none."""

import pytest

from kvvmm_model.faulting import Manner
from kvvmm_model.machine import Attach
from kvvmm_model.vocabulary import Code, Fault, Ledger, Refusal, Rights, Step, refused

from support.bench import (
    GRANULE,
    WITH,
    WITHOUT,
    Bench,
    attach,
    close,
    commit,
    fails,
    publish,
    reclaim,
    retire,
    seal,
)

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


def test_attach_maps_and_then_gives_the_right_to_read(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    assert bench.done(attach((sharer, prefix, 3))) == 2
    assert bench.lines == [
        "map(range2+3g, 1g, handle1) -> ok",
        "map(range2+4g, 1g, handle2) -> ok",
        "set_access(range2+3g, 2g, READ) -> ok",
    ]
    assert bench.rights(sharer) == [Rights.READ] * 2
    assert bench.ledger == Ledger(limit=64, charged=2, owned=2, mapped=4)
    assert isinstance(bench.driver.write(bench.address(sharer, 3), GRANULE, 1), Fault)
    assert bench.committed(owner) == [0, 1]


def test_sharers_are_charged_once_with_their_own_tails(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    for _ in range(5):
        sharer = bench.reserved(8)
        _ = bench.done(attach((sharer, prefix, 0)))
        _ = bench.done(commit(sharer, 2, 1))
    assert bench.ledger == Ledger(limit=64, charged=7, owned=7, mapped=17)
    assert bench.physical == 7


def test_attach_of_a_group_is_one_transaction(bench: Bench) -> None:
    _, keys = bench.shared(1)
    _, values = bench.shared(2)
    first, second = bench.reserved(4), bench.reserved(4)
    assert bench.done(attach((first, keys, 0), (second, values, 0), (first, values, 2))) == 5
    assert bench.steps == [
        *(Step.MAP, Step.SET_ACCESS),
        *(Step.MAP, Step.MAP, Step.SET_ACCESS),
        *(Step.MAP, Step.MAP, Step.SET_ACCESS),
    ]


# --- refusals, in their order -------------------------------------------------------------------


def test_attach_of_nothing_is_refused(bench: Bench) -> None:
    assert bench.refusal(Attach(())) == refused(Refusal.RANGE, targets=0)


@pytest.mark.parametrize("serial", [0, 9, None, True])
def test_attach_to_no_open_reservation_is_stale(bench: Bench, serial: object) -> None:
    _, prefix = bench.shared(1)
    refusal = bench.refusal(Attach(((serial, prefix, None),)))
    assert refusal == refused(Refusal.STALE, reservation=serial)


@pytest.mark.parametrize("prefix", [0, 9, None, True])
def test_attach_of_no_live_prefix_is_stale(bench: Bench, prefix: object) -> None:
    sharer = bench.reserved(8)
    refusal = bench.refusal(Attach(((sharer, prefix, -1),)))
    assert refusal == refused(Refusal.STALE, prefix=prefix)


@pytest.mark.parametrize("offset", [-1, None, True, 0.5])
def test_attach_at_what_is_no_offset_is_refused(bench: Bench, offset: object) -> None:
    _, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    refusal = bench.refusal(Attach(((sharer, prefix, offset),)))
    assert refusal == refused(Refusal.RANGE, offset_bytes=offset)


def test_attach_in_the_middle_of_a_window_is_misaligned(bench: Bench) -> None:
    _, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    offset = 9 * GRANULE + 1  # too long as well, which comes later
    refusal = bench.refusal(Attach(((sharer, prefix, offset),)))
    assert refusal == refused(Refusal.MISALIGNED, offset_bytes=offset, nearest_bytes=9 * GRANULE)


def test_attach_beyond_the_reservation_is_too_long(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    sharer = bench.filled(4, 3)
    refusal = bench.refusal(attach((sharer, prefix, 3)))
    assert refusal == refused(
        Refusal.TOO_LONG,
        offset_bytes=3 * GRANULE,
        prefix_bytes=2 * GRANULE,
        reservation_bytes=4 * GRANULE,
    )
    assert bench.done(attach((sharer, prefix, 1))) == 2


def test_attach_onto_what_is_quarantined_is_refused(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    sharer = bench.filled(8, 1)
    bench.quarantine(sharer, 0)
    refusal = bench.refusal(attach((sharer, prefix, 0)))
    assert refusal == refused(Refusal.QUARANTINED, offsets_bytes=(0,))


def test_attach_onto_windows_of_unknown_rights_is_refused(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    other = bench.filled(8, 0, 1)
    _ = bench.done(publish(other, 1))
    _ = bench.failed(seal(2), fails(Step.SET_ACCESS, lasting=True))
    refusal = bench.refusal(attach((other, prefix, 0)))
    assert refusal == refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=(0,))


def test_attach_onto_something_is_occupied(bench: Bench) -> None:
    owner, prefix = bench.shared(2)
    sharer = bench.filled(8, 1, 2)
    refusal = bench.refusal(attach((sharer, prefix, 0)))
    assert refusal == refused(Refusal.OCCUPIED, offsets_bytes=(GRANULE,))
    refusal = bench.refusal(attach((owner, prefix, 0)))
    assert refusal == refused(Refusal.OCCUPIED, offsets_bytes=(0, GRANULE))


def test_attach_of_a_group_onto_each_other_is_occupied(bench: Bench) -> None:
    _, prefix = bench.shared(2)
    sharer, other = bench.reserved(8), bench.reserved(8)
    refusal = bench.refusal(attach((other, prefix, 3), (sharer, prefix, 3), (sharer, prefix, 4)))
    assert refusal == refused(Refusal.OCCUPIED, offsets_bytes=(4 * GRANULE,))


def test_attach_of_an_unsealed_prefix_is_refused(bench: Bench) -> None:
    owner = bench.filled(8, 0)
    _ = bench.done(publish(owner, 1))
    sharer = bench.reserved(8)
    refusal = bench.refusal(attach((sharer, 1, 0)))
    assert refusal == refused(Refusal.UNSEALED, prefix=1)


def test_attach_of_a_group_answers_the_refusal_that_comes_first_in_the_order(bench: Bench) -> None:
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    occupied, stale, later = (owner, prefix, 0), (sharer, 9, 0), (sharer, 8, 0)
    refusal = bench.refusal(attach(occupied, stale, later))
    assert refusal == refused(Refusal.STALE, prefix=9)


# --- faults -------------------------------------------------------------------------------------


@EITHER
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_attach_with_a_map_failing_undoes_the_earlier_ones(
    bench: Bench, nth: int, manner: Manner
) -> None:
    owner, prefix = bench.shared(3)
    sharer = bench.reserved(8)
    failed = bench.failed(attach((sharer, prefix, 0)), fails(Step.MAP, nth, manner=manner))
    assert failed.undone
    assert not failed.residue
    unmapped = nth if manner is WITH else nth - 1
    assert bench.steps == [Step.MAP] * nth + [Step.QUERY] + [Step.UNMAP] * unmapped
    assert bench.committed(owner) == [0, 1, 2]
    assert bench.done(attach((sharer, prefix, 0))) == 3


@EITHER
def test_attach_with_the_rights_failing_is_undone_newest_first(
    bench: Bench, manner: Manner
) -> None:
    _, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    failed = bench.failed(attach((sharer, prefix, 0)), fails(Step.SET_ACCESS, manner=manner))
    assert bench.lines[3:] == ["unmap(range2+1g, 1g) -> ok", "unmap(range2, 1g) -> ok"]
    assert failed.undone


def test_attach_of_a_group_that_fails_undoes_all_targets(bench: Bench) -> None:
    """The second of a pair fails: the first is undone, and then the caller may do without."""
    _, prefix = bench.shared(1)
    first, second = bench.reserved(4), bench.reserved(4)
    failed = bench.failed(
        attach((first, prefix, 0), (second, prefix, 0)), fails(Step.SET_ACCESS, 2)
    )
    assert bench.lines[4:] == ["unmap(range3, 1g) -> ok", "unmap(range2, 1g) -> ok"]
    assert failed.undone


def test_attach_of_a_group_whose_undoing_fails_is_not_undone(bench: Bench) -> None:
    _, prefix = bench.shared(1)
    first, second = bench.reserved(4), bench.reserved(4)
    failed = bench.failed(
        attach((first, prefix, 0), (second, prefix, 0)),
        fails(Step.SET_ACCESS, 2),
        fails(Step.UNMAP, 2),
    )
    assert not failed.undone
    assert bench.quarantined(first) == [0]
    assert bench.quarantined(second) == []
    assert bench.done(reclaim()) == 1


def test_mapping_that_nobody_can_ask_about_keeps_its_reference(bench: Bench) -> None:
    """The map worked and said that it did not; the question is lost, and the undoing too."""
    owner, prefix = bench.shared(1)
    sharer = bench.reserved(8)
    _ = bench.failed(
        attach((sharer, prefix, 0)),
        fails(Step.MAP, manner=WITH),
        fails(Step.QUERY, lasting=True),
        fails(Step.UNMAP),
    )
    assert bench.quarantined(sharer) == [0]
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=2)
    _ = bench.done(close(owner))
    _ = bench.done(retire(prefix))
    assert bench.physical == bench.ledger.charged == 1


@pytest.mark.parametrize(
    ("step", "nth"), [(Step.MAP, 1), (Step.MAP, 2), (Step.SET_ACCESS, 1)], ids=str
)
def test_attach_that_loses_the_device_quarantines_what_was_mapped(
    bench: Bench, step: Step, nth: int
) -> None:
    owner, prefix = bench.shared(2)
    sharer = bench.reserved(8)
    lost = fails(step, nth, code=Code.ILLEGAL_ADDRESS)
    failed = bench.failed(attach((sharer, prefix, 0)), lost)
    assert failed.cleanup_faults == ()
    assert bench.quarantined(sharer) == ([0] if (step, nth) == (Step.MAP, 1) else [0, 1])
    assert bench.ledger.charged == 2
    assert bench.refused(attach((sharer, prefix, 4))) is Refusal.DEVICE_LOST
    assert bench.refused(Attach(())) is Refusal.DEVICE_LOST
    assert bench.refused(close(owner)) is Refusal.DEVICE_LOST
