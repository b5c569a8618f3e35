"""release: windows lose their memory; the address stays reserved."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import cancel, clear, dispose, unmap
from kvvmm_model.planning import contiguous, fit_for_pool
from kvvmm_model.refusals import byte_range, named, quarantined
from kvvmm_model.state import Mapping, Prefix, State, Transition
from kvvmm_model.vocabulary import Driver, Refusal, Refused, Released, refused


def release(
    state: State, reservation: object, offset_bytes: object, size_bytes: object, driver: Driver
) -> Transition:
    """Release the mappings that lie wholly in ``[offset, offset + size)``; holes are skipped.

    An unsealed prefix that loses a window is cancelled.  Memory that others hold stays charged.
    ``Done`` carries a ``Released``.  Fault points: 1 fence; 2 clear, one a run of what will be
    pooled; 3 fence, if a clear was called; 4 unmap, one a run, then query; 5 release.
    """
    # REFUSALS
    found = named(state, reservation)
    if isinstance(found, Refused):
        return Transition(state, found)
    wanted = byte_range(state, found, offset_bytes, size_bytes)
    if isinstance(wanted, Refused):
        return Transition(state, wanted)
    (offset, size), granularity = wanted, state.settings.granularity_bytes
    first, end = -(-offset // granularity), (offset + size) // granularity
    leaving = tuple(m for m in found.mappings if first <= m.window and m.end <= end)
    barred = quarantined(state, leaving)
    if barred is not None:
        return Transition(state, barred)
    if not leaving:
        return Transition(
            state, refused(Refusal.NOT_COMMITTED, offset_bytes=offset, size_bytes=size)
        )

    # STEPS
    before, calls = state, Calls(driver)
    if calls.fence() is not None:
        return calls.conclude(before, state.quarantined(leaving) if calls.lost else state)
    state = cancel(state, _touched(state, leaving))
    called, clean = clear(state, fit_for_pool(state, leaving), calls)
    if called and calls.fence() is not None:
        # The clear may still land: unmapped under it, it would hit the next owner.
        doomed = leaving if calls.lost else tuple(m for m in leaving if m in called)
        return calls.conclude(before, state.quarantined(doomed))
    gone: list[Mapping] = []
    for run in contiguous(leaving):
        state, result = unmap(state, run, calls)
        state = state.quarantined(result.open)
        gone += result.gone

    # LEDGER: pooled, or released and no longer charged; what is still mapped stays committed.
    state = dispose(state, gone, clean, calls)

    # UNWIND: nothing is mapped again.  On a lost device, nothing stays in use that was to leave.
    if calls.lost:
        state = state.quarantined(tuple(m for m in leaving if m not in gone))
    kept = tuple(
        window
        for mapping in found.mappings
        if mapping not in leaving
        for window in range(max(first, mapping.window), min(end, mapping.end))
    )
    return calls.conclude(before, state, Released(sum(m.size for m in leaving), kept))


def _touched(state: State, leaving: tuple[Mapping, ...]) -> list[Prefix]:
    """The unsealed prefixes of this reservation that lose a window."""
    first = leaving[0]
    return [
        prefix
        for prefix in state.unsealed_of(first.reservation)
        if first.window < state.size_of(prefix)
    ]
