"""Where the bytes of a KV cache lie, in exact integers: layouts, fragments, windows.

A *fragment* is a stretch of addresses in which one sequence grows without a gap, a fixed number of
bytes for each token.  A layout decides how many fragments a sequence has, and so how many windows
it takes at least, and how soon a window is full; only a full window can be shared.

Every fragment has windows of its own and begins ``start_bytes`` after the edge of one; with 0, on
the edge.  Elements narrower than a byte are packed; what a format stores beside its elements
(scales, zero points) is not counted.

Source: spec/geometry.md.
"""

from enum import Enum
from operator import index
from reprlib import repr as short
from typing import Literal, NamedTuple, SupportsIndex, cast

from attrs import Attribute, field, frozen

from kvvmm_model.vocabulary import MAX_BYTES

__all__ = [
    "Fragments",
    "Geometry",
    "GeometryError",
    "Layout",
    "Windows",
    "commit_floor",
    "committed",
    "fragments",
    "token_count",
    "whole_number",
    "whole_windows",
    "windows_of_tokens",
    "windows_touched",
]


# --- numbers ------------------------------------------------------------------------------------


class GeometryError(ValueError):
    """A number that nothing can be computed with.

    ``name`` is the argument's, ``value`` what it was, ``remedy`` what to give instead.
    """

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"{name} is {_shown(value)}: {remedy}")
        self.name = name
        self.value = value
        self.remedy = remedy


def _shown(value: object) -> str:
    """A value for a message, however large or strange it is."""
    if isinstance(value, int) and value.bit_length() > MAX_BYTES.bit_length():
        return f"an integer of {value.bit_length()} bits"  # Python may refuse to print it
    if isinstance(value, int | float | str | None):
        return short(value)
    return f"of type {type(value).__name__}"


def _plain(value: object) -> int:
    """An integer as Python's own, also numpy's; whatever is none stays what it is."""
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        try:
            return index(value)
        except TypeError:  # an array has the method, and refuses
            pass
    return cast("int", value)


def whole_number(name: str, value: object, least: int = 1) -> int:
    """An argument that counts something.

    Raises:
        GeometryError: it is no integer, or not from ``least`` to ``MAX_BYTES``.
    """
    found: object = _plain(value)
    if type(found) is not int or not least <= found <= MAX_BYTES:
        raise GeometryError(name, value, f"give a whole number from {least} to 2**63")
    return found


def _counted(_: object, attribute: "Attribute[int]", value: int) -> None:
    _ = whole_number(attribute.name, value)


# --- layouts ------------------------------------------------------------------------------------


class Layout(Enum):
    """The order of a cache's axes: B sequences, S tokens, L layers, H KV heads, D elements."""

    HEAD_MAJOR = "head-major"
    SEQ_MAJOR = "seq-major"
    TOKEN_MAJOR = "token-major"  # noqa: S105 - no password

    @property
    def axes(self) -> str:
        """Outermost first; all but token-major are once for each layer's K and once for its V."""
        return _AXES[self]


_AXES = {
    Layout.HEAD_MAJOR: "[B,H,S,D]",
    Layout.SEQ_MAJOR: "[B,S,H,D]",
    Layout.TOKEN_MAJOR: "[S,L,2,H,D]",
}


@frozen(kw_only=True)
class Geometry:
    """What a model keeps of each token, and the granularity of the device.

    ``k_width`` and ``v_width`` are a head's elements in K and in V.  A head's K, and its V, must
    fill whole bytes, and a token no more than ``MAX_BYTES``.

    Raises:
        GeometryError: a number is no positive integer, or they do not go together.
    """

    layers: int = field(converter=_plain, validator=_counted)
    kv_heads: int = field(converter=_plain, validator=_counted)
    k_width: int = field(converter=_plain, validator=_counted)
    v_width: int = field(converter=_plain, validator=_counted)
    element_bits: int = field(converter=_plain, validator=_counted)
    granularity_bytes: int = field(converter=_plain, validator=_counted)

    def __attrs_post_init__(self) -> None:
        for name, width in (("k_width", self.k_width), ("v_width", self.v_width)):
            if width * self.element_bits % 8:
                raise GeometryError(
                    name,
                    width,
                    f"at {self.element_bits} bits an element that is no whole number of bytes;"
                    " give the width that the cache is padded to",
                )
        if self.token_bytes > MAX_BYTES:
            raise GeometryError(
                "token_bytes", self.token_bytes, "no address range holds a token of this geometry"
            )

    @property
    def k_bytes(self) -> int:
        """Of one head's K, of one token."""
        return self.k_width * self.element_bits // 8

    @property
    def v_bytes(self) -> int:
        """Of one head's V, of one token."""
        return self.v_width * self.element_bits // 8

    @property
    def token_bytes(self) -> int:
        """Of one token in all layers; in token-major, from a token to the next."""
        return self.layers * self.kv_heads * (self.k_bytes + self.v_bytes)


@frozen
class Fragments:
    """``count`` fragments that are alike: what they hold, and their bytes for each token."""

    holds: Literal["K", "V", "K+V"]
    count: int
    bytes_per_token: int


def fragments(geometry: Geometry, layout: Layout) -> tuple[Fragments, ...]:
    """The fragments of one sequence: those of K and those of V, or one that holds all."""
    if layout is Layout.TOKEN_MAJOR:
        return (Fragments("K+V", 1, geometry.token_bytes),)
    if layout is Layout.SEQ_MAJOR:
        count, heads = geometry.layers, geometry.kv_heads
    else:
        count, heads = geometry.layers * geometry.kv_heads, 1
    return (
        Fragments("K", count, heads * geometry.k_bytes),
        Fragments("V", count, heads * geometry.v_bytes),
    )


# --- windows ------------------------------------------------------------------------------------


class Windows(NamedTuple):
    """``[first, end)``, counted from the window edge that ``start_bytes`` is measured from."""

    first: int
    end: int

    @property
    def number(self) -> int:
        """How many windows there are."""
        return self.end - self.first


def windows_touched(start_bytes: object, size_bytes: object, granularity_bytes: object) -> Windows:
    """The windows that hold a byte of ``[start, start + size)``; none if the size is 0.

    Raises:
        GeometryError: a number is negative or no integer, or the granularity is 0.
    """
    start, size, unit = _stretch(start_bytes, size_bytes, granularity_bytes)
    first = start // unit
    return Windows(first, -(-(start + size) // unit) if size else first)


def whole_windows(start_bytes: object, size_bytes: object, granularity_bytes: object) -> Windows:
    """The windows of which every byte is in ``[start, start + size)``.

    Raises:
        GeometryError: a number is negative or no integer, or the granularity is 0.
    """
    start, size, unit = _stretch(start_bytes, size_bytes, granularity_bytes)
    first = -(-start // unit)
    return Windows(first, max(first, (start + size) // unit))


def _stretch(start: object, size: object, granularity: object) -> tuple[int, int, int]:
    return (
        whole_number("start_bytes", start, least=0),
        whole_number("size_bytes", size, least=0),
        whole_number("granularity_bytes", granularity),
    )


def windows_of_tokens(
    fragment: Fragments,
    first_token: object,
    end_token: object,
    granularity_bytes: object,
    start_bytes: object = 0,
) -> Windows:
    """The windows that tokens ``[first, end)`` touch in each of these fragments.

    Raises:
        GeometryError: a number is negative or no integer, the tokens end before they begin, or
            the granularity is 0.
    """
    first = whole_number("first_token", first_token, least=0)
    end = whole_number("end_token", end_token, least=0)
    if end < first:
        raise GeometryError("end_token", end, f"give at least first_token, which is {first}")
    begin = whole_number("start_bytes", start_bytes, least=0) + first * fragment.bytes_per_token
    return windows_touched(begin, (end - first) * fragment.bytes_per_token, granularity_bytes)


# --- a whole sequence ---------------------------------------------------------------------------


def token_count(
    geometry: Geometry, name: str, value: object, least: int = 1, start_bytes: int = 0
) -> int:
    """An argument that counts tokens of one sequence; together they fit in an address range.

    Raises:
        GeometryError: it is no such number; the message says how many would fit.
    """
    tokens = whole_number(name, value, least)
    if start_bytes + tokens * geometry.token_bytes > MAX_BYTES:
        most = max(0, MAX_BYTES - start_bytes) // geometry.token_bytes
        raise GeometryError(
            name, tokens, f"2**63 bytes hold at most {most} tokens of {geometry.token_bytes} bytes"
        )
    return tokens


def committed(geometry: Geometry, layout: Layout, tokens: object, start_bytes: object = 0) -> int:
    """The windows that hold a byte of a sequence of ``tokens`` tokens, in all fragments (L-5).

    Raises:
        GeometryError: a number is negative or no integer, or no address range holds that much.
    """
    start = whole_number("start_bytes", start_bytes, least=0)
    count = token_count(geometry, "tokens", tokens, least=0, start_bytes=start)
    unit = geometry.granularity_bytes
    return sum(
        each.count * windows_of_tokens(each, 0, count, unit, start).number
        for each in fragments(geometry, layout)
    )


def commit_floor(geometry: Geometry, layout: Layout, start_bytes: object = 0) -> int:
    """The windows that a sequence commits with its first token; none commits less.

    Raises:
        GeometryError: ``start_bytes`` is negative or no integer.
    """
    return committed(geometry, layout, 1, start_bytes)
