"""fork: new reservations that begin as others do.  All or none."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from kvvmm_cuda.backing import Backing, Chunk, admit, chunks
from kvvmm_cuda.checks import (
    device_lost,
    first_hole,
    first_of,
    integer,
    named,
    quarantined,
    rights_unknown,
)
from kvvmm_cuda.handle import Handle
from kvvmm_cuda.locking import locked
from kvvmm_cuda.records import Mapping, Records, Reservation
from kvvmm_cuda.work import DeviceLost, Work
from kvvmm_model.vocabulary import Driver, Outcome, Refusal, Refused, Rights, Standing, refused

Parent = tuple[object, object]
"""Reservation, length in bytes."""


class Cut(NamedTuple):
    """How a child is made of its parent.

    ``shared``: the parent's sealed mappings that end at the length or before.  ``copied``: how many
    bytes behind them the child gets a copy of, in memory of its own: the ``chunks``.
    """

    parent: Reservation
    shared: Sequence[Mapping]
    copied: int
    chunks: Sequence[Chunk]


def fork(records: Records, driver: Driver, parents: tuple[Parent, ...]) -> Outcome:
    """Make a child of each parent that reads as it does up to a length; ``Done``: the serials."""
    # REFUSALS
    named_ones = [named(records, reservation) for reservation, _ in parents]
    with locked(found for found in named_ones if isinstance(found, Reservation)):
        cuts = [_cut(records, parent) for parent in parents]
        refusal = first_of(cut for cut in cuts if isinstance(cut, Refused))
        if refusal is None and not parents:
            refusal = device_lost(records) or refused(Refusal.RANGE, parents=0)
        if refusal is not None:
            return refusal
        plan = [cut for cut in cuts if isinstance(cut, Cut)]
        work = Work(records, driver)
        backing = admit(work, [size for cut in plan for _, size in cut.chunks])
        if isinstance(backing, Refused):
            return backing
        with ExitStack() as held:
            return _Fork(work, plan, backing, held).run()


class _Fork:
    """A fork that was admitted.

    ``shared`` and ``private``: the children's mappings, oldest first.  ``dirty``: handles that may
    hold a copy.  ``held``: the children's locks, so that nobody sees one half made.
    """

    def __init__(self, work: Work, plan: Sequence[Cut], backing: Backing, held: ExitStack) -> None:
        self.work = work
        self.plan = plan
        self.backing = backing
        self.held = held
        self.children: list[Reservation] = []
        self.shared = 0
        self.dirty: dict[Handle, None] = {}

    def run(self) -> Outcome:
        """The steps, and their unwinding."""
        work = self.work
        try:
            # STEPS
            # LEDGER: each step books what it confirmed.
            done = (
                self.backing.give_up_victims()
                and self._reserve()
                and work.fence()
                and self._share()
                and self.backing.create()
                and self._copy()
                and (not self.dirty or work.fence())
            )
            # UNWIND: strictly newest first.
            if not done:
                self._unwind()
        except DeviceLost:
            work.abandon(work.made, self.backing.in_hand())
            for child in (child for child in self.children if not child.gone):
                standing = Standing.CLOSED if len(child) else Standing.QUARANTINED
                work.set_standing(child, standing)
        work.return_grant()
        return work.outcome(tuple(child.serial for child in self.children))

    def _reserve(self) -> bool:
        """A range as large as each parent's."""
        for cut in self.plan:
            child = self.work.address_reserve(cut.parent.size, 0, locked=True)
            if child is None:
                return False
            _ = self.held.callback(child.lock.release)
            self.children.append(child)
        return True

    def _share(self) -> bool:
        """Map what is sealed, to be read."""
        for child, cut in zip(self.children, self.plan, strict=True):
            places = [(child, mapping.window, mapping.handle) for mapping in cut.shared]
            done = self.work.map_with(places, Rights.READ)
            self.shared = len(self.work.made)
            if not done:
                return False
        return True

    def _copy(self) -> bool:
        """Map each child's own memory, and start the one copy into it."""
        work, handles = self.work, iter(self.backing.handles())
        for child, cut in zip(self.children, self.plan, strict=True):
            if not cut.copied:
                continue
            before = len(work.made)
            places = [(child, window, next(handles)) for window, _ in cut.chunks]
            if not work.map_with(places, Rights.RW):
                return False
            mappings = work.made[before:]
            self.dirty.update(dict.fromkeys(mapping.handle for mapping in mappings))
            unit = work.records.settings.granularity_bytes
            source = cut.parent.address + mappings[0].window * unit
            if not work.copy(mappings, source, cut.copied):
                return False
        return True

    def _unwind(self) -> None:
        """Strictly newest first.  Under a copy that may still land, nothing is unmapped."""
        work = self.work
        undo = work.unmake if not self.dirty or work.fence() else work.quarantine
        made, shared = tuple(work.made), self.shared
        undo(made[shared:])
        self.backing.put_back(self.dirty)
        undo(made[:shared])
        for child in reversed(self.children):
            if len(child):
                work.set_standing(child, Standing.CLOSED)
            else:
                work.address_free(child)


def _cut(records: Records, parent: Parent) -> Cut | Refused:
    """What a child shares and copies."""
    found, length = named(records, parent[0]), integer(parent[1])
    if isinstance(found, Refused):
        return found
    unit = records.settings.granularity_bytes
    total = found.size * unit
    if not 1 <= length <= total:
        return refused(Refusal.RANGE, length_bytes=parent[1], reservation_bytes=total)
    end = -(-length // unit)
    needed = found.overlapping(0, end)
    barred = quarantined(records, needed) or rights_unknown(records, needed)
    if barred is not None:
        return barred
    shared = [mapping for mapping in needed if mapping.end * unit <= length]
    for mapping in shared:
        if mapping.rights is not Rights.READ:
            return refused(
                Refusal.UNSEALED, offset_bytes=mapping.window * unit, length_bytes=length
            )
    hole = first_hole(needed, end)
    if hole is not None:
        return refused(Refusal.NOT_COMMITTED, offset_bytes=hole * unit, length_bytes=length)
    first = shared[-1].end if shared else 0
    runs = [Chunk(first, end - first)] if first < end else []
    return Cut(found, shared, length - first * unit, chunks(runs, records.settings))
