"""Parts that several operations are made of: map, give rights, unmap, clear, dispose.

Each makes its driver calls, books what they confirmed, and gives back the state with what the
operation needs to go on.
"""

from collections.abc import Iterable

from attrs import frozen

from kvvmm_model.calls import Calls
from kvvmm_model.planning import contiguous
from kvvmm_model.state import Mapping, Pooled, Prefix, State
from kvvmm_model.vocabulary import Rights


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


def map_with(
    state: State, wanted: Iterable[Mapping], rights: Rights, calls: Calls
) -> tuple[State, list[Mapping]]:
    """Map handles, one call each, then give rights, one call a run, up to the first fault.

    The answer is what is mapped or may be, oldest first.  Each mapping counts its reference before
    its call, and gives it back only where the driver says that it is not mapped: so one that
    survives whatever happens owns what it shows.
    """
    made: list[Mapping] = []
    for mapping in wanted:
        state = state.mapped(mapping)
        address, size_bytes = span_of(state, (mapping,))
        fault = calls.map(address, size_bytes, state.handles[mapping.handle].value)
        if fault is not None and calls.is_mapped(address) is False:
            return state.unmapped(mapping), made
        made.append(mapping)
        if fault is not None:
            return state, made
    for run in contiguous(made):
        fault = calls.set_access(*span_of(state, run), rights)
        state = state.rights(run, rights if fault is None else Rights.UNKNOWN)
        if fault is not None:
            return state, made
    return state, made


def unmake(state: State, made: list[Mapping], calls: Calls) -> State:
    """UNWIND: unmap what an operation mapped, newest first, one mapping at a time.

    What is not confirmed gone is quarantined here, for nobody would call again.
    """
    for mapping in reversed(made):
        state, result = unmap(state, (mapping,), calls)
        state = state.quarantined((*result.there, *result.open))
    return state


def cancel(state: State, prefixes: Iterable[Prefix]) -> State:
    """End unsealed prefixes; their memory is still mapped where it was published."""
    for prefix in prefixes:
        state = state.ended(prefix)
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

    Only a handle without any other reference is disposed of, and once, also where two mappings of
    it left together.
    """
    for handle, mapping in {mapping.handle: mapping for mapping in gone}.items():
        if state.handles[handle].references:
            continue
        if mapping in clean and not calls.lost:
            state = state.pooled(handle)
        else:
            state = give_back(state, handle, calls)
    return state
