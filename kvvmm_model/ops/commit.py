"""commit: back windows with memory.  All of them or none."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import give_back, give_up, span_of, unmap
from kvvmm_model.planning import Chunk, chunks, contiguous, hits, missing_runs, oldest
from kvvmm_model.refusals import byte_range, named, quarantined
from kvvmm_model.state import Mapping, Pooled, State, Transition
from kvvmm_model.vocabulary import Code, Driver, Fault, Refusal, Refused, Rights, Step, refused

_FULL = Fault(Step.CREATE, Code.OUT_OF_MEMORY)


def commit(
    state: State, reservation: object, offset_bytes: object, size_bytes: object, driver: Driver
) -> Transition:
    """Back every window that ``[offset, offset + size)`` touches; ``Done`` carries the new ones.

    Fault points: 1 release, of what must be given up; 2 create; 3 map, then query; 4 set_access,
    one a run; unwinding, 5 unmap, then query; 6 release.
    """
    # REFUSALS
    found = named(state, reservation)
    if isinstance(found, Refused):
        return Transition(state, found)
    wanted = byte_range(state, found, offset_bytes, size_bytes)
    if isinstance(wanted, Refused):
        return Transition(state, wanted)
    (offset, size), granularity = wanted, state.settings.granularity_bytes
    first, end = offset // granularity, -(-(offset + size) // granularity)
    touched = (m for m in found.mappings if m.window < end and first < m.end)
    barred = quarantined(state, touched)
    if barred is not None:
        return Transition(state, barred)
    plan = chunks(missing_runs(found, first, end), state.settings)
    taken = hits(state, plan)
    others = [entry for entry in state.pool if entry not in taken.values()]
    needed = sum(size for window, size in plan if window not in taken)
    room = sum(state.handles[entry.handle].size for entry in others)
    short = max(0, needed - state.ledger.free) if needed else 0
    if short > room:
        return Transition(
            state,
            refused(
                Refusal.BUDGET,
                needed_bytes=state.bytes(needed),
                free_bytes=state.bytes(state.ledger.free),
                reclaimable_bytes=state.bytes(room),
            ),
        )

    # STEPS
    before, calls = state, Calls(driver)
    state = state.granted(min(needed, max(0, state.ledger.free)))
    for entry in taken.values():
        state = state.left_pool(entry)
    state = give_up(state, oldest(state, others, short), calls)
    fresh: list[int] = []
    made: list[Mapping] = []
    if not calls.faults:
        state, fresh = _create(state, plan, taken, calls, may_give_up=not short)
    if not calls.faults:
        state, made = _map(state, found.serial, plan, taken, fresh, calls)

    # LEDGER: each step has booked what it confirmed; what is left of the grant goes back.
    if not calls.faults:
        state = state.granted(-state.ledger.granted)
        return calls.conclude(before, state, sum(size for _, size in plan))

    # UNWIND: strictly newest first, one mapping at a time.
    for mapping in reversed(made):
        state, result = unmap(state, (mapping,), calls)
        state = state.quarantined((*result.there, *result.open))
    for handle in reversed(fresh):
        if not state.handles[handle].references:
            state = give_back(state, handle, calls)
    for entry in taken.values():
        if state.handles[entry.handle].references:
            continue
        if calls.lost:
            state = state.handle_quarantined(entry.handle)
        else:
            state = state.put_back(entry)
    return calls.conclude(before, state.granted(-state.ledger.granted))


def _create(
    state: State, plan: list[Chunk], taken: dict[int, Pooled], calls: Calls, *, may_give_up: bool
) -> tuple[State, list[int]]:
    """Get every fresh handle in hand before the first map."""
    fresh: list[int] = []
    sizes = [size for window, size in plan if window not in taken]
    for number, size in enumerate(sizes):
        value = calls.create(state.bytes(size))
        if value == _FULL and may_give_up and state.pool:
            may_give_up = False
            state = give_up(state, oldest(state, state.pool, sum(sizes[number:])), calls)
            if calls.faults == [_FULL]:
                value = calls.create(state.bytes(size))
            if not isinstance(value, Fault):
                calls.overcome(_FULL)
        if isinstance(value, Fault):
            if not value.rules_out_effect:
                state = state.memory_unattributed(size)
            return state, fresh
        fresh.append(state.next_handle)
        state = state.created(value, size)
    return state, fresh


def _map(
    state: State,
    reservation: int,
    plan: list[Chunk],
    taken: dict[int, Pooled],
    fresh: list[int],
    calls: Calls,
) -> tuple[State, list[Mapping]]:
    """Map every handle, then give rights a run at a time; what was made, oldest first."""
    made: list[Mapping] = []
    unused = iter(fresh)
    for window, size in plan:
        handle = taken[window].handle if window in taken else next(unused)
        mapping = Mapping(reservation, window, handle, size)
        state = state.mapped(mapping)
        address, size_bytes = span_of(state, (mapping,))
        fault = calls.map(address, size_bytes, state.handles[handle].value)
        if fault is not None and calls.is_mapped(address) is False:
            return state.unmapped(mapping), made
        made.append(mapping)
        if fault is not None:
            return state, made
    for run in contiguous(made):
        fault = calls.set_access(*span_of(state, run), Rights.RW)
        state = state.rights(run, Rights.RW if fault is None else Rights.UNKNOWN)
        if fault is not None:
            return state, made
    return state, made
