"""Fragments and windows: worked values, counted caches, and numbers that cannot be meant."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvvmm_model.geometry import (
    Fragments,
    Geometry,
    GeometryError,
    Layout,
    Windows,
    commit_floor,
    committed,
    fragments,
    whole_windows,
    windows_of_tokens,
    windows_touched,
)

from support.written_cache import (
    LAYOUTS,
    MANY,
    STARTS,
    TOKENS,
    VALUES_NOT_COUNTS,
    geometry,
    shapes,
    touched,
    written,
)

MIB = 1 << 20

# --- worked values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "number", "prefix_bytes_in_each"),
    [
        (Layout.HEAD_MAJOR, 768, 512_000),
        (Layout.SEQ_MAJOR, 96, 4_096_000),
        (Layout.TOKEN_MAJOR, 1, 393_216_000),
    ],
)
def test_fragments_of_the_worked_model(
    layout: Layout, number: int, prefix_bytes_in_each: int
) -> None:
    found = fragments(geometry(), layout)
    assert sum(each.count for each in found) == number
    assert {each.bytes_per_token * 2000 for each in found} == {prefix_bytes_in_each}


@pytest.mark.parametrize(
    ("layout", "windows", "mib"),
    [(Layout.HEAD_MAJOR, 768, 1536), (Layout.SEQ_MAJOR, 96, 192), (Layout.TOKEN_MAJOR, 1, 2)],
)
def test_commit_floor_of_the_worked_model(layout: Layout, windows: int, mib: int) -> None:
    assert commit_floor(geometry(), layout) == windows
    assert windows * geometry().granularity_bytes == mib * MIB


def test_token_stride_in_token_major() -> None:
    assert geometry().token_bytes == 2 * 48 * 8 * 128 * 2


# --- counted ------------------------------------------------------------------------------------


@MANY
@given(shapes(), LAYOUTS, TOKENS, STARTS)
def test_fragments_and_committed_windows_are_what_is_counted(
    shape: Geometry, layout: Layout, tokens: int, start_bytes: int
) -> None:
    cache = written(shape, layout, tokens, start_bytes)
    assert sum(each.count for each in fragments(shape, layout)) == len(cache)
    sizes = sorted(
        size
        for each in fragments(shape, layout)
        for size in [each.bytes_per_token * tokens] * each.count
    )
    assert sizes == sorted(windows.total() for windows in cache.values())
    assert committed(shape, layout, tokens, start_bytes) == touched(cache)
    first = written(shape, layout, 1, start_bytes)
    assert commit_floor(shape, layout, start_bytes) == touched(first)
    assert committed(shape, layout, 0, start_bytes) == 0


@MANY
@given(shapes(), LAYOUTS, TOKENS, st.integers(0, 9), STARTS)
def test_windows_of_tokens_are_what_is_counted(
    shape: Geometry, layout: Layout, end: int, first: int, start_bytes: int
) -> None:
    first = min(first, end)
    cache = written(shape, layout, end, start_bytes, first)
    for each in fragments(shape, layout):
        found = windows_of_tokens(each, first, end, shape.granularity_bytes, start_bytes)
        of_this_kind = [windows for name, windows in cache.items() if name[0] == each.holds]
        assert len(of_this_kind) == (each.count if first < end else 0)
        for windows in of_this_kind:
            assert sorted(windows) == list(range(found.first, found.end))
        if first == end:
            assert found.number == 0


@MANY
@given(st.integers(0, 90), st.integers(0, 90), st.integers(1, 40))
def test_windows_of_a_stretch_are_what_is_counted(start: int, size: int, unit: int) -> None:
    held = Counter(byte // unit for byte in range(start, start + size))
    found, whole = windows_touched(start, size, unit), whole_windows(start, size, unit)
    assert list(range(found.first, found.end)) == sorted(held)
    assert list(range(whole.first, whole.end)) == sorted(w for w in held if held[w] == unit)
    assert found.number >= whole.number >= 0


def test_share_in_token_major_needs_only_the_sum_of_both_widths() -> None:
    assert fragments(geometry(k_width=192, v_width=64), Layout.TOKEN_MAJOR) == fragments(
        geometry(), Layout.TOKEN_MAJOR
    )


def test_elements_of_four_bits_are_packed() -> None:
    assert fragments(geometry(element_bits=4), Layout.HEAD_MAJOR)[0] == Fragments("K", 384, 64)


# --- numbers that cannot be meant ---------------------------------------------------------------


@pytest.mark.parametrize("value", VALUES_NOT_COUNTS.values(), ids=VALUES_NOT_COUNTS)
@pytest.mark.parametrize(
    "name", ["layers", "kv_heads", "k_width", "v_width", "element_bits", "granularity_bytes"]
)
def test_geometry_of_a_bad_number_names_it(name: str, value: object) -> None:
    numbers: dict[str, object] = {name: value}
    with pytest.raises(GeometryError, match=f"^{name} is .*: give a whole number") as refused:
        _ = geometry(**numbers)
    assert refused.value.name == name
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize("value", VALUES_NOT_COUNTS.values(), ids=VALUES_NOT_COUNTS)
def test_granularity_of_a_bad_number_is_refused(value: object) -> None:
    for asked in (windows_touched, whole_windows):
        with pytest.raises(GeometryError, match=r"^granularity_bytes is .*: "):
            _ = asked(0, 8, value)


def test_a_message_shows_a_number_that_python_would_not_print() -> None:
    with pytest.raises(GeometryError, match="an integer of 16610 bits"):
        _ = geometry(layers=10**5000)


def test_a_head_of_half_a_byte_more_is_refused() -> None:
    with pytest.raises(GeometryError, match=r"v_width is 127: at 4 bits .* padded to"):
        _ = geometry(element_bits=4, v_width=127)


def test_a_token_that_no_address_range_holds_is_refused() -> None:
    with pytest.raises(GeometryError, match="token_bytes is"):
        _ = geometry(layers=1 << 40, kv_heads=1 << 40)


def test_tokens_that_end_before_they_begin_are_refused() -> None:
    with pytest.raises(GeometryError, match="end_token is 3: give at least first_token"):
        _ = windows_of_tokens(Fragments("K", 1, 8), 4, 3, 64)


def test_numpy_integers_count_beyond_their_width() -> None:
    narrow = geometry(np.int8(48), np.uint8(8), np.int16(128), np.int8(127), np.uint8(16))
    assert narrow.token_bytes == 48 * 8 * (128 + 127) * 2
    assert windows_touched(np.uint8(255), np.uint8(255), np.uint8(2)) == Windows(127, 255)
    with pytest.raises(GeometryError, match="of type ndarray"):
        _ = windows_touched(np.array([1, 2]), 1, 1)
