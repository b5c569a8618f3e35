"""Planted bugs: a comparison that does not find them proves nothing about what it did not find.

Each makes a throw-away subject out of a good one, either by lying between manager and driver or by
lying about the result.  Before a run's verdict counts, one of them must be caught.
"""

from collections.abc import Callable

from attrs import evolve, frozen

from kvvmm_model.conformance.subject import MakeSubject, Subject
from kvvmm_model.machine import Commit, Operation, Release
from kvvmm_model.vocabulary import (
    Done,
    Driver,
    Failed,
    Fault,
    Observation,
    Outcome,
    Residue,
    Rights,
    Settings,
)


class _Between:
    """A driver that hands everything on; the bugs below change one call."""

    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        self.granularity_bytes = inner.granularity_bytes

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        return self._inner.address_reserve(size_bytes, alignment_bytes)

    def create(self, size_bytes: int) -> int | Fault:
        return self._inner.create(size_bytes)

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        return self._inner.map(address, size_bytes, handle)

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        return self._inner.set_access(address, size_bytes, rights)

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        return self._inner.clear(address, size_bytes)

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        return self._inner.unmap(address, size_bytes)

    def release(self, handle: int) -> Fault | None:
        return self._inner.release(handle)

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        return self._inner.address_free(address, size_bytes)

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        return self._inner.copy(target, source, size_bytes)

    def fence(self) -> Fault | None:
        return self._inner.fence()

    def query(self, address: int) -> Rights | None | Fault:
        return self._inner.query(address)


class _NeverFences(_Between):
    def fence(self) -> Fault | None:
        return None


class _NeverClears(_Between):
    def clear(self, address: int, size_bytes: int) -> Fault | None:
        _ = address, size_bytes
        return None


class _TakesSilenceForNotMapped(_Between):
    def query(self, address: int) -> Rights | None | Fault:
        answer = self._inner.query(address)
        return None if isinstance(answer, Fault) else answer


class _ReleasesAgain(_Between):
    def release(self, handle: int) -> Fault | None:
        fault = self._inner.release(handle)
        return fault if fault is None else self._inner.release(handle)


class _IgnoresRights(_Between):
    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        _ = self._inner.set_access(address, size_bytes, rights)
        return None


class _Lying:
    """A subject that hands everything on; the bugs below change what it says."""

    def __init__(self, inner: Subject) -> None:
        self._inner = inner

    def apply(self, operation: Operation) -> Outcome:
        return self._inner.apply(operation)

    def observe(self) -> Observation:
        return self._inner.observe()


class _ForgetsQuarantinedCharges(_Lying):
    def observe(self) -> Observation:
        seen = self._inner.observe()
        charged = seen.ledger.charged - seen.ledger.quarantined
        return evolve(seen, ledger=seen.ledger._replace(charged=charged))


class _SaysNothingChanged(_Lying):
    def apply(self, operation: Operation) -> Outcome:
        outcome = self._inner.apply(operation)
        return evolve(outcome, residue=Residue()) if isinstance(outcome, Failed) else outcome


class _SaysDoneAfterAFailedRelease(_Lying):
    def apply(self, operation: Operation) -> Outcome:
        outcome = self._inner.apply(operation)
        hidden = isinstance(operation, Release) and isinstance(outcome, Failed)
        return Done() if hidden else outcome


class _CommitsOneWindowTooMany(_Lying):
    def __init__(self, inner: Subject, granule: int) -> None:
        super().__init__(inner)
        self._granule = granule

    def apply(self, operation: Operation) -> Outcome:
        match operation:
            case Commit(reservation, offset, int() as size) if type(size) is int and size > 0:
                return self._inner.apply(Commit(reservation, offset, size + self._granule))
            case _:
                return self._inner.apply(operation)


@frozen
class Canary:
    """A planted bug: what it does wrong, and how to make a subject that has it."""

    name: str
    plant: Callable[[MakeSubject], MakeSubject]


def _between(wrap: Callable[[Driver], Driver]) -> Callable[[MakeSubject], MakeSubject]:
    def plant(make: MakeSubject) -> MakeSubject:
        def made(driver: Driver, settings: Settings, limit_bytes: int) -> Subject:
            return make(wrap(driver), settings, limit_bytes)

        return made

    return plant


def _lying(wrap: Callable[[Subject, int], Subject]) -> Callable[[MakeSubject], MakeSubject]:
    def plant(make: MakeSubject) -> MakeSubject:
        def made(driver: Driver, settings: Settings, limit_bytes: int) -> Subject:
            return wrap(make(driver, settings, limit_bytes), settings.granularity_bytes)

        return made

    return plant


_WITH_FAULTS = (
    Canary("takes an unanswered query for not mapped", _between(_TakesSilenceForNotMapped)),
    Canary("repeats a release that failed", _between(_ReleasesAgain)),
    Canary("ignores a fault of set_access", _between(_IgnoresRights)),
    Canary("shows quarantined handles as free", _lying(lambda s, _: _ForgetsQuarantinedCharges(s))),
    Canary("says that a failure changed nothing", _lying(lambda s, _: _SaysNothingChanged(s))),
    Canary(
        "says done after a release that failed",
        _lying(lambda s, _: _SaysDoneAfterAFailedRelease(s)),
    ),
)
_ALWAYS = (
    Canary("unmaps without a fence", _between(_NeverFences)),
    Canary("pools memory without clearing it", _between(_NeverClears)),
    Canary("commits one window too many", _lying(_CommitsOneWindowTooMany)),
)


def canaries(*, faults: bool) -> tuple[Canary, ...]:
    """Those that a run can catch: some show themselves only when a call fails."""
    return (*_ALWAYS, *_WITH_FAULTS) if faults else _ALWAYS
