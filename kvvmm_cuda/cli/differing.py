"""What is different after an operation, in words; of the ledger, in numbers."""

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from kvvmm_model.state import State, observe
from kvvmm_model.vocabulary import (
    HandleView,
    Ledger,
    MappingView,
    Observation,
    RangeView,
    Rights,
    Standing,
)

__all__ = ["changes", "count", "ledger_changes", "left"]


def count(number: int, noun: str) -> str:
    """A number of things, as ``1 window`` or ``2 windows``."""
    return f"{number} {noun}" + "s" * (number != 1)


def ledger_changes(before: Ledger, after: Ledger) -> dict[str, tuple[int, int]]:
    """The fields that changed, each with what it was and what it is, in granules."""
    names = (*Ledger._fields, "free")
    both = {name: (getattr(before, name), getattr(after, name)) for name in names}
    return {name: (old, new) for name, (old, new) in both.items() if old != new}


def changes(before: State, after: State) -> list[str]:
    """What else changed: ranges, windows, handles, the device."""
    if before is after:
        return []
    ours, theirs = observe(before), observe(after)
    lost = [f"the device is lost (code {after.lost})"] if after.lost != before.lost else []
    return [
        *_ranges(ours, theirs),
        *_windows(ours, theirs),
        *_handles(ours, theirs),
        *_prefixes(ours, theirs),
        *lost,
    ]


def _ranges(before: Observation, after: Observation) -> Iterator[str]:
    for serial in sorted({*before.ranges, *after.ranges}):
        old, new = before.ranges.get(serial), after.ranges.get(serial)
        if old is None and new is not None:
            yield f"range{serial}: new, {count(new.size, 'window')}"
        elif old is not None and old != new:
            target = new.standing.value if new is not None else "gone"
            proof = _proof("addresses") if new is None and _doubted(old) else ""
            yield f"range{serial}: {old.standing.value} -> {target}{proof}"


def _doubted(view: RangeView) -> bool:
    return view.standing is Standing.QUARANTINED


def _proof(what: str) -> str:
    """Why a quarantine ended that nobody can ask about."""
    return f": its {what} came again, so it was given back"


@frozen
class _Run:
    """Neighbouring windows that went the same way, and the handles in them."""

    reservation: int
    start: int
    end: int
    moved: tuple[str, str]
    handles: tuple[int, ...]

    def with_next(self, other: "_Run") -> "_Run | None":
        """Both in one, if the other goes on where this one ends."""
        ours = (self.reservation, self.end, self.moved)
        if ours != (other.reservation, other.start, other.moved):
            return None
        return evolve(self, end=other.end, handles=(*self.handles, *other.handles))


def _windows(before: Observation, after: Observation) -> Iterator[str]:
    runs: list[_Run] = []
    for place in sorted({*before.mappings, *after.mappings}):
        old, new = before.mappings.get(place), after.mappings.get(place)
        view = new or old
        if old == new or view is None:
            continue
        serial, start = place
        begun = _window(old, before, serial) if serial in before.ranges else "new"
        moved = (begun, _window(new, after, serial))
        run = _Run(serial, start, start + view.size, moved, (view.handle,))
        longer = runs[-1].with_next(run) if runs else None
        runs[-1 if longer else len(runs) :] = [longer or run]
    for run in runs:
        source, target = run.moved
        yield (
            f"r{run.reservation} {run.start}..{run.end}: {source} -> {target}"
            f" ({_named(run.handles)})"
        )


_STATES = {Rights.READ: "shared", Rights.UNKNOWN: "rights unknown"}


def _window(view: MappingView | None, seen: Observation, serial: int) -> str:
    if view is not None and view.quarantined:
        return f"quarantined, rights {view.rights.name}"
    if view is not None:
        return _STATES.get(view.rights, "committed")
    found = seen.ranges.get(serial)
    return "reserved" if found is not None and found.standing is Standing.OPEN else "over"


def _handles(before: Observation, after: Observation) -> Iterator[str]:
    """Handles that went the same way, and are as large, are told together."""
    groups: dict[tuple[str, str, int], list[int]] = {}
    for serial in sorted({*before.handles, *after.handles}):
        old, new = before.handles.get(serial), after.handles.get(serial)
        view = new or old
        source, target = _handle(old, before), _handle(new, after)
        if view is not None and source != target:
            groups.setdefault((source, target, view.size), []).append(serial)
    for (source, target, size), handles in groups.items():
        each = "" if len(handles) == 1 else " each"
        made = "new" if source == "gone" else source
        proof = _proof("value") if source == "quarantined" else ""
        yield f"{_named(handles)} ({count(size, 'granule')}{each}): {made} -> {target}{proof}"


def _handle(view: HandleView | None, seen: Observation) -> str:
    if view is None:
        return "gone"
    if view.quarantined:
        return "quarantined"
    if view.handle in seen.pool:
        return "pooled"
    mapped = any(mapping.handle == view.handle for mapping in seen.mappings.values())
    return "mapped" if mapped else "held"


def _prefixes(before: Observation, after: Observation) -> Iterator[str]:
    for serial in sorted({*before.prefixes, *after.prefixes}):
        old, new = before.prefixes.get(serial), after.prefixes.get(serial)
        if new is not None and new != old:
            how = "sealed" if new.sealed else f"published by r{new.reservation}"
            yield f"p{serial}: {how} ({_named(new.handles)})"
        elif old is not None and new is None:
            yield f"p{serial}: {'retired' if old.sealed else 'cancelled'}"


def _named(handles: Sequence[int]) -> str:
    """Handles by name; rows of them by their ends."""
    rows: list[list[int]] = []
    for serial in handles:
        if rows and rows[-1][-1] + 1 == serial:
            rows[-1].append(serial)
        else:
            rows.append([serial])
    return ", ".join(
        f"handle{row[0]} to handle{row[-1]}" if len(row) > 1 else f"handle{row[0]}" for row in rows
    )


def left(state: State) -> str:
    """What is still held or in doubt, after everything was closed, trimmed and reclaimed."""
    if state.lost:
        return "the device is lost: nothing could be given back"
    ledger = state.ledger
    names = ("quarantined", "unattributed", "unattributed_addresses")
    parts = [f"{name} {getattr(ledger, name)}" for name in names if getattr(ledger, name)]
    parts += [f"range{r.serial} {r.standing.value}" for r in state.reservations.values()]
    return f"still in doubt: {', '.join(parts)}" if parts else "nothing is left"
