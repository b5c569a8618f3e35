"""The driver model answers as the measured driver does, and refuses what is undefined."""

from threading import Thread

import pytest

from kvvmm_model.driver_model import (
    DOCUMENTED,
    DriverMisuse,
    DriverModel,
    LiveHandle,
    LiveMapping,
    Memory,
)
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.vocabulary import Code, Driver, Fault, Rights, Step
from kvvmm_model.yielding import YieldingDriver

G = 2 << 20
TIB = 1 << 40


def reserved(driver: Driver, granules: int, alignment: int = 0) -> int:
    address = driver.address_reserve(granules * G, alignment)
    assert not isinstance(address, Fault)
    return address


def created(driver: Driver, granules: int = 1) -> int:
    handle = driver.create(granules * G)
    assert not isinstance(handle, Fault)
    return handle


def mapped(
    driver: Driver, address: int, granules: int = 1, rights: Rights | None = Rights.RW
) -> int:
    handle = created(driver, granules)
    assert driver.map(address, granules * G, handle) is None
    if rights is not None:
        assert driver.set_access(address, granules * G, rights) is None
    return handle


@pytest.fixture
def model() -> DriverModel:
    return DriverModel()


def invalid(step: Step) -> Fault:
    return Fault(step, Code.INVALID_VALUE)


# --- address ranges: D-1 to D-4 ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "alignment"), [(0, 0), (4096, 0), (64 << 10, 0), (G + 4096, 0), (G, 3)]
)
def test_reserve_of_parts_of_granules_is_invalid(
    model: DriverModel, size: int, alignment: int
) -> None:
    assert model.address_reserve(size, alignment) == invalid(Step.ADDRESS_RESERVE)  # D-1
    assert model.live_ranges() == {}


@pytest.mark.parametrize("alignment", [0, 4096, G, 1 << 30, 1 << 36])
def test_reserve_with_alignment_is_aligned_to_it_and_the_granularity(
    model: DriverModel, alignment: int
) -> None:
    _ = reserved(model, 3)
    assert reserved(model, 1, alignment) % max(alignment, G) == 0  # D-1


def test_reserve_twice_gives_neighbours(model: DriverModel) -> None:
    first = reserved(model, 3)
    assert reserved(model, 1) == first + 3 * G


def test_reserve_beyond_the_address_space_answers_out_of_memory(model: DriverModel) -> None:
    no_room = Fault(Step.ADDRESS_RESERVE, Code.OUT_OF_MEMORY)
    assert model.address_reserve(128 * TIB, 0) == no_room  # D-2
    ranges = [model.address_reserve(TIB, 0) for _ in range(126)]
    assert not any(isinstance(address, Fault) for address in ranges)
    assert model.address_reserve(G, 0) == no_room
    assert model.physical_bytes() == 0
    for address in ranges:
        assert isinstance(address, int)
        assert model.address_free(address, TIB) is None
    assert isinstance(model.address_reserve(64 * TIB, 0), int)


def test_reserve_after_frees_takes_the_last_freed_first(model: DriverModel) -> None:
    first, second, _ = reserved(model, 2), reserved(model, 2), reserved(model, 2)
    assert model.address_free(first, 2 * G) is None
    assert model.address_free(second, 2 * G) is None
    assert reserved(model, 1) == second  # D-3, D-9; the rest of it stays free
    assert reserved(model, 1) == second + G
    assert reserved(model, 2) == first


def test_address_free_of_anything_but_one_reservation_is_invalid(model: DriverModel) -> None:
    base = reserved(model, 2)
    assert reserved(model, 2) == base + 2 * G
    for address, size in ((base, G), (base + G, G), (base, 4 * G), (base + 8 * G, G)):
        assert model.address_free(address, size) == invalid(Step.ADDRESS_FREE)  # D-4
    assert model.address_free(base, 2 * G) is None
    assert model.address_free(base, 2 * G) == invalid(Step.ADDRESS_FREE)


def test_address_free_while_mapped_is_invalid_and_changes_nothing(model: DriverModel) -> None:
    base, after = reserved(model, 2), reserved(model, 2)
    _ = mapped(model, base + G, 2)  # reaches into the second from outside
    for address in (base, after):
        assert model.address_free(address, 2 * G) == invalid(Step.ADDRESS_FREE)  # D-4
    assert model.query(after) is Rights.RW
    assert model.unmap(base + G, 2 * G) is None
    assert model.address_free(base, 2 * G) is None
    assert model.address_free(after, 2 * G) is None


# --- handles: D-5 to D-9 -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 4096, G + 4096])
def test_create_of_parts_of_granules_is_invalid(model: DriverModel, size: int) -> None:
    assert model.create(size) == invalid(Step.CREATE)  # D-5


def test_create_above_capacity_answers_out_of_memory_and_smaller_ones_go_on() -> None:
    model = DriverModel(capacity_bytes=4 * G)
    _ = created(model, 3)
    assert model.create(2 * G) == Fault(Step.CREATE, Code.OUT_OF_MEMORY)  # D-5
    assert model.physical_bytes() == 3 * G
    _ = created(model, 1)
    assert model.physical_bytes() == model.capacity_bytes


def test_read_of_fresh_memory_is_zero_also_where_the_handle_value_is_recycled(
    model: DriverModel,
) -> None:
    base = reserved(model, 1)
    handle = mapped(model, base)
    assert model.write(base, G, 0xDEADBEEF) is None
    assert model.read(base) == 0xDEADBEEF
    assert model.unmap(base, G) is None
    assert model.release(handle) is None
    assert mapped(model, base) == handle  # D-9
    assert model.read(base) == 0  # D-6


def test_read_after_unmap_and_map_of_the_same_handle_finds_its_contents(
    model: DriverModel,
) -> None:
    base = reserved(model, 2)
    handle = mapped(model, base)
    assert model.write(base, G, 0x42424242) is None
    assert model.fence() is None
    assert model.unmap(base, G) is None
    assert model.map(base + G, G, handle) is None
    assert model.set_access(base + G, G, Rights.READ) is None
    assert model.read(base + G + 4096) == 0x42424242  # D-6


def test_release_while_mapped_keeps_the_memory_until_the_last_unmap(model: DriverModel) -> None:
    base = reserved(model, 2)
    handle = mapped(model, base)
    assert model.map(base + G, G, handle) is None
    assert model.release(handle) is None
    assert model.live_handles() == {handle: LiveHandle(G, 2, referenced=False)}  # D-7
    assert created(model) != handle
    assert model.unmap(base, G) is None
    assert model.query(base + G) is Rights.NONE
    assert model.unmap(base + G, G) is None
    assert handle not in model.live_handles()
    assert created(model) == handle


def test_release_of_a_stale_or_invented_handle_is_misuse(model: DriverModel) -> None:
    base = reserved(model, 1)
    handle = mapped(model, base)
    assert model.release(handle) is None
    for stale in (handle, 12345):
        with pytest.raises(DriverMisuse, match="D-8"):
            _ = model.release(stale)


def test_map_of_a_stale_or_invented_handle_is_misuse(model: DriverModel) -> None:
    base = reserved(model, 2)
    handle = mapped(model, base)
    assert model.release(handle) is None  # its memory is still there, its reference is not
    for stale in (handle, 12345):
        with pytest.raises(DriverMisuse, match="D-8"):
            _ = model.map(base + G, G, stale)


def test_create_after_releases_takes_the_last_released_value_first(model: DriverModel) -> None:
    first, second = created(model), created(model, 3)
    assert model.release(first) is None
    assert model.release(second) is None
    assert (created(model, 2), created(model)) == (second, first)  # D-9
    assert len({first, second}) == 2


# --- mapping and rights: D-10 to D-18 ----------------------------------------------------------


def test_map_of_part_of_a_handle_is_not_supported(model: DriverModel) -> None:
    base, handle = reserved(model, 8), created(model, 4)
    for size in (G, 8 * G, 4096):
        assert model.map(base, size, handle) == Fault(Step.MAP, Code.NOT_SUPPORTED)  # D-10


def test_map_unaligned_empty_occupied_or_outside_is_invalid(model: DriverModel) -> None:
    base = reserved(model, 8)
    _ = mapped(model, base + 2 * G, 4)
    one, two = created(model), created(model, 2)
    wrong = [(base + 4096, G, one), (base, 0, one), (base + 3 * G, G, one)]
    wrong += [(base + G, 2 * G, two), (base + 5 * G, 2 * G, two), (base + 8 * G, G, one)]
    wrong += [(base - G, G, one), (0, G, one)]
    for address, size, handle in wrong:
        assert model.map(address, size, handle) == invalid(Step.MAP)  # D-10
    assert model.live_mappings().keys() == {base + 2 * G}


def test_map_at_the_last_granule_spills_and_is_noted(model: DriverModel) -> None:
    base = reserved(model, 2)
    _ = mapped(model, base + G, 2)  # D-11
    assert model.query(base + 2 * G) is Rights.RW
    assert "spills" in model.oddities[0]
    victim = reserved(model, 1)
    assert victim == base + 2 * G
    assert model.map(victim, G, created(model)) == invalid(Step.MAP)


def test_map_larger_than_its_reservation_is_invalid(model: DriverModel) -> None:
    base = reserved(model, 1)
    assert model.map(base, 2 * G, created(model, 2)) == invalid(Step.MAP)  # D-11


def test_one_call_over_two_reservations_covers_both(model: DriverModel) -> None:
    base = reserved(model, 2)
    assert reserved(model, 2) == base + 2 * G
    _ = mapped(model, base + G, 2)  # crosses the border, D-11
    _ = mapped(model, base, 1, rights=None)
    assert model.set_access(base, 3 * G, Rights.RW) is None
    assert model.clear(base, 3 * G) is None
    assert model.fence() is None
    assert model.unmap(base, 3 * G) is None
    assert model.live_mappings() == {}


def test_aliases_share_contents_and_have_rights_of_their_own(model: DriverModel) -> None:
    base, other = reserved(model, 2), reserved(model, 1)
    handle = mapped(model, base)
    for alias in (base + G, other):
        assert model.map(alias, G, handle) is None
        assert model.set_access(alias, G, Rights.READ) is None
    assert model.write(base, G, 7) is None
    assert [model.read(address) for address in (base, base + G, other)] == [7, 7, 7]  # D-12
    assert model.live_mappings() == {
        base: LiveMapping(handle, G, Rights.RW),
        base + G: LiveMapping(handle, G, Rights.READ),
        other: LiveMapping(handle, G, Rights.READ),
    }
    assert model.live_handles() == {handle: LiveHandle(G, 3, referenced=True)}


def test_map_starts_without_rights_also_after_unmap_and_map(model: DriverModel) -> None:
    base = reserved(model, 1)
    handle = mapped(model, base)
    assert model.unmap(base, G) is None
    assert model.map(base, G, handle) is None
    assert model.query(base) is Rights.NONE  # D-13
    assert model.clear(base, G) == invalid(Step.CLEAR)
    assert model.read(base) == invalid(Step.QUERY)


def test_set_access_on_anything_but_whole_mappings_is_invalid(model: DriverModel) -> None:
    base = reserved(model, 8)
    _ = mapped(model, base + G, 2, rights=None)
    wrong = [(base, 3 * G), (base + G, G), (base + 2 * G, G), (base + G, 0), (base + 7 * G, G)]
    wrong += [(base + G, 3 * G), (base + G, 4096), (base + G + 4096, G)]
    for address, size in wrong:
        assert model.set_access(address, size, Rights.RW) == invalid(Step.SET_ACCESS)  # D-14
    assert model.query(base + G) is Rights.NONE


def test_set_access_over_a_hole_stops_there_and_succeeds(model: DriverModel) -> None:
    base = reserved(model, 4)
    for at in (0, 1, 3):
        _ = mapped(model, base + at * G, rights=None)
    assert model.set_access(base, 4 * G, Rights.RW) is None  # D-15
    rights = [model.query(base + at * G) for at in range(4)]
    assert rights == [Rights.RW, Rights.RW, None, Rights.NONE]
    assert "hole" in model.oddities[0]


def test_set_access_may_change_at_will(model: DriverModel) -> None:
    base = reserved(model, 1)
    _ = mapped(model, base)
    for rights in (Rights.READ, Rights.NONE, Rights.RW):
        assert model.set_access(base, G, rights) is None  # D-17
        assert model.query(base) is rights


@pytest.mark.parametrize("rights", [Rights.READ, Rights.NONE])
def test_clear_without_write_rights_is_invalid_and_writes_nothing(
    model: DriverModel, rights: Rights
) -> None:
    base = reserved(model, 3)
    _ = mapped(model, base)
    _ = mapped(model, base + G)
    assert model.write(base, 2 * G, 5) is None
    assert model.fence() is None
    assert model.set_access(base + G, G, rights) is None
    assert model.clear(base, 2 * G) == invalid(Step.CLEAR)  # D-18
    assert model.clear(base + 2 * G, G) == invalid(Step.CLEAR)
    assert model.read(base) == 5


# --- unmapping and asking: D-20 to D-25 --------------------------------------------------------


def test_unmap_spans_mappings_and_gaps(model: DriverModel) -> None:
    base = reserved(model, 8)
    for at in (0, 1, 3):
        _ = mapped(model, base + at * G)
    assert model.unmap(base, 8 * G) is None  # D-20
    assert model.live_mappings() == {}


def test_unmap_of_part_of_a_mapping_is_invalid_and_unmaps_nothing(model: DriverModel) -> None:
    base = reserved(model, 8)
    _ = mapped(model, base + 3 * G)
    _ = mapped(model, base + 4 * G, 4)
    for address, size in ((base + 3 * G, 3 * G), (base + 6 * G, 2 * G), (base + 3 * G, 4096)):
        assert model.unmap(address, size) == invalid(Step.UNMAP)  # D-20
    assert model.unmap(base, 0) == invalid(Step.UNMAP)
    assert len(model.live_mappings()) == 2


def test_unmap_of_what_is_not_mapped_succeeds_and_is_noted(model: DriverModel) -> None:
    base = reserved(model, 1)
    _ = mapped(model, base)
    assert model.unmap(base, G) is None
    assert model.oddities == []
    assert model.unmap(base, G) is None  # D-21
    assert len(model.oddities) == 1


def test_unmap_under_a_store_that_was_not_fenced_is_misuse(model: DriverModel) -> None:
    base = reserved(model, 1)
    _ = mapped(model, base)
    assert model.clear(base, G) is None
    with pytest.raises(DriverMisuse, match="D-22"):
        _ = model.unmap(base, G)
    assert model.fence() is None
    assert model.unmap(base, G) is None


def test_set_access_under_a_store_that_was_not_fenced_is_misuse_if_rights_change(
    model: DriverModel,
) -> None:
    base = reserved(model, 2)
    _ = mapped(model, base)
    assert model.clear(base, G) is None
    _ = mapped(model, base + G, rights=None)
    assert model.set_access(base, 2 * G, Rights.RW) is None  # D-35
    with pytest.raises(DriverMisuse, match="D-34"):
        _ = model.set_access(base, 2 * G, Rights.READ)
    assert model.read(base) == 0  # waits
    assert model.set_access(base, 2 * G, Rights.READ) is None


def test_write_lands_in_order_at_the_fence(model: DriverModel) -> None:
    base = reserved(model, 4)
    _ = mapped(model, base, 4)
    assert model.write(base, 4 * G, 1) is None
    assert model.write(base + G, 2 * G, 2) is None
    assert model.clear(base + 2 * G, G) is None
    assert model.fence() is None
    assert [model.read(base + at * G) for at in range(4)] == [1, 2, 0, 1]


def test_query_tells_rights_no_rights_and_not_mapped(model: DriverModel) -> None:
    base = reserved(model, 4)
    handle = mapped(model, base, 2, rights=Rights.READ)
    _ = mapped(model, base + 2 * G, rights=None)
    answers = [model.query(base + at * G + 5) for at in range(4)]
    assert answers == [Rights.READ, Rights.READ, Rights.NONE, None]  # D-25
    assert model.release(handle) is None
    assert model.unmap(base, 2 * G) is None
    assert model.physical_bytes() == G  # asking took no reference


# --- what could not be passed to a driver ------------------------------------------------------


@pytest.mark.parametrize("wrong", [-1, 1.0, "4096", True, None, 1 << 64])
def test_any_call_with_what_is_no_natural_number_is_misuse(model: DriverModel, wrong: int) -> None:
    base, handle = reserved(model, 1), created(model)
    calls = (
        lambda: model.address_reserve(wrong, 0),
        lambda: model.address_reserve(G, wrong),
        lambda: model.create(wrong),
        lambda: model.map(wrong, G, handle),
        lambda: model.map(base, wrong, handle),
        lambda: model.map(base, G, wrong),
        lambda: model.set_access(wrong, G, Rights.RW),
        lambda: model.clear(base, wrong),
        lambda: model.unmap(wrong, G),
        lambda: model.release(wrong),
        lambda: model.address_free(base, wrong),
        lambda: model.copy(wrong, base, 1),
        lambda: model.copy(base, base, wrong),
        lambda: model.query(wrong),
        lambda: model.read(wrong),
        lambda: model.write(base, G, wrong),
    )
    for call in calls:
        with pytest.raises(DriverMisuse, match="integers"):
            _ = call()


@pytest.mark.parametrize("rights", [Rights.UNKNOWN, 3])
def test_set_access_with_rights_that_cannot_be_given_is_misuse(
    model: DriverModel, rights: Rights
) -> None:
    base = reserved(model, 1)
    _ = mapped(model, base)
    with pytest.raises(DriverMisuse, match="READ"):
        _ = model.set_access(base, G, rights)


def test_write_of_part_of_a_granule_is_misuse(model: DriverModel) -> None:
    base = reserved(model, 1)
    _ = mapped(model, base)
    for address, size, word in ((base, 4, 0), (base + 4, G, 0), (base, 0, 0), (base, G, 1 << 32)):
        with pytest.raises(DriverMisuse, match="whole granules"):
            _ = model.write(address, size, word)


@pytest.mark.parametrize("granularity", [3 << 20, 0, 1, 2])
def test_granularity_that_is_no_power_of_two_or_no_word_is_refused(granularity: int) -> None:
    with pytest.raises(ValueError, match="power of two, 4 or more"):
        _ = DriverModel(granularity_bytes=granularity)


# --- another profile, and threads --------------------------------------------------------------


def test_documented_profile_refuses_what_the_measured_driver_lets_pass() -> None:
    model = DriverModel(profile=DOCUMENTED)
    base = reserved(model, 4)
    for at in (0, 2):
        _ = mapped(model, base + at * G, rights=None)
    assert model.set_access(base, 3 * G, Rights.RW) == invalid(Step.SET_ACCESS)
    assert model.query(base) is Rights.NONE
    assert model.unmap(base + G, G) == invalid(Step.UNMAP)
    assert model.unmap(base, 3 * G) == invalid(Step.UNMAP)
    assert model.map(base + 3 * G, 2 * G, created(model, 2)) == invalid(Step.MAP)
    assert model.unmap(base, G) is None
    assert model.oddities == []


def test_yielding_driver_keeps_calls_of_many_threads_whole(model: DriverModel) -> None:
    driver = YieldingDriver(model)
    assert isinstance(driver, Memory)

    def churn(word: int) -> None:
        base = reserved(driver, 2)
        for _ in range(10):
            handle = mapped(driver, base, 2)
            assert driver.write(base, 2 * G, word) is None
            assert driver.read(base + G) == word
            assert driver.clear(base, G) is None
            assert driver.copy(base, base + G, 4) is None
            assert driver.read(base) == word
            assert driver.clear(base, 2 * G) is None
            assert driver.fence() is None
            assert driver.query(base) is Rights.RW
            assert driver.unmap(base, 2 * G) is None
            assert driver.release(handle) is None
        assert driver.address_free(base, 2 * G) is None

    threads = [Thread(target=churn, args=(word,)) for word in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert driver.granularity_bytes == G
    assert (model.physical_bytes(), model.live_ranges(), model.oddities) == (0, {}, [])


def test_yielding_driver_over_a_driver_without_memory_says_so(model: DriverModel) -> None:
    inner = RecordingDriver(model)
    with pytest.raises(TypeError, match="memory="):
        _ = YieldingDriver(inner).read(0)
    assert YieldingDriver(inner, model).read(0) == invalid(Step.QUERY)
