"""Recorded calls: what is kept, and how it reads."""

import pytest

from kvvmm_model.driver_model import DriverMisuse, DriverModel
from kvvmm_model.recording import Call, CallNames, RecordingDriver, describe_calls
from kvvmm_model.vocabulary import Code, Driver, Fault, Rights, Step


def tour(driver: Driver) -> None:
    """Every kind of call, with values recycled on the way."""
    g = driver.granularity_bytes
    for _ in range(2):
        base = driver.address_reserve(4 * g, 0)
        handle = driver.create(2 * g)
        assert isinstance(base, int)
        assert isinstance(handle, int)
        assert driver.map(base + g, 2 * g, handle) is None
        assert driver.set_access(base + g, 2 * g, Rights.RW) is None
        assert driver.clear(base + g, 2 * g) is None
        assert driver.copy(base + 2 * g, base + g, g) is None
        assert driver.fence() is None
        assert driver.query(base + 2 * g) is Rights.RW
        assert driver.unmap(base + g, 2 * g) is None
        assert driver.query(base) is None
        assert driver.release(handle) is None
        assert driver.address_free(base, 4 * g) is None
    assert isinstance(driver.create(1), Fault)


FIRST_ROUND = [
    "address_reserve(4g) -> range1",
    "create(2g) -> handle1",
    "map(range1+1g, 2g, handle1) -> ok",
    "set_access(range1+1g, 2g, RW) -> ok",
    "clear(range1+1g, 2g) -> ok",
    "copy(range1+2g, range1+1g, 1g) -> ok",
    "fence() -> ok",
    "query(range1+2g) -> RW",
    "unmap(range1+1g, 2g) -> ok",
    "query(range1) -> not mapped",
    "release(handle1) -> ok",
    "address_free(range1, 4g) -> ok",
]


def test_calls_of_every_kind_are_kept_with_arguments_and_answers() -> None:
    driver = RecordingDriver(DriverModel())
    tour(driver)
    g = driver.granularity_bytes
    calls = driver.take()
    assert {call.step for call in calls} == set(Step)
    base, handle = calls[0].answer, calls[1].answer
    assert isinstance(base, int)
    assert isinstance(handle, int)
    assert calls[2] == Call(Step.MAP, (base + g, 2 * g, handle), None)
    assert calls[3] == Call(Step.SET_ACCESS, (base + g, 2 * g, 3), None)
    assert calls[-1] == Call(Step.CREATE, (1,), Fault(Step.CREATE, Code.INVALID_VALUE))


def test_take_empties_and_counts_go_on() -> None:
    driver = RecordingDriver(DriverModel())
    tour(driver)
    assert len(driver.take()) == 25
    assert driver.take() == driver.calls == []
    tour(driver)
    assert (driver.counts[Step.CREATE], driver.counts[Step.QUERY]) == (6, 8)


def test_durations_are_kept_only_when_timed() -> None:
    plain, timed = RecordingDriver(DriverModel()), RecordingDriver(DriverModel(), timed=True)
    tour(plain)
    tour(timed)
    assert plain.durations == {}
    assert {step: len(found) for step, found in timed.durations.items()} == timed.counts
    assert min(timed.durations[Step.MAP]) > 0


def test_a_call_that_raises_is_not_kept() -> None:
    driver = RecordingDriver(DriverModel())
    with pytest.raises(DriverMisuse):
        _ = driver.release(1)
    assert driver.calls == []


def test_description_names_recycled_values_anew() -> None:
    driver = RecordingDriver(DriverModel())
    tour(driver)
    lines = describe_calls(driver.calls, driver.granularity_bytes)
    assert lines[:12] == FIRST_ROUND
    assert lines[12:24] == [
        line.replace("range1", "range2").replace("handle1", "handle2") for line in FIRST_ROUND
    ]
    assert lines[24] == "create(1 bytes) -> INVALID_VALUE"


def test_description_is_the_same_on_another_machine() -> None:
    one, other = DriverModel(), DriverModel(granularity_bytes=4096)
    assert isinstance(other.create(4096), int)
    assert isinstance(other.address_reserve(1 << 20, 0), int)
    first, second = RecordingDriver(one), RecordingDriver(other)
    tour(first)
    tour(second)
    assert describe_calls(first.take()[:24]) == describe_calls(second.take()[:24])


def test_description_of_values_from_before_names_them_as_they_come() -> None:
    driver = RecordingDriver(DriverModel())
    tour(driver)
    g = driver.granularity_bytes
    assert describe_calls(driver.calls[2:4], g) == [
        "map(address1, 2g, handle1) -> ok",
        "set_access(address1, 2g, RW) -> ok",
    ]
    assert describe_calls(driver.calls[7:9], g) == [
        "query(address1) -> RW",
        "unmap(address2, 2g) -> ok",
    ]


def test_names_last_over_several_takes() -> None:
    driver = RecordingDriver(DriverModel())
    names = CallNames(driver.granularity_bytes)
    tour(driver)
    calls = driver.take()
    lines = [names.describe(call) for part in (calls[:5], calls[5:12]) for call in part]
    assert lines == FIRST_ROUND


def test_description_shows_an_alignment_and_a_code_without_a_name() -> None:
    calls = [
        Call(Step.ADDRESS_RESERVE, (8, 16), Fault(Step.ADDRESS_RESERVE, 12345)),
        Call(Step.FENCE, (), None),
    ]
    assert describe_calls(calls, 8) == [
        "address_reserve(1g, aligned 2g) -> code 12345",
        "fence() -> ok",
    ]


def test_description_of_a_copy_names_both_places_and_does_not_take_its_size_for_a_unit() -> None:
    calls = [
        Call(Step.ADDRESS_RESERVE, (64, 0), 1024),
        Call(Step.ADDRESS_RESERVE, (64, 0), 2048),
        Call(Step.COPY, (2048 + 32, 1024 + 16, 16), None),
        Call(Step.COPY, (2048, 1024 + 48, 5), Fault(Step.COPY, Code.UNKNOWN)),
        Call(Step.COPY, (4096, 5120, 16), None),
    ]
    assert describe_calls(calls)[2:] == [
        "copy(range2+2g, range1+1g, 1g) -> ok",
        "copy(range2, range1+3g, 5 bytes) -> UNKNOWN",
        "copy(address3, address4, 1g) -> ok",
    ]
