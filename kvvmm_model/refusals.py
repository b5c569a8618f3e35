"""The checks that several operations make before their first driver call."""

from collections.abc import Iterable
from operator import index
from typing import SupportsIndex

from kvvmm_model.state import Mapping, Prefix, Reservation, State
from kvvmm_model.vocabulary import MAX_BYTES, Refusal, Refused, Rights, refused


def whole(value: object) -> int | None:
    """An integer argument, also numpy's; None for what is not one.  A truth value is not."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    return index(value)


def device_lost(state: State) -> Refused | None:
    """Nothing is done on a lost device."""
    return refused(Refusal.DEVICE_LOST, code=state.lost) if state.lost else None


def named(state: State, reservation: object) -> Reservation | Refused:
    """The open reservation that an operation names."""
    found = state.open_reservation(reservation)
    if found is None or state.lost:
        return device_lost(state) or refused(Refusal.STALE, reservation=reservation)
    return found


def prefix_named(state: State, prefix: object) -> Prefix | Refused:
    """The live prefix that an operation names."""
    found = state.live_prefix(prefix)
    if found is None or state.lost:
        return device_lost(state) or refused(Refusal.STALE, prefix=prefix)
    return found


def first_of(refusals: Iterable[Refused]) -> Refused | None:
    """Of several, the one that takes precedence; of equals, the first."""
    order = list(Refusal)
    return min(refusals, key=lambda refusal: order.index(refusal.reason), default=None)


def byte_range(
    state: State, found: Reservation, offset: object, size: object
) -> tuple[int, int] | Refused:
    """``[offset, offset + size)``, which is not empty and lies within the reservation."""
    first, length, total = whole(offset), whole(size), state.bytes(found.size)
    if first is None or length is None or first < 0 or length < 1 or first + length > total:
        return refused(Refusal.RANGE, offset_bytes=offset, size_bytes=size, reservation_bytes=total)
    return first, length


def quarantined(state: State, mappings: Iterable[Mapping]) -> Refused | None:
    """None of the mappings is quarantined."""
    offsets = tuple(state.bytes(mapping.window) for mapping in mappings if mapping.quarantined)
    return refused(Refusal.QUARANTINED, offsets_bytes=offsets) if offsets else None


def rights_unknown(state: State, mappings: Iterable[Mapping]) -> Refused | None:
    """Of no mapping the rights are unknown, as they are after a seal that could not be undone."""
    offsets = tuple(
        state.bytes(mapping.window) for mapping in mappings if mapping.rights is Rights.UNKNOWN
    )
    return refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=offsets) if offsets else None


def amount(size: object) -> int | Refused:
    """A number of bytes, zero included."""
    value = whole(size)
    if value is None or value < 0:
        return refused(Refusal.RANGE, size_bytes=size)
    return value


def request(size: object, alignment: object) -> tuple[int, int] | Refused:
    """What can be reserved: at least a byte, at most what an address can hold."""
    length, boundary = whole(size), whole(alignment)
    if (
        length is None
        or boundary is None
        or not 1 <= length <= MAX_BYTES
        or not 0 <= boundary <= MAX_BYTES
        or boundary & (boundary - 1)
    ):
        return refused(Refusal.RANGE, size_bytes=size, alignment_bytes=alignment)
    return length, boundary
