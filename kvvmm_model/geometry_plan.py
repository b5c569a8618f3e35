"""What of a prefix can be shared in a layout, what would make it so, and what that saves.

The windows that a prefix fills are mapped into every sharer, one map each; what it has in windows
that it does not fill, every sharer holds for itself.  Where it fills none, nothing can be shared,
and the answer is ``NotShareable``: never a copy that nobody asked for.

Source: spec/geometry.md.
"""

from collections.abc import Iterator
from enum import Enum

from attrs import field, frozen

from kvvmm_model.geometry import (
    Fragments,
    Geometry,
    Layout,
    committed,
    fragments,
    token_count,
    whole_number,
    whole_windows,
)
from kvvmm_model.vocabulary import MAX_BYTES

__all__ = [
    "Capacity",
    "NotShareable",
    "Part",
    "Remedies",
    "Shareable",
    "Unshareable",
    "capacity",
    "capacity_of",
    "private_bytes",
    "share",
]


# --- yes ----------------------------------------------------------------------------------------


@frozen
class Part:
    """Fragments that are alike, and the windows that a prefix fills in each of them."""

    fragments: Fragments
    whole_windows: int

    @property
    def windows(self) -> int:
        """In all of them."""
        return self.fragments.count * self.whole_windows


@frozen
class Shareable:
    """A prefix that fills at least one window.

    Where K and V differ in width, one of them may fill windows and the other none; ``parts`` says
    so.
    """

    layout: Layout
    prefix_tokens: int
    prefix_bytes: int
    start_bytes: int
    granularity_bytes: int
    parts: tuple[Part, ...]

    @property
    def map_operations(self) -> int:
        """Maps for each sharer: one a window."""
        return sum(part.windows for part in self.parts)

    @property
    def shared_bytes(self) -> int:
        """What is held once, however many share it."""
        return self.map_operations * self.granularity_bytes

    @property
    def boundary_bytes(self) -> int:
        """What every sharer has of its own: the prefix's bytes in windows that it does not fill."""
        return self.prefix_bytes - self.shared_bytes


# --- no -----------------------------------------------------------------------------------------


class Unshareable(Enum):
    """Why there is no window to share."""

    SHORT = "no fragment is as long as a window"
    ASTRIDE = "a fragment is as long as a window, but begins within one and so fills none"


@frozen(kw_only=True)
class Remedies:
    """What would do, each by itself, all else as it is.

    ``layouts``: other layouts.  ``prefix_tokens``: the shortest prefix; None where no address range
    holds it.  ``granularity_bytes``: the largest power of two, not above the present granularity.
    ``on_the_edge``: that fragments begin where a window does.
    """

    layouts: tuple[Layout, ...]
    prefix_tokens: int | None
    granularity_bytes: int
    on_the_edge: bool


@frozen
class NotShareable:
    """A prefix that fills no window: nothing of it is shared, and nothing is copied instead.

    ``longest_bytes`` is the length of the longest fragment.
    """

    reason: Unshareable
    layout: Layout
    prefix_tokens: int
    longest_bytes: int
    start_bytes: int
    granularity_bytes: int
    remedies: Remedies = field(kw_only=True)

    @property
    def tokens_more(self) -> int | None:
        """How many tokens the prefix is short of."""
        needed = self.remedies.prefix_tokens
        return None if needed is None else needed - self.prefix_tokens

    def __str__(self) -> str:
        """For people: the reason, its numbers, what would do."""
        return (
            f"{self.reason.value}: the longest has {self.longest_bytes:,} bytes, a window"
            f" {self.granularity_bytes:,}. Any of these would do: {'; '.join(self._would_do())}"
        )

    def _would_do(self) -> Iterator[str]:
        if self.remedies.on_the_edge:
            yield "fragments that begin on the edge of a window"
        if self.remedies.layouts:
            yield f"layout {' or '.join(layout.value for layout in self.remedies.layouts)}"
        if self.remedies.prefix_tokens is not None:
            yield f"a prefix of {self.remedies.prefix_tokens:,} tokens, {self.tokens_more:,} more"
        yield f"a granularity of {self.remedies.granularity_bytes:,} bytes"


def share(
    geometry: Geometry, layout: Layout, prefix_tokens: object, start_bytes: object = 0
) -> Shareable | NotShareable:
    """What sharers of a prefix have in common in a layout.

    Every fragment begins ``start_bytes`` after a window's edge.

    Raises:
        GeometryError: the prefix has no token, a number is negative or no integer, or no address
            range holds that much.
    """
    start = whole_number("start_bytes", start_bytes, least=0)
    tokens = token_count(geometry, "prefix_tokens", prefix_tokens, start_bytes=start)
    unit = geometry.granularity_bytes
    parts = _parts(geometry, layout, tokens, start, unit)
    if _any(parts):
        return Shareable(layout, tokens, tokens * geometry.token_bytes, start, unit, parts)
    longest = max(tokens * part.fragments.bytes_per_token for part in parts)
    reason = Unshareable.SHORT if longest < unit else Unshareable.ASTRIDE
    remedies = Remedies(
        layouts=tuple(
            other for other in Layout if _any(_parts(geometry, other, tokens, start, unit))
        ),
        prefix_tokens=_long_enough(geometry, layout, start),
        granularity_bytes=_small_enough(geometry, layout, tokens, start),
        on_the_edge=reason is Unshareable.ASTRIDE,
    )
    return NotShareable(reason, layout, tokens, longest, start, unit, remedies=remedies)


def _parts(
    geometry: Geometry, layout: Layout, tokens: int, start: int, unit: int
) -> tuple[Part, ...]:
    return tuple(
        Part(each, whole_windows(start, tokens * each.bytes_per_token, unit).number)
        for each in fragments(geometry, layout)
    )


def _any(parts: tuple[Part, ...]) -> bool:
    return any(part.whole_windows for part in parts)


def _long_enough(geometry: Geometry, layout: Layout, start: int) -> int | None:
    """The tokens with which a fragment reaches to the end of the first window that begins in it."""
    unit = geometry.granularity_bytes
    end_of_window = (-(-start // unit) + 1) * unit
    widest = max(each.bytes_per_token for each in fragments(geometry, layout))
    tokens = -(-(end_of_window - start) // widest)
    return tokens if start + tokens * geometry.token_bytes <= MAX_BYTES else None


def _small_enough(geometry: Geometry, layout: Layout, tokens: int, start: int) -> int:
    """A search from above; it ends, for a byte fills a window of one byte."""
    unit = 1 << (geometry.granularity_bytes.bit_length() - 1)
    while not _any(_parts(geometry, layout, tokens, start, unit)):
        unit >>= 1
    return unit


# --- how many requests fit ----------------------------------------------------------------------


def private_bytes(
    geometry: Geometry, prefix: Shareable | NotShareable, private_tokens: object
) -> int:
    """What a request with ``private_tokens`` beyond the prefix commits for itself.

    Where nothing is shared that is all it has.

    Raises:
        GeometryError: the number is negative or no integer, or no address range holds that much.
    """
    more = whole_number("private_tokens", private_tokens, least=0)
    start, total = prefix.start_bytes, prefix.prefix_tokens + more
    _ = token_count(geometry, "prefix_tokens + private_tokens", total, start_bytes=start)
    windows = committed(geometry, prefix.layout, total, start)
    shared = prefix.map_operations if isinstance(prefix, Shareable) else 0
    return (windows - shared) * geometry.granularity_bytes


@frozen
class Capacity:
    """How many requests a budget holds at once.

    ``apart``: each with a prefix of its own.  ``sharers``: those that map a prefix which is held
    once; None where each costs nothing, so that there is no bound.
    """

    apart: int
    sharers: int | None

    @property
    def sharing(self) -> int | None:
        """The sharers and the request that published the prefix, which holds nothing else.

        0 where no sharer fits: a prefix alone serves nobody.
        """
        return self.sharers + 1 if self.sharers else self.sharers


def capacity(budget_bytes: object, prefix_bytes: object, private_bytes: object) -> Capacity:
    """Requests of ``private_bytes`` each beside a prefix, within a budget.

    Raises:
        GeometryError: the prefix has no byte, or a number is negative or no integer.
    """
    budget = whole_number("budget_bytes", budget_bytes, least=0)
    prefix = whole_number("prefix_bytes", prefix_bytes)
    private = whole_number("private_bytes", private_bytes, least=0)
    if budget < prefix + private:
        return Capacity(0, 0)
    return Capacity(budget // (prefix + private), (budget - prefix) // private if private else None)


def capacity_of(
    geometry: Geometry,
    prefix: Shareable | NotShareable,
    private_tokens: object,
    budget_bytes: object,
) -> Capacity:
    """Requests with ``private_tokens`` each beyond a prefix, within a budget; all in whole windows.

    Where nothing is shared there is no sharer.

    Raises:
        GeometryError: a number is negative or no integer, or no address range holds that much.
    """
    own = private_bytes(geometry, prefix, private_tokens)
    if isinstance(prefix, Shareable):
        return capacity(budget_bytes, prefix.shared_bytes, own)
    return Capacity(whole_number("budget_bytes", budget_bytes, least=0) // own, 0)
