"""The driver calls of one operation, with the rule for faults that holds in all of them.

Every fault is kept, in order: the first is the outcome's, the others are attached.  After a
sticky code the driver is not called any more.  The operation's own unwinding still runs, but
nothing that it asks for can be confirmed, so that all it cannot confirm ends in quarantine, which
is just what has to happen (D-19).
"""

from kvvmm_model.state import State, Transition, observe
from kvvmm_model.vocabulary import Done, Driver, Failed, Fault, Rights, Step


class Calls:
    """A driver, for one operation: remembers faults, and goes silent after a sticky one."""

    def __init__(self, driver: Driver) -> None:
        """No call is made yet."""
        self._driver = driver
        self.faults: list[Fault] = []
        self.lost = False

    def _seen(self, fault: Fault) -> Fault:
        self.faults.append(fault)
        self.lost = self.lost or fault.sticky
        return fault

    def _silent(self, step: Step) -> Fault:
        """What stands for the answer of a call that is not made any more."""
        return Fault(step, self.faults[-1].code)

    def overcome(self, fault: Fault) -> None:
        """A fault that the operation got round is no fault of its outcome."""
        self.faults.remove(fault)

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """The address, or the fault."""
        answer = self._driver.address_reserve(size_bytes, alignment_bytes)
        return self._seen(answer) if isinstance(answer, Fault) else answer

    def create(self, size_bytes: int) -> int | Fault:
        """The handle's value, or the fault."""
        if self.lost:
            return self._silent(Step.CREATE)
        answer = self._driver.create(size_bytes)
        return self._seen(answer) if isinstance(answer, Fault) else answer

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """None when it is mapped."""
        if self.lost:
            return self._silent(Step.MAP)
        fault = self._driver.map(address, size_bytes, handle)
        return fault if fault is None else self._seen(fault)

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """None when the rights were given."""
        if self.lost:
            return self._silent(Step.SET_ACCESS)
        fault = self._driver.set_access(address, size_bytes, rights)
        return fault if fault is None else self._seen(fault)

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """None when the clear is under way."""
        if self.lost:
            return self._silent(Step.CLEAR)
        fault = self._driver.clear(address, size_bytes)
        return fault if fault is None else self._seen(fault)

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """None when the copy is under way."""
        if self.lost:
            return self._silent(Step.COPY)
        fault = self._driver.copy(target, source, size_bytes)
        return fault if fault is None else self._seen(fault)

    def fence(self) -> Fault | None:
        """None when the device is done."""
        if self.lost:
            return self._silent(Step.FENCE)
        fault = self._driver.fence()
        return fault if fault is None else self._seen(fault)

    def release(self, handle: int) -> Fault | None:
        """None when the handle is given back."""
        if self.lost:
            return self._silent(Step.RELEASE)
        fault = self._driver.release(handle)
        return fault if fault is None else self._seen(fault)

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """None when the range is given back."""
        if self.lost:
            return self._silent(Step.ADDRESS_FREE)
        fault = self._driver.address_free(address, size_bytes)
        return fault if fault is None else self._seen(fault)

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """None when all of the run is unmapped."""
        if self.lost:
            return self._silent(Step.UNMAP)
        fault = self._driver.unmap(address, size_bytes)
        return fault if fault is None else self._seen(fault)

    def is_mapped(self, address: int) -> bool | None:
        """Ask the driver (D-25); None when the question stays open."""
        if self.lost:
            return None
        answer = self._driver.query(address)
        if isinstance(answer, Fault):
            _ = self._seen(answer)
            return None
        return answer is not None

    def conclude(self, before: State, after: State, value: object = None) -> Transition:
        """The transition: ``Done(value)`` where no call failed, else ``Failed``."""
        if not self.faults:
            return Transition(after, Done(value))
        residue = observe(after).since(observe(before))
        if self.lost:
            sticky = next(fault for fault in self.faults if fault.sticky)
            after = after.device_lost(sticky.code)
        return Transition(after, Failed(self.faults[0], residue, tuple(self.faults[1:])))
