"""The driver model's copies: byte for byte, in order with stores, by everybody's rights."""

import random

import pytest

from kvvmm_model.driver_model import DriverMisuse, DriverModel
from kvvmm_model.vocabulary import Code, Fault, Rights, Step

G = 16  # so small that every word of it can be read
INVALID = Fault(Step.COPY, Code.INVALID_VALUE)
A, B = 0x44332211, 0x88776655


class Bench:
    """A reservation of twelve granules, some of them mapped."""

    def __init__(self) -> None:
        self.model = DriverModel(granularity_bytes=G)
        base = self.model.address_reserve(12 * G, 0)
        assert isinstance(base, int)
        self.base = base

    def at(self, window: int, byte: int = 0) -> int:
        return self.base + window * G + byte

    def map(self, window: int, size: int = 1, rights: Rights = Rights.RW) -> int:
        handle = self.model.create(size * G)
        assert isinstance(handle, int)
        return self.alias(window, handle, size, rights)

    def alias(self, window: int, handle: int, size: int = 1, rights: Rights = Rights.READ) -> int:
        assert self.model.map(self.at(window), size * G, handle) is None
        assert self.model.set_access(self.at(window), size * G, rights) is None
        return handle

    def write(self, window: int, word: int, size: int = 1) -> None:
        assert self.model.write(self.at(window), size * G, word) is None

    def words(self, window: int) -> list[int]:
        found = [self.model.read(self.at(window, byte)) for byte in range(0, G, 4)]
        assert all(isinstance(word, int) for word in found)
        return [int(word) for word in found if isinstance(word, int)]

    def bytes(self, window: int, size: int) -> bytearray:
        found = bytearray()
        for number in range(size):
            for word in self.words(window + number):
                found += word.to_bytes(4, "little")
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


# --- bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (1, [0x00000011, 0, 0, 0]),
        (4, [A, 0, 0, 0]),
        (6, [A, 0x00002211, 0, 0]),
        (15, [A, A, A, 0x00332211]),
        (16, [A, A, A, A]),
    ],
)
def test_copy_of_part_of_a_granule_leaves_the_rest(
    bench: Bench, size: int, words: list[int]
) -> None:
    _ = bench.map(0), bench.map(4)
    bench.write(0, A)
    assert bench.model.copy(bench.at(4), bench.at(0), size) is None
    assert bench.words(4) == words
    assert bench.words(0) == [A] * 4


def test_copy_to_another_phase_shifts_the_words(bench: Bench) -> None:
    _ = bench.map(0), bench.map(4)
    bench.write(0, A)
    assert bench.model.copy(bench.at(4, 1), bench.at(0), 7) is None
    assert bench.words(4) == [0x33221100, 0x33221144, 0, 0]


def test_copy_goes_over_borders_of_granules_and_mappings_of_both_sides(bench: Bench) -> None:
    _ = bench.map(0, 2), bench.map(2), bench.map(4), bench.map(5, 2)
    for window, word in ((0, A), (1, B), (2, 7)):
        bench.write(window, word)
    assert bench.model.copy(bench.at(4), bench.at(0), 3 * G - 2) is None
    assert [bench.words(window) for window in (4, 5, 6)] == [[A] * 4, [B] * 4, [7, 7, 7, 7]]
    assert bench.model.copy(bench.at(4), bench.at(0, 8), 2 * G) is None
    assert bench.words(4) == [A, A, B, B]
    assert bench.words(5) == [B, B, 7, 7]


def test_copies_and_stores_at_random_leave_what_bytes_would_be() -> None:
    choices = random.Random(3)
    for _ in range(60):
        bench = Bench()
        for window, size in ((0, 3), (3, 1), (4, 2), (6, 4)):
            _ = bench.map(window, size)
        expected = bytearray(10 * G)
        for _ in range(12):
            if choices.random() < 0.4:
                window, word = choices.randrange(10), choices.getrandbits(32)
                bench.write(window, word)
                expected[window * G : (window + 1) * G] = word.to_bytes(4, "little") * (G // 4)
                continue
            size = choices.randint(1, 4 * G)
            one = choices.randint(0, 5 * G - size)
            other = choices.randint(5 * G, 10 * G - size)
            source, target = (one, other) if choices.random() < 0.5 else (other, one)
            assert bench.model.copy(bench.at(0, target), bench.at(0, source), size) is None
            expected[target : target + size] = expected[source : source + size]
        assert bench.bytes(0, 10) == expected


def test_copy_is_seen_through_every_alias_and_dies_with_the_memory(bench: Bench) -> None:
    _ = bench.map(0)
    handle = bench.map(4)
    _ = bench.alias(8, handle)
    bench.write(0, A)
    assert bench.model.copy(bench.at(4), bench.at(0), 4) is None
    assert bench.words(8) == [A, 0, 0, 0]  # D-12
    for window in (4, 8):
        assert bench.model.unmap(bench.at(window), G) is None
    assert bench.model.release(handle) is None
    assert bench.map(4) == handle  # D-9: the same value, other memory
    assert bench.words(4) == [0] * 4


# --- order ---------------------------------------------------------------------------------------


def test_copy_takes_what_was_stored_before_it_and_nothing_after(bench: Bench) -> None:
    _ = bench.map(0), bench.map(4), bench.map(8)
    bench.write(0, A)
    bench.write(4, B)
    assert bench.model.copy(bench.at(4), bench.at(0), 4) is None
    assert bench.model.copy(bench.at(8), bench.at(4), 8) is None
    bench.write(0, 1)
    assert bench.model.fence() is None
    assert bench.words(4) == [A, B, B, B]
    assert bench.words(8) == [A, B, 0, 0]
    assert bench.words(0) == [1] * 4


def test_clear_after_a_copy_makes_the_granule_uniform_again(bench: Bench) -> None:
    _ = bench.map(0), bench.map(4)
    bench.write(0, A)
    assert bench.model.copy(bench.at(4), bench.at(0), 5) is None
    assert bench.model.clear(bench.at(4), G) is None
    assert bench.words(4) == [0] * 4


# --- rights: D-18 --------------------------------------------------------------------------------


@pytest.mark.parametrize("rights", [Rights.RW, Rights.READ])
def test_copy_from_what_can_be_read_works(bench: Bench, rights: Rights) -> None:
    handle = bench.map(0)
    bench.write(0, A)
    _ = bench.alias(8, handle, rights=rights)
    _ = bench.map(4)
    assert bench.model.copy(bench.at(4), bench.at(8), G) is None
    assert bench.words(4) == [A] * 4


@pytest.mark.parametrize("rights", [Rights.READ, Rights.NONE])
def test_copy_to_where_nothing_may_be_written_is_invalid_and_copies_nothing(
    bench: Bench, rights: Rights
) -> None:
    _ = bench.map(0, 2), bench.map(4)
    handle = bench.map(8)
    _ = bench.alias(5, handle, rights=rights)
    bench.write(0, A, 2)
    assert bench.model.copy(bench.at(4), bench.at(0), 2 * G) == INVALID
    assert bench.model.copy(bench.at(5), bench.at(0), 1) == INVALID
    assert bench.words(4) == bench.words(8) == [0] * 4
    assert bench.model.unmap(bench.at(0), 2 * G) is None  # nothing is under way


def test_copy_from_or_to_what_is_not_mapped_or_not_readable_is_invalid(bench: Bench) -> None:
    _ = bench.map(0), bench.map(4, 2), bench.map(8, rights=Rights.NONE)
    for target, source, size in (
        (bench.at(4), bench.at(0), G + 1),  # reaches past the source
        (bench.at(5), bench.at(4), G + 1),  # and past the target
        (bench.at(4), bench.at(8), 1),
        (bench.at(4), bench.at(2), 1),
        (bench.at(2), bench.at(4), 1),
    ):
        assert bench.model.copy(target, source, size) == INVALID
    assert bench.words(4) == [0] * 4


# --- what is undefined ---------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, 4])
def test_unmap_under_a_copy_that_was_not_fenced_is_misuse_at_either_end(
    bench: Bench, window: int
) -> None:
    _ = bench.map(0), bench.map(4)
    assert bench.model.copy(bench.at(4), bench.at(0), 1) is None
    with pytest.raises(DriverMisuse, match="D-22"):
        _ = bench.model.unmap(bench.at(window), G)
    assert bench.model.fence() is None
    assert bench.model.unmap(bench.at(window), G) is None


@pytest.mark.parametrize("window", [0, 4])
def test_other_rights_under_a_copy_that_was_not_fenced_are_misuse_at_either_end(
    bench: Bench, window: int
) -> None:
    _ = bench.map(0), bench.map(4)
    assert bench.model.copy(bench.at(4), bench.at(0), 1) is None
    assert bench.model.set_access(bench.at(window), G, Rights.RW) is None  # D-35
    with pytest.raises(DriverMisuse, match="D-34"):
        _ = bench.model.set_access(bench.at(window), G, Rights.READ)
    assert bench.model.fence() is None
    assert bench.model.set_access(bench.at(window), G, Rights.READ) is None


def test_other_mappings_may_change_under_a_copy(bench: Bench) -> None:
    handle = bench.map(0)
    _ = bench.alias(2, handle), bench.alias(1, handle), bench.map(4, 2), bench.map(6)
    assert bench.model.copy(bench.at(4), bench.at(0), G) is None
    assert bench.model.set_access(bench.at(1), G, Rights.NONE) is None  # another alias, D-35
    assert bench.model.unmap(bench.at(2), G) is None
    assert bench.model.unmap(bench.at(6), G) is None  # a neighbour


def test_copy_that_overlaps_itself_is_misuse_also_by_an_alias(bench: Bench) -> None:
    handle = bench.map(0, 2)
    _ = bench.alias(4, handle, 2, Rights.RW)
    for target, source in ((bench.at(0, 4), bench.at(0)), (bench.at(5, 3), bench.at(0, 8))):
        with pytest.raises(DriverMisuse, match="overlaps"):
            _ = bench.model.copy(target, source, 12)
    assert bench.model.copy(bench.at(5), bench.at(0), G) is None  # side by side


def test_copy_of_nothing_or_with_what_is_no_natural_number_is_misuse(bench: Bench) -> None:
    _ = bench.map(0), bench.map(4)
    with pytest.raises(DriverMisuse, match="of nothing"):
        _ = bench.model.copy(bench.at(4), bench.at(0), 0)
    for wrong in ((-1, bench.at(0), 1), (bench.at(4), 1 << 64, 1), (bench.at(4), bench.at(0), -1)):
        with pytest.raises(DriverMisuse, match="integers"):
            _ = bench.model.copy(*wrong)


def test_read_where_no_word_begins_is_misuse(bench: Bench) -> None:
    _ = bench.map(0)
    with pytest.raises(DriverMisuse, match="multiples of 4"):
        _ = bench.model.read(bench.at(0, 2))
