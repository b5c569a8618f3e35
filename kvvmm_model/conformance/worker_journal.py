"""What a worker was doing when it ended: written down before each step, read by its parent.

Two files in one directory.  ``journal`` has a line for each sequence that begins and one for each
step, before the step; the kernel keeps what was written when the process dies.  ``call`` has one
byte in shared memory: the driver call that is being made.
"""

import json
import os
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from typing import Any, cast

from attrs import evolve, field, frozen

from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import OPERATIONS, Operation, name_of
from kvvmm_model.sequence import NAN, NO_FAULTS, Sequence, Step, World
from kvvmm_model.trace import dump, load, with_retries

__all__ = ["CALL", "JOURNAL", "Interrupted", "Journal", "begun", "interrupted"]

JOURNAL = "journal"
CALL = "call"

_FULL_BYTES = 4 << 20
"""A journal longer than this begins afresh with the next sequence: only the last one matters."""

_KINDS = tuple(Kind)


class Journal:
    """The worker's end.  Nothing is flushed to the disk itself: it is processes that die here."""

    def __init__(self, directory: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(directory / JOURNAL, flags, 0o600)
        self._size = 0
        with (directory / CALL).open("w+b") as file:
            _ = file.write(b"\0")
            file.flush()
            self._call = mmap(file.fileno(), 1)
        self._numbers = {kind: number for number, kind in enumerate(_KINDS, start=1)}

    def sequence(self, world: World, number: int, planted: str) -> None:
        """A sequence begins, in this world."""
        if self._size > _FULL_BYTES:
            os.ftruncate(self._file, 0)
            self._size = 0
        head = json.dumps({"number": number, "planted": planted})[:-1]
        empty = dump(Sequence(world, ())).replace("\n", "")
        self._write(f'{head}, "sequence": {empty}}}')

    def step(self, operation: Operation, faults: FaultPlan) -> None:
        """This operation comes now, with these faults planned."""
        entry: list[object] = [name_of(operation)]
        entry += [getattr(operation, name) for name in operation.__match_args__]
        specs = faults.specs
        self._write(_text([entry, [_spec_out(spec) for spec in specs]] if specs else entry))

    def call(self, kind: Kind) -> None:
        """This driver call is being made."""
        self._call[0] = self._numbers[kind]

    def answered(self) -> None:
        """The driver call has come back."""
        self._call[0] = 0

    def _write(self, line: str) -> None:
        self._size += os.write(self._file, line.encode() + b"\n")


_text = json.JSONEncoder(check_circular=False).encode
# An enumeration's ``value`` takes longer than all the rest of a planned fault.
_KIND_NAMES = {kind: kind.value for kind in Kind}
_MANNER_NAMES = {manner: manner.value for manner in Manner}


def _spec_out(spec: FaultSpec) -> list[object]:
    kind, manner = _KIND_NAMES[spec.step], _MANNER_NAMES[spec.manner]
    return [kind, manner, int(spec.code), spec.nth, spec.part, spec.lasting]


# --- the parent's end ---------------------------------------------------------------------------


@frozen
class Interrupted:
    """What a journal says: the sequence as far as it came, its last step begun and not ended.

    ``call``: the driver call that was being made, if one was.
    """

    sequence: Sequence
    number: int
    planted: str
    call: Kind | None = None
    text: str = field(default="", repr=False)


def interrupted(directory: Path) -> Interrupted | None:
    """The last sequence of a journal; None if there was none with a step."""
    path = directory / JOURNAL
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    first = max((n for n, line in enumerate(lines) if line.startswith(b"{")), default=None)
    if first is None or first + 1 == len(lines):
        return None
    head = cast("dict[str, Any]", json.loads(lines[first]))
    began = load(json.dumps(head["sequence"]))
    steps = tuple(_step_in(line) for line in lines[first + 1 :])
    text = b"\n".join(lines[first:]).decode() + "\n"
    sequence = with_retries(evolve(began, steps=steps))
    return Interrupted(sequence, head["number"], head["planted"], _call(directory), text)


def begun(directory: Path) -> tuple[int, str] | None:
    """Number and planted bug of the last sequence that began, with or without a step."""
    path = directory / JOURNAL
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    heads = [line for line in lines if line.startswith(b"{")]
    if not heads:
        return None
    head = cast("dict[str, Any]", json.loads(heads[-1]))
    return head["number"], head["planted"]


def _call(directory: Path) -> Kind | None:
    path = directory / CALL
    number = path.read_bytes()[0] if path.exists() else 0
    return _KINDS[number - 1] if number else None


def _step_in(line: bytes) -> Step:
    entry = cast("list[Any]", json.loads(line, parse_constant=lambda _: NAN))
    if isinstance(entry[0], str):
        return Step(_operation(entry), NO_FAULTS)
    return Step(_operation(entry[0]), FaultPlan(tuple(_spec_in(spec) for spec in entry[1])))


def _operation(entry: list[Any]) -> Operation:
    kind = cast("Callable[..., Operation]", OPERATIONS[entry[0]])
    return kind(*(_argument(value) for value in entry[1:]))


def _argument(value: Any) -> object:
    """A group of targets or parents was written as a list of lists."""
    if not isinstance(value, list):
        return cast("object", value)
    return tuple(tuple(each) for each in cast("list[list[object]]", value))


def _spec_in(entry: list[Any]) -> FaultSpec:
    kind, manner, code, nth, part, lasting = entry
    return FaultSpec(Kind(kind), Manner(manner), code, nth, part, lasting)
