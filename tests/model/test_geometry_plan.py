"""What can be shared, what would help, how many requests fit: worked values and counted caches."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvvmm_model.geometry import Geometry, GeometryError, Layout, committed
from kvvmm_model.geometry_plan import (
    Capacity,
    NotShareable,
    Shareable,
    Unshareable,
    capacity,
    capacity_of,
    private_bytes,
    share,
)
from kvvmm_model.vocabulary import MAX_BYTES

from support.written_cache import (
    LAYOUTS,
    MANY,
    STARTS,
    TOKENS,
    VALUES_NOT_COUNTS,
    full,
    geometry,
    shapes,
    touched,
    written,
)

MIB, KIB = 1 << 20, 1 << 10
HEAD, SEQ, TOKEN = Layout.HEAD_MAJOR, Layout.SEQ_MAJOR, Layout.TOKEN_MAJOR


def yes(answer: Shareable | NotShareable) -> Shareable:
    assert isinstance(answer, Shareable), answer
    return answer


def no(answer: Shareable | NotShareable) -> NotShareable:
    assert isinstance(answer, NotShareable), answer
    return answer


# --- worked values ------------------------------------------------------------------------------


def test_share_in_head_major_of_2000_tokens_is_refused() -> None:
    answer = no(share(geometry(), HEAD, 2000))
    assert answer.reason is Unshareable.SHORT
    assert (answer.longest_bytes, answer.granularity_bytes) == (512_000, 2 * MIB)
    assert answer.remedies.layouts == (SEQ, TOKEN)
    assert (answer.remedies.prefix_tokens, answer.tokens_more) == (8192, 6192)
    assert answer.remedies.granularity_bytes == 256 * KIB
    assert not answer.remedies.on_the_edge


@pytest.mark.parametrize(
    ("layout", "granularity_bytes", "each", "maps"),
    [
        (SEQ, 2 * MIB, 1, 96),
        (TOKEN, 2 * MIB, 187, 187),
        (HEAD, 64 * KIB, 7, 5376),
        (SEQ, 64 * KIB, 62, 62 * 96),
    ],
)
def test_share_of_2000_tokens(layout: Layout, granularity_bytes: int, each: int, maps: int) -> None:
    answer = yes(share(geometry(granularity_bytes=granularity_bytes), layout, 2000))
    assert {part.whole_windows for part in answer.parts} == {each}
    assert answer.map_operations == maps
    assert answer.shared_bytes == maps * granularity_bytes


def test_share_in_token_major_leaves_half_a_window() -> None:
    answer = yes(share(geometry(), TOKEN, 2000))
    assert (answer.prefix_bytes, answer.boundary_bytes) == (393_216_000, 1_048_576)


def test_share_in_head_major_begins_with_the_8192nd_token() -> None:
    assert no(share(geometry(), HEAD, 8191)).tokens_more == 1
    answer = yes(share(geometry(), HEAD, 8192))
    assert {part.whole_windows for part in answer.parts} == {1}
    assert answer.boundary_bytes == 0


def test_share_of_a_small_model_is_possible_in_token_major_alone() -> None:
    small = geometry(layers=24, kv_heads=2, k_width=64, v_width=64)
    assert no(share(small, HEAD, 2000)).remedies.layouts == (TOKEN,)
    assert no(share(small, SEQ, 2000)).remedies.layouts == (TOKEN,)
    assert [part.whole_windows for part in yes(share(small, TOKEN, 2000)).parts] == [11]


# --- counted ------------------------------------------------------------------------------------


@MANY
@given(shapes(), LAYOUTS, TOKENS, STARTS)
def test_share_is_what_is_counted(
    shape: Geometry, layout: Layout, tokens: int, start_bytes: int
) -> None:
    cache = written(shape, layout, tokens, start_bytes)
    unit = shape.granularity_bytes
    answer = share(shape, layout, tokens, start_bytes)
    assert isinstance(answer, Shareable) == (full(cache, unit) > 0)
    if isinstance(answer, Shareable):
        everything = sum(windows.total() for windows in cache.values())
        assert answer.map_operations == full(cache, unit)
        assert answer.shared_bytes == full(cache, unit) * unit
        assert answer.boundary_bytes == everything - full(cache, unit) * unit
        each = {full({name: windows}, unit) for name, windows in cache.items()}
        assert {part.whole_windows for part in answer.parts} == each
        assert sum(part.windows for part in answer.parts) == answer.map_operations
    else:
        longest = max(windows.total() for windows in cache.values())
        assert answer.longest_bytes == longest
        assert (answer.reason is Unshareable.SHORT) == (longest < unit)


@MANY
@given(shapes(), LAYOUTS, TOKENS, STARTS)
def test_a_refusal_names_what_would_do_and_nothing_less_would(
    shape: Geometry, layout: Layout, tokens: int, start_bytes: int
) -> None:
    answer = share(shape, layout, tokens, start_bytes)
    if isinstance(answer, Shareable):
        return
    remedies, unit = answer.remedies, shape.granularity_bytes

    def would_do(how: Layout = layout, long: int = tokens, at: int = start_bytes) -> bool:
        return full(written(shape, how, long, at), unit) > 0

    assert remedies.layouts == tuple(other for other in Layout if would_do(how=other))
    needed = next(long for long in count(tokens + 1) if would_do(long=long))
    assert (remedies.prefix_tokens, answer.tokens_more) == (needed, needed - tokens)
    assert remedies.on_the_edge == would_do(at=0)
    powers = [power for power in (64, 32, 16, 8, 4, 2, 1) if power <= unit]
    small = next(p for p in powers if _fills_a_window(shape, layout, tokens, start_bytes, p))
    assert remedies.granularity_bytes == small


def _fills_a_window(shape: Geometry, layout: Layout, tokens: int, start: int, unit: int) -> bool:
    finer = geometry(
        shape.layers, shape.kv_heads, shape.k_width, shape.v_width, shape.element_bits, unit
    )
    return full(written(finer, layout, tokens, start), unit) > 0


def test_share_of_fragments_that_begin_within_a_window() -> None:
    answer = no(share(geometry(), HEAD, 8192, start_bytes=256))
    assert answer.reason is Unshareable.ASTRIDE
    assert answer.remedies.on_the_edge
    assert answer.remedies.prefix_tokens == 2 * 8192 - 1
    assert "begin on the edge" in str(answer)


def test_share_with_k_wider_than_v_may_fill_windows_of_k_alone() -> None:
    uneven = geometry(k_width=192, v_width=128)
    answer = yes(share(uneven, HEAD, 6000))
    assert [(part.fragments.holds, part.whole_windows) for part in answer.parts] == [
        ("K", 1),
        ("V", 0),
    ]
    assert answer.map_operations == 48 * 8
    assert answer.boundary_bytes == 48 * 8 * (6000 * (384 + 256) - 2 * MIB)


# --- in words -----------------------------------------------------------------------------------


def test_a_refusal_reads_as_a_sentence_with_its_numbers() -> None:
    assert str(share(geometry(), HEAD, 2000)) == (
        "no fragment is as long as a window: the longest has 512,000 bytes, a window 2,097,152."
        " Any of these would do: layout seq-major or token-major; a prefix of 8,192 tokens, 6,192"
        " more; a granularity of 262,144 bytes"
    )


def test_a_refusal_leaves_out_a_prefix_that_no_address_range_holds() -> None:
    vast = geometry(layers=1 << 20, kv_heads=1 << 20, granularity_bytes=1 << 40)
    assert no(share(vast, HEAD, 1)).remedies.prefix_tokens is None
    assert no(share(vast, HEAD, 1)).tokens_more is None
    assert "tokens" not in str(share(vast, HEAD, 1))


# --- how many requests fit ----------------------------------------------------------------------


def admitted(budget: int, prefix: int, private: int) -> tuple[int, int]:
    """Requests let in one by one: those with their own prefix, and those beside a common one."""
    apart = sharers = 0
    left = budget
    while left >= prefix + private:
        left -= prefix + private
        apart += 1
    left = budget - prefix
    while left >= private:
        left -= private
        sharers += 1
    return apart, sharers


@MANY
@given(st.integers(0, 60), st.integers(1, 30), st.integers(1, 30))
def test_capacity_is_what_can_be_admitted(budget: int, prefix: int, private: int) -> None:
    apart, sharers = admitted(budget, prefix, private)
    found = capacity(budget, prefix, private)
    assert (found.apart, found.sharers) == (apart, sharers)
    assert found.sharing == (1 + sharers if sharers else 0)
    if budget >= prefix + private:
        assert found.sharing == 1 + (budget - prefix) // private


@pytest.mark.parametrize(
    ("budget", "prefix", "private", "apart", "sharing"),
    [
        (0, 10, 3, 0, 0),
        (9, 10, 3, 0, 0),
        (10, 10, 3, 0, 0),  # the prefix fits, but nobody who would use it
        (12, 10, 3, 0, 0),
        (13, 10, 3, 1, 2),
        (15, 10, 3, 1, 2),
        (16, 10, 3, 1, 3),
        (26, 10, 3, 2, 6),
        (9, 10, 0, 0, 0),
        (10, 10, 0, 1, None),  # sharers that cost nothing have no bound
        (25, 10, 0, 2, None),
    ],
)
def test_capacity_at_the_corners(
    budget: int, prefix: int, private: int, apart: int, sharing: int | None
) -> None:
    found = capacity(budget, prefix, private)
    assert (found.apart, found.sharing) == (apart, sharing)


@MANY
@given(shapes(), LAYOUTS, TOKENS, STARTS, st.integers(0, 5), st.integers(0, 3000))
def test_capacity_of_a_layout_is_what_can_be_admitted(
    shape: Geometry, layout: Layout, tokens: int, start_bytes: int, more: int, budget: int
) -> None:
    unit = shape.granularity_bytes
    shared = full(written(shape, layout, tokens, start_bytes), unit) * unit
    own = touched(written(shape, layout, tokens + more, start_bytes)) * unit - shared
    answer = share(shape, layout, tokens, start_bytes)
    assert private_bytes(shape, answer, more) == own
    found = capacity_of(shape, answer, more, budget)
    if not shared:
        assert found == Capacity(budget // own, 0)
    elif own:
        assert (found.apart, found.sharers) == admitted(budget, shared, own)
    else:
        assert found == Capacity(budget // shared, None if budget >= shared else 0)


# --- numbers that cannot be meant ---------------------------------------------------------------


@pytest.mark.parametrize("value", VALUES_NOT_COUNTS.values(), ids=VALUES_NOT_COUNTS)
def test_prefix_of_a_bad_number_is_refused(value: object) -> None:
    with pytest.raises(GeometryError, match=r"^prefix_tokens is .*: "):
        _ = share(geometry(), HEAD, value)


def test_a_prefix_that_no_address_range_holds_is_refused_with_the_longest() -> None:
    most = MAX_BYTES // geometry().token_bytes
    assert yes(share(geometry(), TOKEN, most)).map_operations > 0
    with pytest.raises(GeometryError, match=f"at most {most} tokens"):
        _ = share(geometry(), TOKEN, most + 1)
    with pytest.raises(GeometryError, match=f"at most {most - 1} tokens"):
        _ = share(geometry(), TOKEN, most, start_bytes=MAX_BYTES % geometry().token_bytes + 1)


def test_capacity_beside_a_prefix_of_nothing_is_refused() -> None:
    with pytest.raises(GeometryError, match="prefix_bytes is 0"):
        _ = capacity(10, 0, 1)


ANYTHING = st.one_of(
    st.integers(),
    st.integers(-2, 70),
    st.floats(),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
    st.integers(MAX_BYTES - 2, MAX_BYTES + 2),
)


@MANY
@given(st.lists(ANYTHING, min_size=6, max_size=6), LAYOUTS, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_whatever_is_asked_is_answered_or_refused(
    numbers: list[object], layout: Layout, tokens: object, start: object, more: object, room: object
) -> None:
    for given_numbers in (numbers, []):
        try:
            shape = geometry(*given_numbers)
            _ = committed(shape, layout, tokens, start)
            answer = share(shape, layout, tokens, start)
            _ = str(answer), capacity_of(shape, answer, more, room)
        except GeometryError as refused:
            assert refused.remedy in str(refused)  # noqa: PT017 - an answer is fine as well
