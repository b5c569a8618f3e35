"""What an operation touched, and how it was before: the residue, should the operation fail.

Read off the records that the operation changed, not off the shared ledger: other threads change
that too.
"""

from collections.abc import Iterable

from kvvmm_cuda.handle import Handle
from kvvmm_cuda.records import Mapping, Prefix, Reservation
from kvvmm_model.vocabulary import Fact, HandleView, Ledger, MappingView, Residue

Record = Handle | Mapping | Prefix | Reservation


class Touched:
    """Records with what could be observed of them before; amounts in granules.

    ``held``: by how much this operation changed what prefixes alone keep.  ``unattributed`` and
    ``unattributed_addresses``: what its failed calls may have taken.
    """

    __slots__ = ("_before", "held", "unattributed", "unattributed_addresses")

    def __init__(self) -> None:
        """Nothing was touched yet."""
        self.held = 0
        self.unattributed = 0
        self.unattributed_addresses = 0
        self._before: dict[Record, tuple[Fact, ...]] = {}

    def add(self, record: Record) -> None:
        """A record is about to be changed."""
        if record not in self._before:
            self._before[record] = record.facts()

    def new(self, record: Record) -> None:
        """A record was not there before."""
        self._before[record] = ()

    def taken(self, handle: Handle) -> None:
        """A handle was just taken from the pool."""
        view = HandleView(handle.serial, handle.size, quarantined=False)
        _ = self._before.setdefault(handle, (view, ("pooled", handle.serial)))

    def residue(self) -> Residue:
        """What is different now."""
        before = {fact for facts in self._before.values() for fact in facts}
        after = {fact for record in self._before for fact in record.facts()}
        new, gone = frozenset(after - before), frozenset(before - after)
        ledger = self._ledger_of(new).minus(self._ledger_of(gone))
        ledger = ledger._replace(
            charged=ledger.owned + self.unattributed,
            held=self.held,
            unattributed=self.unattributed,
            unattributed_addresses=self.unattributed_addresses,
        )
        return Residue(new, gone, ledger)

    def _ledger_of(self, facts: Iterable[Fact]) -> Ledger:
        owned = mapped = pooled = quarantined = 0
        sizes = {
            record.serial: record.size for record in self._before if isinstance(record, Handle)
        }
        for fact in facts:
            if isinstance(fact, HandleView):
                owned += fact.size
                quarantined += fact.size * fact.quarantined
            elif isinstance(fact, MappingView):
                mapped += fact.size
            elif fact[0] == "pooled":
                pooled += sizes[fact[1]]
        return Ledger(owned=owned, mapped=mapped, pooled=pooled, quarantined=quarantined)
