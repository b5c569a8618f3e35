"""What an operation will touch, computed before its first driver call.  No driver, no change."""

from collections.abc import Iterable

from kvvmm_model.state import Mapping, Pooled, Reservation, State
from kvvmm_model.vocabulary import Policy, Settings

Chunk = tuple[int, int]
"""First window and size of a handle to be."""


def missing_runs(found: Reservation, first: int, end: int) -> list[Chunk]:
    """The runs of windows in ``[first, end)`` that no mapping covers, as (window, size)."""
    runs: list[Chunk] = []
    at = first
    for mapping in found.mappings:
        if at < mapping.window < end:
            runs.append((at, mapping.window - at))
        if mapping.window < end:
            at = max(at, mapping.end)
    if at < end:
        runs.append((at, end - at))
    return runs


def chunks(runs: Iterable[Chunk], settings: Settings) -> list[Chunk]:
    """Cut runs into handles: of one granule each, or powers of two, largest first."""
    cut: list[Chunk] = []
    for first, length in runs:
        window, left = first, length
        while left:
            size = 1
            if settings.policy is Policy.RUN:
                while size * 2 <= min(left, settings.longest_run):
                    size *= 2
            cut.append((window, size))
            window, left = window + size, left - size
    return cut


def hits(state: State, sizes: Iterable[int]) -> dict[int, Pooled]:
    """For each handle that the pool can serve, by its number: the newest of exactly its size."""
    unused = list(state.pool)
    taken: dict[int, Pooled] = {}
    for number, size in enumerate(sizes):
        fitting = [entry for entry in unused if state.handles[entry.handle].size == size]
        if fitting:
            taken[number] = fitting[-1]
            unused.remove(fitting[-1])
    return taken


def oldest(state: State, entries: Iterable[Pooled], size: int) -> list[Pooled]:
    """Of entries in order of age, as few of the oldest as amount to ``size``, or all."""
    chosen: list[Pooled] = []
    total = 0
    for entry in entries:
        if total >= size:
            break
        chosen.append(entry)
        total += state.handles[entry.handle].size
    return chosen


def contiguous(mappings: Iterable[Mapping]) -> list[tuple[Mapping, ...]]:
    """Mappings in window order, as runs without a gap."""
    runs: list[tuple[Mapping, ...]] = []
    for mapping in mappings:
        if runs and runs[-1][-1].end == mapping.window:
            runs[-1] = (*runs[-1], mapping)
        else:
            runs.append((mapping,))
    return runs


def fit_for_pool(state: State, leaving: Iterable[Mapping]) -> list[Mapping]:
    """Which of the mappings that leave will have their handles pooled, in window order.

    Each that still fits under the retention bound; only memory that is known to be writable and
    that nobody else refers to.
    """
    chosen: list[Mapping] = []
    kept = state.ledger.pooled
    for mapping in leaving:
        alone = state.handles[mapping.handle].references == 1
        if mapping.writable and alone and kept + mapping.size <= state.settings.retention:
            chosen.append(mapping)
            kept += mapping.size
    return chosen
