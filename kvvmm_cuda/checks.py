"""The checks that several operations make before their first driver call."""

from collections.abc import Iterable
from operator import index
from typing import SupportsIndex

from kvvmm_cuda.records import Mapping, Prefix, Records, Reservation
from kvvmm_model.vocabulary import MAX_BYTES, Refusal, Refused, Rights, Standing, refused

_PRECEDENCE = {reason: place for place, reason in enumerate(Refusal)}


def integer(value: object) -> int:
    """The argument as an integer, numpy's included; -1, which nothing takes, for anything else."""
    if type(value) is int:
        return value
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return index(value)
    return -1


def device_lost(records: Records) -> Refused | None:
    """Nothing is done on a lost device."""
    return refused(Refusal.DEVICE_LOST, code=records.lost) if records.lost else None


def stale(reservation: object) -> Refused:
    """There is no such reservation, or not any more."""
    return refused(Refusal.STALE, reservation=reservation)


def named(records: Records, reservation: object) -> Reservation | Refused:
    """The open reservation that an operation names; look at its standing again under its lock."""
    if records.lost:
        return refused(Refusal.DEVICE_LOST, code=records.lost)
    found = records.reservations.get(reservation) if type(reservation) is int else None
    if found is None or found.standing is not Standing.OPEN:
        return stale(reservation)
    return found


def prefix_named(records: Records, prefix: object) -> Prefix | Refused:
    """The live prefix that an operation names; look again under a lock whether it lives."""
    if records.lost:
        return refused(Refusal.DEVICE_LOST, code=records.lost)
    found = records.prefixes.get(prefix) if type(prefix) is int else None
    return refused(Refusal.STALE, prefix=prefix) if found is None else found


def first_of(refusals: Iterable[Refused]) -> Refused | None:
    """Of several, the one that takes precedence; of equals, the first."""
    return min(refusals, key=lambda refusal: _PRECEDENCE[refusal.reason], default=None)


def byte_range(
    records: Records, found: Reservation, offset_bytes: object, size_bytes: object
) -> tuple[int, int] | Refused:
    """``[offset, offset + size)``, which is not empty and lies within the reservation."""
    offset, size = integer(offset_bytes), integer(size_bytes)
    total = found.size * records.settings.granularity_bytes
    if offset < 0 or size < 1 or offset + size > total:
        return refused(
            Refusal.RANGE,
            offset_bytes=offset_bytes,
            size_bytes=size_bytes,
            reservation_bytes=total,
        )
    return offset, size


def quarantined(records: Records, mappings: Iterable[Mapping]) -> Refused | None:
    """None of the mappings is quarantined."""
    barred = [mapping.window for mapping in mappings if mapping.quarantined]
    if not barred:
        return None
    unit = records.settings.granularity_bytes
    return refused(Refusal.QUARANTINED, offsets_bytes=tuple(window * unit for window in barred))


def rights_unknown(records: Records, mappings: Iterable[Mapping]) -> Refused | None:
    """Of no mapping the rights are unknown, as they are after a seal that could not be undone."""
    barred = [mapping.window for mapping in mappings if mapping.rights is Rights.UNKNOWN]
    if not barred:
        return None
    unit = records.settings.granularity_bytes
    return refused(Refusal.RIGHTS_UNKNOWN, offsets_bytes=tuple(w * unit for w in barred))


def first_hole(leading: Iterable[Mapping], end: int) -> int | None:
    """The first window before ``end`` that mappings in window order do not cover from 0 on."""
    at = 0
    for mapping in leading:
        if mapping.window > at:
            break
        at = mapping.end
    return at if at < end else None


def amount(size_bytes: object) -> int | Refused:
    """A number of bytes, zero included."""
    size = integer(size_bytes)
    return refused(Refusal.RANGE, size_bytes=size_bytes) if size < 0 else size


def request(size_bytes: object, alignment_bytes: object) -> tuple[int, int] | Refused:
    """What can be reserved: at least a byte, at most what an address can hold."""
    size, alignment = integer(size_bytes), integer(alignment_bytes)
    power_or_zero = alignment >= 0 and not alignment & (alignment - 1)
    if 1 <= size <= MAX_BYTES and power_or_zero and alignment <= MAX_BYTES:
        return size, alignment
    return refused(Refusal.RANGE, size_bytes=size_bytes, alignment_bytes=alignment_bytes)
