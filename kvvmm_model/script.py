"""A driver that answers from a list: with it, an operation has finitely many outcomes."""

from collections.abc import Iterable

from kvvmm_model.vocabulary import Fault, Rights, Step

Answer = int | Rights | None | Fault


class ScriptEnded(Exception):
    """The operation asked for more than the script holds; ``step`` is what it asked for."""

    def __init__(self, step: Step) -> None:
        super().__init__(f"the script has no answer left for {step.value}")
        self.step = step


class Script:
    """Answers in order; ``calls`` tells what was asked.

    Where no answer is left, ``ScriptEnded`` names the call, so that a caller can go through every
    answer to it in turn.
    """

    def __init__(self, answers: Iterable[Answer], granularity_bytes: int = 1) -> None:
        self._answers = iter(answers)
        self.granularity_bytes = granularity_bytes
        self.calls: list[tuple[Step, tuple[int, ...]]] = []

    def _answer(self, step: Step, *arguments: int) -> Answer:
        for answer in self._answers:
            self.calls.append((step, arguments))
            return answer
        raise ScriptEnded(step)

    def _value(self, step: Step, *arguments: int) -> int | Fault:
        answer = self._answer(step, *arguments)
        assert answer is not None, f"{step.value} is answered by a number or a fault"
        return answer

    def _fault(self, step: Step, *arguments: int) -> Fault | None:
        answer = self._answer(step, *arguments)
        assert answer is None or isinstance(answer, Fault), f"{step.value}: {answer!r}"
        return answer

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """An address."""
        return self._value(Step.ADDRESS_RESERVE, size_bytes, alignment_bytes)

    def create(self, size_bytes: int) -> int | Fault:
        """A handle value."""
        return self._value(Step.CREATE, size_bytes)

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.MAP, address, size_bytes, handle)

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.SET_ACCESS, address, size_bytes, rights)

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.CLEAR, address, size_bytes)

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.UNMAP, address, size_bytes)

    def release(self, handle: int) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.RELEASE, handle)

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.ADDRESS_FREE, address, size_bytes)

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.COPY, target, source, size_bytes)

    def fence(self) -> Fault | None:
        """None, or a fault."""
        return self._fault(Step.FENCE)

    def query(self, address: int) -> Rights | None | Fault:
        """Rights, None for what is not mapped, or a fault."""
        answer = self._answer(Step.QUERY, address)
        assert answer is None or isinstance(answer, Rights | Fault), f"query: {answer!r}"
        return answer
