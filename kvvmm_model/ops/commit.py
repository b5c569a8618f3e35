"""commit: windows gain memory.  All or none."""

from kvvmm_model.backing import admit, create, put_back, take
from kvvmm_model.calls import Calls
from kvvmm_model.parts import map_with, unmake
from kvvmm_model.planning import chunks, missing_runs
from kvvmm_model.refusals import byte_range, named, quarantined, rights_unknown
from kvvmm_model.state import Mapping, State, Transition
from kvvmm_model.vocabulary import Driver, Refusal, Refused, Rights, refused


def commit(
    state: State, reservation: object, offset_bytes: object, size_bytes: object, driver: Driver
) -> Transition:
    """Back every window that ``[offset, offset + size)`` touches; ``Done`` carries the new ones.

    Committed means writable: windows that are sealed, or whose rights are not known, are refused.
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
    touched = [m for m in found.mappings if m.window < end and first < m.end]
    barred = (
        quarantined(state, touched) or rights_unknown(state, touched) or _sealed(state, touched)
    )
    if barred is not None:
        return Transition(state, barred)
    plan = chunks(missing_runs(found, first, end), state.settings)
    backing = admit(state, (size for _, size in plan))
    if isinstance(backing, Refused):
        return Transition(state, backing)

    # STEPS: every handle is in hand before the first map.
    before, calls = state, Calls(driver)
    state = take(state, backing, calls)
    fresh: list[int] = []
    made: list[Mapping] = []
    if not calls.faults:
        state, fresh = create(state, backing, calls)
    if not calls.faults:
        pairs = zip(plan, backing.handles(fresh), strict=True)
        mappings = [Mapping(found.serial, at, handle, n) for (at, n), handle in pairs]
        state, made = map_with(state, mappings, Rights.RW, calls)

    # LEDGER: each step has booked what it confirmed; what is left of the grant goes back.
    if not calls.faults:
        state = state.granted(-state.ledger.granted)
        return calls.conclude(before, state, sum(size for _, size in plan))

    # UNWIND: strictly newest first, one mapping at a time.
    state = unmake(state, made, calls)
    return calls.conclude(before, put_back(state, backing, fresh, set(), calls))


def _sealed(state: State, touched: list[Mapping]) -> Refused | None:
    """None is sealed; the refusal says from where on there is none."""
    ends = [mapping.end for mapping in touched if mapping.sealed]
    return refused(Refusal.SHARED, first_offset_bytes=state.bytes(ends[-1])) if ends else None
