"""Caches that are written out byte by byte, to count what the layout arithmetic computes.

None of its formulas is used: elements are laid down one after the other in the order of the axes,
and windows are looked at one by one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from hypothesis import settings
from hypothesis import strategies as st

from kvvmm_model.geometry import Geometry, Layout
from kvvmm_model.vocabulary import MAX_BYTES

MANY = settings(max_examples=max(1_000, settings().max_examples))
"""Small models are cheap to count."""

VALUES_NOT_COUNTS: dict[str, object] = {
    "zero": 0,
    "negative": -1,
    "true": True,
    "false": False,
    "float": 1.0,
    "fraction": 2.5,
    "nan": float("nan"),
    "text": "8",
    "none": None,
    "list": [8],
    "large": MAX_BYTES + 1,
    "vast": 10**5000,
}
"""By what they are: values with which nothing can be counted."""


def geometry(
    layers: object = 48,
    kv_heads: object = 8,
    k_width: object = 128,
    v_width: object = 128,
    element_bits: object = 16,
    granularity_bytes: object = 2 << 20,
) -> Geometry:
    """The model of the worked values, or one that differs from it."""
    return Geometry(
        layers=layers,
        kv_heads=kv_heads,
        k_width=k_width,
        v_width=v_width,
        element_bits=element_bits,
        granularity_bytes=granularity_bytes,
    )


# --- written out --------------------------------------------------------------------------------

Name = tuple[str | int, ...]
"""Of a fragment: what it holds, and of which layer and head, where it is not of all."""

Cache = Mapping[Name, Counter[int]]
"""By fragment: the windows that hold a byte, and how many bytes each holds."""


def elements(shape: Geometry, layout: Layout, tokens: range) -> Iterator[tuple[Name, int]]:
    """Every element in the order in which it lies: the fragment's name, and the element's token."""
    widths = {"K": shape.k_width, "V": shape.v_width}
    layers, heads = range(shape.layers), range(shape.kv_heads)
    match layout:
        case Layout.HEAD_MAJOR:
            for layer in layers:
                for kind, width in widths.items():
                    for head in heads:
                        for token in tokens:
                            yield from [((kind, layer, head), token)] * width
        case Layout.SEQ_MAJOR:
            for layer in layers:
                for kind, width in widths.items():
                    for token in tokens:
                        for _ in heads:
                            yield from [((kind, layer), token)] * width
        case Layout.TOKEN_MAJOR:
            for token in tokens:
                for _ in layers:
                    for width in widths.values():
                        for _ in heads:
                            yield from [(("K+V",), token)] * width


def written(shape: Geometry, layout: Layout, end: int, start_bytes: int, first: int = 0) -> Cache:
    """The bytes of tokens from ``first`` up to ``end``, where those before them lie as well."""
    live: dict[Name, set[int]] = {}
    next_bit: dict[Name, int] = {}
    for name, token in elements(shape, layout, range(end)):
        bit = next_bit.get(name, 8 * start_bytes)
        next_bit[name] = bit + shape.element_bits
        if token >= first:
            live.setdefault(name, set()).update(
                range(bit // 8, (bit + shape.element_bits - 1) // 8 + 1)
            )
    unit = shape.granularity_bytes
    return {name: Counter(byte // unit for byte in found) for name, found in live.items()}


def full(cache: Cache, unit: int) -> int:
    """Windows in which every byte is live."""
    return sum(held == unit for windows in cache.values() for held in windows.values())


def touched(cache: Cache) -> int:
    return sum(len(windows) for windows in cache.values())


BITS_AND_WIDTHS = st.one_of(
    st.tuples(st.just(4), st.sampled_from([2, 4, 6]), st.sampled_from([2, 4])),
    st.tuples(st.sampled_from([8, 16, 24]), st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.just(8), st.integers(1, 5), st.none()),
)


@st.composite
def shapes(draw: st.DrawFn) -> Geometry:
    """Small models; granularities of any kind, not only powers of two."""
    bits, keys, values = draw(BITS_AND_WIDTHS)
    return Geometry(
        layers=draw(st.integers(1, 3)),
        kv_heads=draw(st.integers(1, 3)),
        k_width=keys,
        v_width=keys if values is None else values,
        element_bits=bits,
        granularity_bytes=draw(st.integers(1, 40)),
    )


LAYOUTS = st.sampled_from(Layout)
TOKENS = st.integers(1, 9)
STARTS = st.one_of(st.just(0), st.integers(0, 60))
