"""Private memory for windows: what commit and fork have in common."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from kvvmm_cuda.handle import Handle
from kvvmm_cuda.work import Work
from kvvmm_model.vocabulary import Code, Policy, Refusal, Refused, Settings, refused


class Chunk(NamedTuple):
    """Where a handle will be mapped."""

    window: int
    size: int


def chunks(runs: Iterable[Chunk], settings: Settings) -> list[Chunk]:
    """Cut runs into handles: of one granule each, or powers of two, largest first."""
    plan: list[Chunk] = []
    bound = settings.longest_run if settings.policy is Policy.RUN else 1
    for first, length in runs:
        window, end = first, first + length
        while window < end:
            size = 1 << (min(end - window, bound).bit_length() - 1)
            plan.append(Chunk(window, size))
            window += size
    return plan


class Backing:
    """Handles of the ``sizes``: the n-th from the pool where ``hits`` has n, else created.

    ``victims``: pooled handles that are given up first.  ``fresh``: those created so far.
    """

    __slots__ = ("fresh", "hits", "sizes", "victims", "work")

    def __init__(
        self, work: Work, sizes: Sequence[int], hits: dict[int, Handle], victims: list[Handle]
    ) -> None:
        """Hits and victims are taken from the pool already."""
        self.work = work
        self.sizes = sizes
        self.hits = hits
        self.victims = victims
        self.fresh: list[Handle] = []

    def handles(self) -> list[Handle]:
        """All of them, in the order of the sizes, once they are created."""
        unused = iter(self.fresh)
        hits = self.hits
        return [hits[n] if n in hits else next(unused) for n in range(len(self.sizes))]

    def in_hand(self) -> list[Handle]:
        """What an operation that loses the device is left with."""
        return [*self.fresh, *self.hits.values()]

    def give_up_victims(self) -> bool:
        """Give up what has to be, before anything else; whether all of it is confirmed."""
        return _give_up(self.work, self.victims)

    def create(self) -> bool:
        """Get every fresh handle in hand; whether there is one of each size now.

        Out of memory, the pool is given up for what is still to be created, unless something was
        given up already, and that one create is repeated.
        """
        work, may_give_up = self.work, not self.victims
        sizes = [size for number, size in enumerate(self.sizes) if number not in self.hits]
        for number, size in enumerate(sizes):
            made = work.create(size)
            if not isinstance(made, Handle) and made.code == Code.OUT_OF_MEMORY and may_give_up:
                may_give_up = False
                with work.records.lock:
                    victims = _take_victims(work, sum(sizes[number:]))
                if victims and _give_up(work, victims):
                    made = work.create(size)
                    if isinstance(made, Handle):
                        work.faults.clear()  # an OUT_OF_MEMORY that was overcome
            if not isinstance(made, Handle):
                return False
            self.fresh.append(made)
        return True

    def put_back(self, dirty: Collection[Handle] = ()) -> None:
        """UNWIND: release what was created, newest first; hits go to their old places.

        A ``dirty`` hit holds somebody's bytes and is released as well.  What is still mapped is
        left alone.
        """
        hits = self.hits.values()
        for handle in reversed([*(hit for hit in hits if hit in dirty), *self.fresh]):
            if not handle.references:
                _ = self.work.release(handle)  # not confirmed, it is quarantined and listed
        for hit in reversed(hits):
            if not hit.references and hit not in dirty:
                self.work.put_back(hit)


def admit(work: Work, sizes: Sequence[int]) -> Backing | Refused:
    """Take pool hits, check the budget and set the grant aside, in one step."""
    records = work.records
    with records.lock:
        hits: dict[int, Handle] = {}
        for number, size in enumerate(sizes):
            hit = records.pool.take(size)
            if hit is not None:
                hits[number] = hit
                work.took(hit)
        needed = sum(size for number, size in enumerate(sizes) if number not in hits)
        free, room = records.free, records.pool.size
        short = max(0, needed - free) if needed else 0
        if short > room:
            for hit in reversed(hits.values()):
                records.pool.put_back(hit)
            unit = records.settings.granularity_bytes
            return refused(
                Refusal.BUDGET,
                needed_bytes=needed * unit,
                free_bytes=free * unit,
                reclaimable_bytes=room * unit,
            )
        work.add_grant(min(needed, max(0, free)))
        return Backing(work, sizes, hits, _take_victims(work, short))


def _take_victims(work: Work, amount: int) -> list[Handle]:
    """The oldest pooled handles leave the pool; the caller holds the lock."""
    victims = work.records.pool.take_oldest(amount)
    for victim in victims:
        work.took(victim)
    return victims


def _give_up(work: Work, victims: Sequence[Handle]) -> bool:
    """Release pooled handles into the grant, oldest first; ends at the first that fails."""
    done = 0
    try:
        for victim in victims:
            done += 1
            if not work.release(victim, into_grant=True):
                return False
    finally:
        for victim in reversed(victims[done:]):
            work.put_back(victim)
    return True
