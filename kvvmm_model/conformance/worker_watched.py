"""A subject whose every step and driver call is in a journal before it is made."""

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.subject import MakeSubject, Subject
from kvvmm_model.conformance.worker_journal import Journal
from kvvmm_model.faulting import FaultingDriver, FaultPlan
from kvvmm_model.machine import Operation
from kvvmm_model.recording import RecordingDriver
from kvvmm_model.sequence import NO_FAULTS
from kvvmm_model.vocabulary import Driver, Fault, Observation, Outcome, Rights, Settings

__all__ = ["watched"]


def watched(make: MakeSubject, journal: Journal) -> MakeSubject:
    """Makes the same subject, watched."""

    def made(driver: Driver, settings: Settings, limit_bytes: int) -> Subject:
        inner = make(_Watched(driver, journal), settings, limit_bytes)
        return _Journaled(inner, driver, journal)

    return made


class _Journaled:
    """Every operation of a comparison comes through here, whatever form made it up."""

    def __init__(self, inner: Subject, driver: Driver, journal: Journal) -> None:
        self._inner = inner
        self._driver = driver
        self._journal = journal

    def apply(self, operation: Operation) -> Outcome:
        self._journal.step(operation, _armed(self._driver))
        return self._inner.apply(operation)

    def observe(self) -> Observation:
        return self._inner.observe()


def _armed(driver: Driver) -> FaultPlan:
    """The plan that is in force, for the comparison arms it just before the operation."""
    faulting = driver._inner if isinstance(driver, RecordingDriver) else None  # pyright: ignore[reportPrivateUsage]
    plan = faulting._plan if isinstance(faulting, FaultingDriver) else {}  # pyright: ignore[reportPrivateUsage]
    if not plan:
        return NO_FAULTS
    return FaultPlan(tuple(spec for specs in plan.values() for spec in specs))


class _Watched:
    """A driver that hands everything on, and says which call is being made."""

    def __init__(self, inner: Driver, journal: Journal) -> None:
        self._inner = inner
        self._call = journal.call
        self._answered = journal.answered
        self.granularity_bytes = inner.granularity_bytes

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        self._call(Kind.ADDRESS_RESERVE)
        answer = self._inner.address_reserve(size_bytes, alignment_bytes)
        self._answered()
        return answer

    def create(self, size_bytes: int) -> int | Fault:
        self._call(Kind.CREATE)
        answer = self._inner.create(size_bytes)
        self._answered()
        return answer

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        self._call(Kind.MAP)
        answer = self._inner.map(address, size_bytes, handle)
        self._answered()
        return answer

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        self._call(Kind.SET_ACCESS)
        answer = self._inner.set_access(address, size_bytes, rights)
        self._answered()
        return answer

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        self._call(Kind.CLEAR)
        answer = self._inner.clear(address, size_bytes)
        self._answered()
        return answer

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        self._call(Kind.UNMAP)
        answer = self._inner.unmap(address, size_bytes)
        self._answered()
        return answer

    def release(self, handle: int) -> Fault | None:
        self._call(Kind.RELEASE)
        answer = self._inner.release(handle)
        self._answered()
        return answer

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        self._call(Kind.ADDRESS_FREE)
        answer = self._inner.address_free(address, size_bytes)
        self._answered()
        return answer

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        self._call(Kind.COPY)
        answer = self._inner.copy(target, source, size_bytes)
        self._answered()
        return answer

    def fence(self) -> Fault | None:
        self._call(Kind.FENCE)
        answer = self._inner.fence()
        self._answered()
        return answer

    def query(self, address: int) -> Rights | None | Fault:
        self._call(Kind.QUERY)
        answer = self._inner.query(address)
        self._answered()
        return answer
