"""The driver as a judge: what it really holds against what the model says is held.

Only a driver that can tell the truth is asked (``TellsTruth``); the simulated one can.
"""

from collections.abc import Iterator
from collections.abc import Mapping as Mapped
from typing import Protocol, runtime_checkable

from kvvmm_model.driver_model import LiveMapping
from kvvmm_model.state import Mapping, State
from kvvmm_model.vocabulary import Driver, Fault, Rights


@runtime_checkable
class TellsTruth(Protocol):
    """What a simulated driver knows and a real one does not say."""

    oddities: list[str]

    def physical_bytes(self) -> int:
        """Memory that exists."""
        ...

    def live_ranges(self) -> Mapped[int, int]:
        """Bytes by address."""
        ...

    def live_mappings(self) -> Mapped[int, LiveMapping]:
        """Mappings by address."""
        ...


def untrue(state: State, driver: TellsTruth) -> Iterator[str]:
    """Where the books and the driver part: memory (L-3), ranges, mappings and their rights."""
    charged = state.bytes(state.ledger.charged)
    doubtful = state.bytes(state.ledger.quarantined + state.ledger.unattributed)
    physical = driver.physical_bytes()
    if not charged - doubtful <= physical <= charged:
        yield (
            f"L-3 charged >= physical, equal where nothing is in doubt: charged {charged},"
            f" in doubt {doubtful}, physical {physical}"
        )
    yield from _untrue_mappings(state, dict(driver.live_mappings()))
    yield from _untrue_ranges(state, driver.live_ranges())


def _untrue_mappings(state: State, live: dict[int, LiveMapping]) -> Iterator[str]:
    for found in state.reservations.values():
        for mapping in found.mappings:
            address = found.address_of(mapping.window, state.settings.granularity_bytes)
            there = live.pop(address, None)
            if mapping.quarantined and there is None:
                continue
            handle = state.handles[mapping.handle].value
            if there is None or there.handle != handle:
                yield f"{mapping} is {there} in the driver"
            elif _differ(mapping, there.rights):
                yield f"{mapping} has other rights in the driver: {there.rights.name}"
    for address, there in live.items():
        yield f"the driver has a mapping at {address:#x} that nobody counts: {there}"


def _untrue_ranges(state: State, live: Mapped[int, int]) -> Iterator[str]:
    known = {found.address for found in state.reservations.values()}
    hidden = sum(size for address, size in live.items() if address not in known)
    if hidden > state.bytes(state.ledger.unattributed_addresses):
        yield f"{hidden} bytes of address space are reserved that nobody lists"


def wrong_rights(state: State, driver: Driver) -> Iterator[str]:
    """Ask the driver for the rights of every mapping that is not in doubt (D-25)."""
    for found in state.reservations.values():
        for mapping in found.mappings:
            if mapping.quarantined:
                continue
            address = found.address_of(mapping.window, state.settings.granularity_bytes)
            answer = driver.query(address)
            if isinstance(answer, Fault | None) or _differ(mapping, Rights(answer)):
                yield f"{mapping}: the driver answers {answer!s}"


def _differ(mapping: Mapping, rights: Rights) -> bool:
    """Whether the driver's rights are others, where we say that we know them."""
    known = not mapping.quarantined and mapping.rights is not Rights.UNKNOWN
    return known and rights is not mapping.rights
