"""Private memory for windows: what commit and fork have in common.

First all is decided, then pooled handles are taken or given up, then the rest is created; what an
operation that fails has not used goes back where it came from.
"""

from collections.abc import Iterable, Sequence

from attrs import frozen

from kvvmm_model.calls import Calls
from kvvmm_model.parts import give_back, give_up
from kvvmm_model.planning import hits, oldest
from kvvmm_model.state import Pooled, State
from kvvmm_model.vocabulary import Code, Fault, Refusal, Refused, Step, refused

_FULL = Fault(Step.CREATE, Code.OUT_OF_MEMORY)


@frozen
class Backing:
    """Handles of these ``sizes``: the n-th from the pool where ``hits`` has n, else created.

    ``needed``: granules to create.  ``victims``: pooled handles to be given up first.
    """

    sizes: tuple[int, ...]
    hits: dict[int, Pooled]
    needed: int
    victims: tuple[Pooled, ...]

    def handles(self, fresh: Sequence[int]) -> list[int]:
        """The serials of the handles, in the order of the sizes."""
        unused = iter(fresh)
        return [
            self.hits[number].handle if number in self.hits else next(unused)
            for number in range(len(self.sizes))
        ]


def admit(state: State, sizes: Iterable[int]) -> Backing | Refused:
    """Decide what is taken from the pool, what is created, and what must be given up for that."""
    wanted = tuple(sizes)
    taken = hits(state, wanted)
    others = [entry for entry in state.pool if entry not in taken.values()]
    needed = sum(size for number, size in enumerate(wanted) if number not in taken)
    room = sum(state.handles[entry.handle].size for entry in others)
    short = max(0, needed - state.ledger.free) if needed else 0
    if short > room:
        return refused(
            Refusal.BUDGET,
            needed_bytes=state.bytes(needed),
            free_bytes=state.bytes(state.ledger.free),
            reclaimable_bytes=state.bytes(room),
        )
    return Backing(wanted, taken, needed, tuple(oldest(state, others, short)))


def take(state: State, backing: Backing, calls: Calls) -> State:
    """Set the grant aside, take the hits from the pool, give up the victims."""
    state = state.granted(min(backing.needed, max(0, state.ledger.free)))
    for entry in backing.hits.values():
        state = state.left_pool(entry)
    return give_up(state, backing.victims, calls)


def create(state: State, backing: Backing, calls: Calls) -> tuple[State, list[int]]:
    """Get every fresh handle in hand; what there is by then, oldest first.

    Out of memory, the pool is given up for what is still to be created, unless something was
    given up already, and that one create is repeated.
    """
    fresh: list[int] = []
    may_give_up = not backing.victims
    sizes = [size for number, size in enumerate(backing.sizes) if number not in backing.hits]
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


def put_back(
    state: State, backing: Backing, fresh: Iterable[int], dirty: set[int], calls: Calls
) -> State:
    """UNWIND: release what was created, newest first; hits go to their old places in the pool.

    A ``dirty`` hit holds somebody's bytes and is released as well.  What is still mapped is not
    touched: it is quarantined with its mapping.
    """
    entries = {entry.handle: entry for entry in backing.hits.values()}
    unclean = [handle for handle in entries if handle in dirty]
    for handle in reversed((*unclean, *fresh)):
        if not state.handles[handle].references:
            state = give_back(state, handle, calls)
    for handle, entry in entries.items():
        if handle in unclean or state.handles[handle].references:
            continue
        state = state.handle_quarantined(handle) if calls.lost else state.put_back(entry)
    return state.granted(-state.ledger.granted)
