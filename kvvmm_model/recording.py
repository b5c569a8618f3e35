"""A wrapper that writes down every driver call with its answer."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from math import gcd
from time import perf_counter_ns
from typing import Literal, NamedTuple

from kvvmm_model.vocabulary import Driver, Fault, Rights, Step

__all__ = ["Call", "CallNames", "RecordingDriver", "describe_calls"]


class Call(NamedTuple):
    """One driver call: its arguments as the protocol orders them, in bytes, and the answer."""

    step: Step
    arguments: tuple[int, ...]
    answer: int | Rights | Fault | None


class RecordingDriver:
    """Implements ``Driver`` over another one.

    ``calls``: since the last ``take``.  ``counts``: by step, since the beginning.  ``durations``:
    by step, nanoseconds around each inner call; stays empty unless ``timed``.  A call that raises
    is not written down.  Calls of several threads are all kept, in the order they came back;
    ``counts`` may then fall short.
    """

    def __init__(self, inner: Driver, *, timed: bool = False) -> None:
        self.calls: list[Call] = []
        self.counts: dict[Step, int] = dict.fromkeys(Step, 0)
        self.durations: dict[Step, list[int]] = {step: [] for step in Step} if timed else {}
        self._inner = inner
        self._timed = timed

    def take(self) -> list[Call]:
        """The calls since the last time, and start afresh."""
        calls, self.calls = self.calls, []
        return calls

    def _note(
        self,
        started: int,
        step: Step,
        arguments: tuple[int, ...],
        answer: int | Rights | Fault | None,
    ) -> None:
        if self._timed:
            self.durations[step].append(perf_counter_ns() - started)
        self.calls.append(Call(step, arguments, answer))
        self.counts[step] += 1

    @property
    def granularity_bytes(self) -> int:
        """The inner driver's; not a call."""
        return self._inner.granularity_bytes

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.address_reserve(size_bytes, alignment_bytes)
        self._note(started, Step.ADDRESS_RESERVE, (size_bytes, alignment_bytes), answer)
        return answer

    def create(self, size_bytes: int) -> int | Fault:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.create(size_bytes)
        self._note(started, Step.CREATE, (size_bytes,), answer)
        return answer

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.map(address, size_bytes, handle)
        self._note(started, Step.MAP, (address, size_bytes, handle), answer)
        return answer

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.set_access(address, size_bytes, rights)
        self._note(started, Step.SET_ACCESS, (address, size_bytes, rights), answer)
        return answer

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.clear(address, size_bytes)
        self._note(started, Step.CLEAR, (address, size_bytes), answer)
        return answer

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.unmap(address, size_bytes)
        self._note(started, Step.UNMAP, (address, size_bytes), answer)
        return answer

    def release(self, handle: int) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.release(handle)
        self._note(started, Step.RELEASE, (handle,), answer)
        return answer

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.address_free(address, size_bytes)
        self._note(started, Step.ADDRESS_FREE, (address, size_bytes), answer)
        return answer

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.copy(target, source, size_bytes)
        self._note(started, Step.COPY, (target, source, size_bytes), answer)
        return answer

    def fence(self) -> Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.fence()
        self._note(started, Step.FENCE, (), answer)
        return answer

    def query(self, address: int) -> Rights | Fault | None:
        """As the inner driver."""
        started = perf_counter_ns()
        answer = self._inner.query(address)
        self._note(started, Step.QUERY, (address,), answer)
        return answer


# --- calls as people read them -----------------------------------------------------------------


_Kind = Literal["address", "size", "alignment", "handle", "rights"]

_KINDS: dict[Step, tuple[_Kind, ...]] = {
    Step.ADDRESS_RESERVE: ("size", "alignment"),
    Step.CREATE: ("size",),
    Step.MAP: ("address", "size", "handle"),
    Step.SET_ACCESS: ("address", "size", "rights"),
    Step.CLEAR: ("address", "size"),
    Step.UNMAP: ("address", "size"),
    Step.RELEASE: ("handle",),
    Step.ADDRESS_FREE: ("address", "size"),
    Step.FENCE: (),
    Step.QUERY: ("address",),
    Step.COPY: ("address", "address", "size"),
}


class _Place(NamedTuple):
    """An address range that has a name."""

    name: str
    start: int
    end: int


class CallNames:
    """Names for addresses and handles by the order they were first seen.

    Two runs that do the same read the same, whatever values their drivers gave.  A value handed
    out again is a new thing with a new name (D-9).  What was reserved or created before the first
    call described here is an ``address3`` instead of a ``range3``.
    """

    def __init__(self, granularity_bytes: int) -> None:
        self._granularity = granularity_bytes
        self._places: list[_Place] = []  # oldest first
        self._place_count = 0
        self._handles: dict[int, str] = {}
        self._handle_count = 0

    def know(self, ranges: Mapping[int, tuple[int, int]], handles: Mapping[int, int]) -> None:
        """What was there before the first call: start and end, or value, by serial.

        Names are numbered by serial then, and go on from the highest.
        """
        for serial, (start, end) in ranges.items():
            self._places.append(_Place(f"range{serial}", start, end))
        self._handles.update({value: f"handle{serial}" for serial, value in handles.items()})
        self._place_count = max((*ranges, self._place_count))
        self._handle_count = max((*handles, self._handle_count))

    def describe(self, call: Call) -> str:
        """One line, as ``map(range1+2g, 1g, handle3) -> ok``."""
        answer = call.answer
        if call.step is Step.ADDRESS_RESERVE and not isinstance(answer, Fault | None):
            self._forget(answer, answer + call.arguments[0])
            given = self._new_place(answer, call.arguments[0], reserved=True)
        elif call.step is Step.CREATE and not isinstance(answer, Fault | None):
            given = self._new_handle(answer)
        else:
            given = _answer_text(call)
        return f"{call.step.value}({', '.join(self._arguments(call))}) -> {given}"

    def _arguments(self, call: Call) -> Iterator[str]:
        kinds = _KINDS[call.step]
        size = call.arguments[kinds.index("size")] if "size" in kinds else self._granularity
        for kind, value in zip(kinds, call.arguments, strict=True):
            match kind:
                case "address":
                    yield self._address(value, size)
                case "size":
                    yield self._size(value)
                case "alignment":
                    if value:
                        yield f"aligned {self._size(value)}"
                case "handle":
                    yield self._handle(value)
                case "rights":
                    yield Rights(value).name

    def _size(self, size: int) -> str:
        granules, rest = divmod(size, self._granularity)
        return f"{size} bytes" if rest else f"{granules}g"

    def _address(self, address: int, size: int) -> str:
        for place in reversed(self._places):
            if place.start <= address < place.end:
                offset = address - place.start
                return f"{place.name}+{self._size(offset)}" if offset else place.name
        return self._new_place(address, size, reserved=False)

    def _new_place(self, start: int, size: int, *, reserved: bool) -> str:
        self._place_count += 1
        name = f"{'range' if reserved else 'address'}{self._place_count}"
        self._places.append(_Place(name, start, start + size))
        return name

    def _forget(self, start: int, end: int) -> None:
        """Names end when their addresses are handed out again, not when they are given back."""
        self._places = [p for p in self._places if p.end <= start or end <= p.start]

    def _handle(self, value: int) -> str:
        return self._handles.get(value) or self._new_handle(value)

    def _new_handle(self, value: int) -> str:
        self._handle_count += 1
        self._handles[value] = name = f"handle{self._handle_count}"
        return name


def _answer_text(call: Call) -> str:
    answer = call.answer
    if isinstance(answer, Fault):
        return answer.name
    if isinstance(answer, Rights):
        return answer.name
    if answer is None:
        return "not mapped" if call.step is Step.QUERY else "ok"
    return str(answer)


def describe_calls(calls: Iterable[Call], granularity_bytes: int | None = None) -> list[str]:
    """The calls as lines, with values named by identity (see ``CallNames``).

    Without a granularity, ``g`` is the largest unit that all sizes and distances are multiples of.
    """
    listed = list(calls)
    names = CallNames(granularity_bytes or _unit(listed))
    return [names.describe(call) for call in listed]


def _unit(calls: list[Call]) -> int:
    """The largest divisor of all sizes, and of all distances from a range's begin.

    But of a copy's size: it need not fill its last granule.
    """
    starts = sorted(
        call.answer
        for call in calls
        if call.step is Step.ADDRESS_RESERVE and isinstance(call.answer, int)
    )
    unit = 0
    for call in calls:
        for kind, value in zip(_KINDS[call.step], call.arguments, strict=True):
            if kind == "size" and call.step is not Step.COPY:
                unit = gcd(unit, value)
            elif kind == "address" and starts and value > starts[0]:
                unit = gcd(unit, value - starts[bisect_right(starts, value) - 1])
    return unit or 1
