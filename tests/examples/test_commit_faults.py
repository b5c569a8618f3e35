"""commit, where a driver call fails: all of it or none, and what is in doubt is counted."""

from collections.abc import Sequence

import pytest

from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.vocabulary import Code, Fault, Ledger, Policy, Refusal, Rights, Step

from support.bench import GRANULE, WITH, WITHOUT, Bench, MakeBench, commit, fails, release

EITHER = pytest.mark.parametrize("manner", [WITHOUT, WITH], ids=["no effect", "effect"])


def pooled_pair(make_bench: MakeBench) -> Bench:
    """Reservation 1 with nothing committed, and handles 1 and 2 in the pool."""
    bench = make_bench(retention=2)
    serial = bench.filled(8, 0, 1)
    assert bench.done(release(serial, 0, 2))
    assert bench.pool == [1, 2]
    return bench


# --- create -------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 4])
@pytest.mark.parametrize("code", [Code.OUT_OF_MEMORY, Code.INVALID_VALUE])
def test_commit_with_create_failing_for_certain_returns_everything(
    bench: Bench, nth: int, code: Code
) -> None:
    """Scenarios 8 and 50.  The first, a middle or the last create: no map was tried."""
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 4), fails(Step.CREATE, nth, code=code))
    assert failed.fault == Fault(Step.CREATE, code)
    assert not failed.residue
    assert Step.MAP not in bench.steps
    assert bench.lines[nth:] == [f"release(handle{n}) -> ok" for n in range(nth - 1, 0, -1)]
    assert bench.physical == 0


@EITHER
def test_commit_with_create_in_doubt_leaves_unattributed_bytes(
    bench: Bench, manner: Manner
) -> None:
    """Scenario 50.  The driver may hold memory that has no name: it is charged."""
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 2), fails(Step.CREATE, 2, manner=manner))
    assert failed.residue.ledger == Ledger(charged=1, unattributed=1)
    assert not failed.residue.new
    assert bench.physical == (manner is WITH)
    assert bench.ledger.free == 63


def test_commit_with_create_failing_puts_hits_back(make_bench: MakeBench) -> None:
    """Scenario 13.  The pool is as it was, in order too."""
    bench = pooled_pair(make_bench)
    failed = bench.failed(commit(1, 0, 4), fails(Step.CREATE, 2, code=Code.OUT_OF_MEMORY))
    # The pool was taken already, so there was nothing left to give up.
    assert not failed.residue
    assert bench.pool == [1, 2]


# --- giving up ----------------------------------------------------------------------------------


def test_commit_with_an_imagined_shortage_gives_up_and_succeeds(make_bench: MakeBench) -> None:
    bench = make_bench(policy=Policy.RUN, retention=2)
    serial = bench.filled(8, 0, 2)
    assert bench.done(release(serial, 0, 3))
    full = fails(Step.CREATE, code=Code.OUT_OF_MEMORY)
    assert bench.done(commit(serial, 4, 2), full) == 2
    assert bench.steps[:4] == [Step.CREATE, Step.RELEASE, Step.RELEASE, Step.CREATE]
    assert bench.pool == []


@EITHER
@pytest.mark.parametrize("nth", [1, 2])
def test_commit_with_a_release_failing_for_the_limit_ends(
    make_bench: MakeBench, nth: int, manner: Manner
) -> None:
    bench = make_bench(policy=Policy.RUN, retention=3, limit=3)
    serial = bench.filled(8, 0, 2, 4)
    assert bench.done(release(serial, 0, 5))
    failed = bench.failed(commit(serial, 6, 2), fails(Step.RELEASE, nth, manner=manner))
    assert bench.steps == [Step.RELEASE] * nth
    assert failed.fault.step is Step.RELEASE
    assert bench.pool == [2, 3][nth - 1 :]
    assert failed.residue.ledger == Ledger(
        charged=1 - nth, owned=1 - nth, pooled=-nth, quarantined=1
    )


@pytest.mark.parametrize("nth", [1, 2])
def test_commit_with_a_release_failing_for_the_driver_ends(make_bench: MakeBench, nth: int) -> None:
    bench = make_bench(policy=Policy.RUN, retention=3)
    serial = bench.filled(8, 0, 2, 4)
    assert bench.done(release(serial, 0, 5))
    full = fails(Step.CREATE, code=Code.OUT_OF_MEMORY)
    failed = bench.failed(commit(serial, 6, 2), full, fails(Step.RELEASE, nth))
    assert failed.fault == Fault(Step.CREATE, Code.OUT_OF_MEMORY)
    assert failed.cleanup_faults == (Fault(Step.RELEASE, Code.UNKNOWN),)
    assert bench.steps == [Step.CREATE, *[Step.RELEASE] * nth]
    assert bench.pool == [2, 3][nth - 1 :]


def test_commit_with_a_repeated_create_in_doubt_names_the_first_fault(
    make_bench: MakeBench,
) -> None:
    bench = make_bench(policy=Policy.RUN, retention=1)
    serial = bench.filled(8, 0)
    assert bench.done(release(serial, 0, 1))
    full, doubt = fails(Step.CREATE, code=Code.OUT_OF_MEMORY), fails(Step.CREATE, 2)
    failed = bench.failed(commit(serial, 4, 2), full, doubt)
    assert failed.fault == Fault(Step.CREATE, Code.OUT_OF_MEMORY)
    assert failed.cleanup_faults == (Fault(Step.CREATE, Code.UNKNOWN),)
    assert failed.residue.ledger == Ledger(charged=1, owned=-1, pooled=-1, unattributed=2)


# --- map ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 4])
def test_commit_with_map_failing_undoes_newest_first(bench: Bench, nth: int) -> None:
    """Scenario 9.  Mappings go before handles, and in each the later before the earlier."""
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 4), fails(Step.MAP, nth))
    assert failed.fault == Fault(Step.MAP, Code.UNKNOWN)
    assert not failed.residue
    at = ["range1", "range1+1g", "range1+2g", "range1+3g"]
    assert bench.lines[4 + nth :] == [
        f"query({at[nth - 1]}) -> not mapped",
        *[f"unmap({place}, 1g) -> ok" for place in reversed(at[: nth - 1])],
        *[f"release(handle{number}) -> ok" for number in (4, 3, 2, 1)],
    ]


def test_commit_with_map_failing_though_it_worked_unmaps_it_too(bench: Bench) -> None:
    """Scenario 14.  The driver is asked, and says that it is there."""
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 2), fails(Step.MAP, 2, manner=WITH))
    assert not failed.residue
    assert bench.lines[4:] == [
        "query(range1+1g) -> NONE",
        "unmap(range1+1g, 1g) -> ok",
        "unmap(range1, 1g) -> ok",
        "release(handle2) -> ok",
        "release(handle1) -> ok",
    ]


@EITHER
def test_commit_with_map_and_query_failing_is_settled_by_the_unmap(
    bench: Bench, manner: Manner
) -> None:
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 1), fails(Step.MAP, manner=manner), fails(Step.QUERY))
    assert failed.cleanup_faults == (Fault(Step.QUERY, Code.UNKNOWN),)
    assert bench.steps[2:] == [Step.QUERY, Step.UNMAP, Step.RELEASE]
    assert not failed.residue
    assert bench.physical == 0


@EITHER
def test_commit_with_map_undone_in_doubt_is_quarantined(bench: Bench, manner: Manner) -> None:
    serial = bench.reserved(8)
    failed = bench.failed(
        commit(serial, 3, 1),
        fails(Step.MAP, manner=manner),
        fails(Step.QUERY, lasting=True),
        fails(Step.UNMAP),
    )
    assert bench.quarantined(serial) == [3]
    assert failed.residue.ledger == Ledger(charged=1, owned=1, mapped=1)
    assert Step.RELEASE not in bench.steps


def test_commit_with_map_failing_leaves_the_pool_as_it_was(make_bench: MakeBench) -> None:
    """Scenario 13.  Two hits and two fresh handles, and the last map fails."""
    bench = pooled_pair(make_bench)
    failed = bench.failed(commit(1, 0, 4), fails(Step.MAP, 4))
    assert not failed.residue
    assert bench.pool == [1, 2]
    assert bench.lines[-2:] == ["release(handle4) -> ok", "release(handle3) -> ok"]


# --- set_access ---------------------------------------------------------------------------------


@EITHER
def test_commit_with_set_access_failing_unmaps_the_run(bench: Bench, manner: Manner) -> None:
    """Scenario 10.  One mapping at a time; nobody asks, for it certainly is mapped."""
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 3), fails(Step.SET_ACCESS, manner=manner))
    assert not failed.residue
    assert bench.lines[7:] == [
        "unmap(range1+2g, 1g) -> ok",
        "unmap(range1+1g, 1g) -> ok",
        "unmap(range1, 1g) -> ok",
        "release(handle3) -> ok",
        "release(handle2) -> ok",
        "release(handle1) -> ok",
    ]


@pytest.mark.parametrize("part", [1, 2])
def test_commit_with_set_access_failing_in_part_unmaps_the_run(bench: Bench, part: int) -> None:
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 3), fails(Step.SET_ACCESS, part=part))
    assert not failed.residue
    assert bench.physical == 0


@pytest.mark.parametrize("code", [Code.OUT_OF_MEMORY, Code.PEER_ACCESS_UNSUPPORTED])
def test_commit_with_set_access_failing_by_an_odd_code_unmaps_the_run(
    bench: Bench, code: Code
) -> None:
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 2), fails(Step.SET_ACCESS, code=code))
    assert failed.fault.code == code
    assert not failed.residue


def test_commit_with_the_second_run_failing_undoes_the_first(bench: Bench) -> None:
    serial = bench.filled(8, 1)
    bench.write(serial, 1, 7)
    failed = bench.failed(commit(serial, 0, 3), fails(Step.SET_ACCESS, 2))
    assert not failed.residue
    assert bench.committed(serial) == [1]
    assert bench.read(serial, 1) == 7


# --- faults in the undoing ----------------------------------------------------------------------


@pytest.mark.parametrize(("nth", "window"), [(1, 2), (2, 1), (3, 0)])
def test_commit_with_an_unmap_of_the_undo_failing_quarantines_one_window(
    bench: Bench, nth: int, window: int
) -> None:
    """Scenario 11.  The driver confirms that it is still there; the others are clean."""
    serial = bench.reserved(8)
    failed = bench.failed(commit(serial, 0, 3), fails(Step.SET_ACCESS), fails(Step.UNMAP, nth))
    assert failed.fault.step is Step.SET_ACCESS
    assert failed.cleanup_faults == (Fault(Step.UNMAP, Code.UNKNOWN),)
    assert bench.quarantined(serial) == [window]
    assert bench.committed(serial) == []
    assert bench.ledger == Ledger(limit=64, charged=1, owned=1, mapped=1)
    assert bench.done(commit(serial, 4, 2)) == 2
    assert bench.refused(commit(serial, window, 1)) is Refusal.QUARANTINED


def test_commit_with_an_unmap_of_the_undo_failing_though_it_worked_is_clean(
    bench: Bench,
) -> None:
    """Scenario 14.  The answer to the question is "not mapped"."""
    serial = bench.reserved(8)
    failed = bench.failed(
        commit(serial, 0, 2), fails(Step.SET_ACCESS), fails(Step.UNMAP, manner=WITH)
    )
    assert not failed.residue
    assert "query(range1+1g) -> not mapped" in bench.lines


@EITHER
def test_commit_with_the_question_of_the_undo_failing_counts_as_mapped(
    bench: Bench, manner: Manner
) -> None:
    """Scenario 49.  Three faults in one commit of two; charged never falls below physical."""
    serial = bench.reserved(8)
    failed = bench.failed(
        commit(serial, 0, 2),
        fails(Step.SET_ACCESS),
        fails(Step.UNMAP, manner=manner),
        fails(Step.QUERY),
    )
    assert [fault.step for fault in failed.cleanup_faults] == [Step.UNMAP, Step.QUERY]
    assert bench.quarantined(serial) == [1]
    assert bench.ledger.charged == 1 >= bench.physical
    assert [handle.referenced for handle in bench.driver.live_handles().values()] == [True]


@EITHER
def test_commit_with_a_release_of_the_undo_failing_quarantines_the_handle(
    bench: Bench, manner: Manner
) -> None:
    """Scenario 12.  Still owned, no longer mapped, and the release is not tried again."""
    serial = bench.reserved(8)
    failed = bench.failed(
        commit(serial, 0, 2), fails(Step.MAP, 2), fails(Step.RELEASE, manner=manner)
    )
    assert failed.residue.ledger == Ledger(charged=1, owned=1, quarantined=1)
    assert bench.observe().handles[2].quarantined
    assert bench.steps.count(Step.RELEASE) == 2
    assert bench.committed(serial) == bench.quarantined(serial) == []


def test_commit_with_every_undo_failing_keeps_everything(bench: Bench) -> None:
    serial = bench.reserved(8)
    failed = bench.failed(
        commit(serial, 0, 3), fails(Step.SET_ACCESS), fails(Step.UNMAP, lasting=True)
    )
    assert bench.quarantined(serial) == [0, 1, 2]
    assert failed.residue.ledger == Ledger(charged=3, owned=3, mapped=3)
    assert Step.RELEASE not in bench.steps


def test_commit_with_every_release_of_the_undo_failing_keeps_every_handle(
    make_bench: MakeBench,
) -> None:
    bench = pooled_pair(make_bench)
    failed = bench.failed(commit(1, 0, 4), fails(Step.MAP), fails(Step.RELEASE, lasting=True))
    assert failed.residue.ledger == Ledger(charged=2, owned=2, quarantined=2)
    assert bench.pool == [1, 2]


def test_commit_with_a_hit_quarantined_puts_only_the_other_back(make_bench: MakeBench) -> None:
    bench = pooled_pair(make_bench)
    failed = bench.failed(commit(1, 0, 2), fails(Step.SET_ACCESS), fails(Step.UNMAP))
    assert bench.pool == [2]
    assert bench.quarantined(1) == [1]
    assert failed.residue.ledger == Ledger(mapped=1, pooled=-1)


# --- the driver is asked ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        [fails(Step.CREATE, manner=WITH)],
        [fails(Step.MAP, 2, manner=WITH)],
        [fails(Step.SET_ACCESS, manner=WITH)],
        [fails(Step.SET_ACCESS), fails(Step.UNMAP, manner=WITH, lasting=True)],
        [fails(Step.SET_ACCESS), fails(Step.RELEASE, manner=WITH, lasting=True)],
    ],
    ids=["create", "map", "set_access", "unmap", "release"],
)
def test_commit_with_calls_that_worked_after_all_succeeds_next_time(
    bench: Bench, faults: Sequence[FaultSpec]
) -> None:
    """Scenario 14.  Whatever was reported, the same commit works once the fault has gone."""
    serial = bench.reserved(8)
    _ = bench.failed(commit(serial, 0, 2), *faults)
    assert bench.done(commit(serial, 0, 2)) == 2
    assert bench.committed(serial) == [0, 1]
    assert [bench.read(serial, window) for window in (0, 1)] == [0, 0]
    assert bench.driver.query(bench.address(serial, 1)) is Rights.RW


def test_commit_that_failed_leaves_what_was_there_alone(bench: Bench) -> None:
    serial = bench.filled(8, 0)
    bench.write(serial, 0, 5)
    _ = bench.failed(commit(serial, 0, 8), fails(Step.MAP, 7))
    assert bench.read(serial, 0) == 5
    assert bench.ledger.charged == bench.physical == 1
    assert bench.driver.physical_bytes() == GRANULE
