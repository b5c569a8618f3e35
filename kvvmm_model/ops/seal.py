"""seal: a prefix becomes readable for all and writable for nobody."""

from kvvmm_model.calls import Calls
from kvvmm_model.parts import span_of
from kvvmm_model.planning import contiguous
from kvvmm_model.refusals import prefix_named
from kvvmm_model.state import Mapping, State, Transition
from kvvmm_model.vocabulary import Done, Driver, Refused, Rights


def seal(state: State, prefix: object, driver: Driver) -> Transition:
    """Take the owner's right to write; ``Done`` carries the granules whose rights were changed.

    The fence covers readers too: a change of rights under a kernel that merely reads can lose the
    context (D-34), so nothing new may be launched on this memory until seal returns.  Sealed
    already, no driver call is made.  Fault points: 1 fence; 2 set_access, one a run of the windows
    that can still be written; unwinding, 3 set_access.
    """
    # REFUSALS
    found = prefix_named(state, prefix)
    if isinstance(found, Refused):
        return Transition(state, found)
    if found.sealed:
        return Transition(state, Done(0))
    leading = state.reservations[found.reservation].mappings[: len(found.handles)]
    unsealed = [mapping for mapping in leading if not mapping.sealed]

    # STEPS
    before, calls = state, Calls(driver)
    if calls.fence() is not None:
        return calls.conclude(before, state)
    tried: list[Mapping] = []
    for run in contiguous(unsealed):
        tried += run
        if calls.set_access(*span_of(state, run), Rights.READ) is not None:
            break
        state = state.rights(run, Rights.READ)

    # LEDGER: nothing is charged or mapped; the prefix can be attached from now on.
    if not calls.faults:
        return calls.conclude(before, state.sealed(found), sum(m.size for m in unsealed))

    # UNWIND: the right to write is given back, never where it was taken by an earlier seal.  Where
    # that fails too, the rights are not known, and the seal may be repeated.
    for mapping in reversed(tried):
        fault = calls.set_access(*span_of(state, (mapping,)), Rights.RW)
        state = state.rights((mapping,), Rights.RW if fault is None else Rights.UNKNOWN)
    return calls.conclude(before, state)
