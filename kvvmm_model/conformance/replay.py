"""The driver that the model sees: it answers what the manager's driver really answered."""

from collections.abc import Sequence
from typing import cast

from kvvmm_model.recording import Call
from kvvmm_model.vocabulary import Fault, Rights, Step


class CallsDiffer(Exception):
    """The model makes another driver call than the manager did.

    ``number``: which call of the operation, from 0.  ``wanted``: the model's, or None for no more.
    """

    def __init__(self, number: int, wanted: tuple[Step, tuple[int, ...]] | None) -> None:
        super().__init__(number, wanted)
        self.number = number
        self.wanted = wanted


class Replay:
    """Answers from recorded calls, and insists that the same calls are made in the same order."""

    def __init__(self, calls: Sequence[Call], granularity_bytes: int) -> None:
        self.granularity_bytes = granularity_bytes
        self._calls = calls
        self._next = 0

    def finish(self) -> None:
        """No recorded call is left over."""
        if self._next < len(self._calls):
            raise CallsDiffer(self._next, None)

    def _answer(self, step: Step, arguments: tuple[int, ...]) -> int | Rights | Fault | None:
        number = self._next
        if number < len(self._calls):
            call = self._calls[number]
            if call.step is step and call.arguments == arguments:
                self._next = number + 1
                return call.answer
        raise CallsDiffer(number, (step, arguments))

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """As recorded."""
        answer = self._answer(Step.ADDRESS_RESERVE, (size_bytes, alignment_bytes))
        return cast("int | Fault", answer)

    def create(self, size_bytes: int) -> int | Fault:
        """As recorded."""
        return cast("int | Fault", self._answer(Step.CREATE, (size_bytes,)))

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.MAP, (address, size_bytes, handle)))

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.SET_ACCESS, (address, size_bytes, rights)))

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.CLEAR, (address, size_bytes)))

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.UNMAP, (address, size_bytes)))

    def release(self, handle: int) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.RELEASE, (handle,)))

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.ADDRESS_FREE, (address, size_bytes)))

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.COPY, (target, source, size_bytes)))

    def fence(self) -> Fault | None:
        """As recorded."""
        return cast("Fault | None", self._answer(Step.FENCE, ()))

    def query(self, address: int) -> Rights | None | Fault:
        """As recorded."""
        return cast("Rights | None | Fault", self._answer(Step.QUERY, (address,)))
