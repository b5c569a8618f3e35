"""What holds in every state at rest, fault or not: predicates under the sentence they mean.

Those that need more than a state are checked where it is at hand: L-3 (charged against physical)
and L-9 (contents) by the comparison, L-6 between two states, L-10 at the end of a sequence, L-11
by trying again.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

from kvvmm_model.state import State
from kvvmm_model.vocabulary import Rights, Standing

Finding = object
"""The smallest part of the state that breaks an invariant."""


def _owned_is_the_sum_of_its_classes(state: State) -> Iterable[Finding]:
    ledger = state.ledger
    pooled = [entry.handle for entry in state.pool]
    for handle in state.handles.values():
        classes = bool(handle.references), handle.quarantined, handle.serial in pooled
        if sum(classes) != 1 or pooled.count(handle.serial) > 1:
            yield f"mapped, quarantined, pooled: {classes}", handle
    if ledger.owned != sum(handle.size for handle in state.handles.values()):
        yield ledger, tuple(state.handles.values())
    if ledger.pooled != sum(state.handles[serial].size for serial in pooled):
        yield ledger, state.pool
    if ledger.quarantined != sum(h.size for h in state.handles.values() if h.quarantined):
        yield ledger, [handle for handle in state.handles.values() if handle.quarantined]


def _charged_is_owned_and_unattributed(state: State) -> Iterable[Finding]:
    ledger = state.ledger
    if (
        ledger.charged != ledger.owned + ledger.unattributed
        or ledger.granted
        or min(ledger[1:]) < 0
    ):
        yield ledger


def _references_are_mappings(state: State) -> Iterable[Finding]:
    counted = dict.fromkeys(state.handles, 0)
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            counted[mapping.handle] = counted.get(mapping.handle, 0) + 1
    for serial, times in counted.items():
        handle = state.handles.get(serial)
        if handle is None or handle.references != times:
            yield serial, times, handle


def _mapped_is_what_the_windows_hold(state: State) -> Iterable[Finding]:
    held = 0
    for reservation in state.reservations.values():
        at = 0
        for mapping in reservation.mappings:
            if mapping.window < at or mapping.end > reservation.size:
                yield mapping, reservation.size
            if mapping.reservation != reservation.serial:
                yield mapping, reservation.serial
            handle = state.handles.get(mapping.handle)
            if handle is not None and mapping.size != handle.size:
                yield mapping, handle
            at = mapping.end
            held += mapping.size
    if held != state.ledger.mapped:
        yield held, state.ledger


def _no_memory_is_writable_twice(state: State) -> Iterable[Finding]:
    writable: set[int] = set()
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            if mapping.rights is Rights.RW and mapping.handle in writable:
                yield mapping
            if mapping.rights is Rights.RW:
                writable.add(mapping.handle)


def _doubt_is_quarantined(state: State) -> Iterable[Finding]:
    for reservation in state.reservations.values():
        for mapping in reservation.mappings:
            settled = reservation.standing is Standing.OPEN and mapping.rights is Rights.RW
            if not mapping.quarantined and not settled:
                yield reservation.standing, mapping


def _closed_ranges_hold_only_quarantine(state: State) -> Iterable[Finding]:
    for reservation in state.reservations.values():
        closed = reservation.standing is Standing.CLOSED
        if closed and not reservation.mappings:
            yield reservation
        if reservation.standing is Standing.QUARANTINED and reservation.mappings:
            yield reservation


def _ranges_do_not_overlap(state: State) -> Iterable[Finding]:
    ranges = sorted((r.address, state.bytes(r.size)) for r in state.reservations.values())
    for (address, size_bytes), (following, _) in pairwise(ranges):
        if address + size_bytes > following:
            yield address, size_bytes, following


def _pool_is_within_its_bound(state: State) -> Iterable[Finding]:
    places = [entry.place for entry in state.pool]
    if state.ledger.pooled > state.settings.retention or places != sorted(set(places)):
        yield state.ledger.pooled, state.settings.retention, places


INVARIANTS: dict[str, Callable[[State], Iterable[Finding]]] = {
    "L-1 owned = mapped, pooled and quarantined handles: each handle in exactly one class": (
        _owned_is_the_sum_of_its_classes
    ),
    "L-2 charged = owned + unattributed, nothing stays granted, no count is negative": (
        _charged_is_owned_and_unattributed
    ),
    "L-4 a handle's references are its mappings": _references_are_mappings,
    "L-5 mapped = the windows that hold a mapping; mappings do not overlap and stay inside": (
        _mapped_is_what_the_windows_hold
    ),
    "L-6 no two ranges that we hold overlap": _ranges_do_not_overlap,
    "L-7 no handle is writable through two mappings": _no_memory_is_writable_twice,
    "L-8 a mapping that is not quarantined is open and writable": _doubt_is_quarantined,
    "L-8 a closed range holds quarantined mappings; a quarantined range holds none": (
        _closed_ranges_hold_only_quarantine
    ),
    "L-1 the pool is in order of age and within its bound": _pool_is_within_its_bound,
}


def broken(state: State) -> list[str]:
    """The sentences that do not hold, each with what breaks it."""
    return [
        f"{sentence}: {finding!r}"
        for sentence, predicate in INVARIANTS.items()
        for finding in predicate(state)
    ]
