"""Parts that several operations are made of: give a handle back, unmap, clear, dispose.

Each makes its driver calls, books what they confirmed, and gives back the state with what the
operation needs to go on.
"""

from collections.abc import Iterable

from attrs import frozen

from kvvmm_model.calls import Calls
from kvvmm_model.planning import contiguous
from kvvmm_model.state import Mapping, Pooled, State


def span_of(state: State, run: tuple[Mapping, ...]) -> tuple[int, int]:
    """Address and bytes of a run of mappings."""
    first = run[0]
    address = state.reservations[first.reservation].address_of(
        first.window, state.settings.granularity_bytes
    )
    return address, state.bytes(run[-1].end - first.window)


def give_back(state: State, handle: int, calls: Calls) -> State:
    """Release a handle that nothing refers to; not confirmed, it is quarantined.

    A release is never repeated: it may have worked, and the value may be someone else's by now.
    """
    fault = calls.release(state.handles[handle].value)
    return state.released(handle) if fault is None else state.handle_quarantined(handle)


def give_up(state: State, victims: Iterable[Pooled], calls: Calls) -> State:
    """Release pooled handles to make room for a commit, whose grant takes what they free.

    Ends at the first that fails.
    """
    for entry in victims:
        size = state.handles[entry.handle].size
        fault = calls.release(state.handles[entry.handle].value)
        state = state.left_pool(entry)
        if fault is not None:
            return state.handle_quarantined(entry.handle)
        state = state.released(entry.handle)
        # Short of the limit after set_limit, what is freed first makes up for the excess.
        state = state.granted(min(size, max(0, state.ledger.free)))
    return state


@frozen
class Unmapped:
    """What an unmap of a run came to: confirmed gone, confirmed still there, or open."""

    gone: tuple[Mapping, ...]
    there: tuple[Mapping, ...] = ()
    open: tuple[Mapping, ...] = ()


def unmap(state: State, run: tuple[Mapping, ...], calls: Calls) -> tuple[State, Unmapped]:
    """Unmap a run; after a fault, ask for each of its mappings, in window order (D-25)."""
    if calls.unmap(*span_of(state, run)) is None:
        result = Unmapped(gone=run)
    else:
        found = {mapping: calls.is_mapped(span_of(state, (mapping,))[0]) for mapping in run}
        result = Unmapped(
            gone=tuple(mapping for mapping in run if found[mapping] is False),
            there=tuple(mapping for mapping in run if found[mapping] is True),
            open=tuple(mapping for mapping in run if found[mapping] is None),
        )
    for mapping in result.gone:
        state = state.unmapped(mapping)
    return state, result


def clear(
    state: State, chosen: Iterable[Mapping], calls: Calls
) -> tuple[set[Mapping], set[Mapping]]:
    """Start clearing what will be pooled, one call a run: what was called on, what is clean.

    A clear that reports a fault, even a partial one, may still land, and leaves its run unfit.
    """
    called: set[Mapping] = set()
    clean: set[Mapping] = set()
    if not state.settings.clear_pooled:
        return called, set(chosen)
    for run in contiguous(chosen):
        if calls.lost:
            break
        called.update(run)
        if calls.clear(*span_of(state, run)) is None:
            clean.update(run)
    return called, clean


def dispose(state: State, gone: Iterable[Mapping], clean: set[Mapping], calls: Calls) -> State:
    """Pool or release the handles of mappings that are gone, in window order.

    Only a handle without any other reference is disposed of.
    """
    for mapping in gone:
        if state.handles[mapping.handle].references:
            continue
        if mapping in clean and not calls.lost:
            state = state.pooled(mapping.handle)
        else:
            state = give_back(state, mapping.handle, calls)
    return state
