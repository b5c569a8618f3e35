"""Sequences as text; what ``parsing`` reads back is the same sequence."""

from kvvmm_model.codes import code_name
from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.language.words import show_amount, show_bytes
from kvvmm_model.machine import (
    Attach,
    Close,
    Commit,
    Fork,
    Operation,
    Publish,
    Reclaim,
    Release,
    Reserve,
    Retire,
    Seal,
    SetLimit,
    Trim,
    name_of,
)
from kvvmm_model.sequence import Sequence, Step, World
from kvvmm_model.vocabulary import Code


def show(sequence: Sequence) -> str:
    """The whole sequence, a line a step, the world first."""
    unit = sequence.world.settings.granularity_bytes
    lines = [show_world(sequence.world), *(show_step(step, unit) for step in sequence.steps)]
    return "\n".join(lines) + "\n"


def show_world(world: World) -> str:
    """Its settings, all of them."""
    settings = world.settings
    return (
        f"world granularity={show_bytes(settings.granularity_bytes)}"
        f" policy={settings.policy.value} longest_run={settings.longest_run}"
        f" retention={settings.retention} clear_pooled={'yes' if settings.clear_pooled else 'no'}"
        f" limit={world.limit} capacity={world.capacity}"
    )


def show_step(step: Step, unit: int) -> str:
    """The faults and then the operation that they belong to, on one line."""
    faults = [show_fault(spec) for spec in step.faults.specs]
    return "; ".join([*faults, show_operation(step.operation, unit)])


def show_fault(spec: FaultSpec) -> str:
    """A planned fault."""
    words = ["fault", spec.step.value]
    if spec.nth != 1:
        words.append(str(spec.nth))
    words.append(code_name(spec.code) if spec.code in set(Code) else f"code={int(spec.code)}")
    match spec.manner:
        case Manner.WITHOUT_EFFECT:
            pass
        case Manner.WITH_EFFECT:
            words.append("effect")
        case Manner.IN_PART:
            words.append(f"part={spec.part}")
    return " ".join([*words, "lasting"] if spec.lasting else words)


def show_operation(operation: Operation, unit: int) -> str:
    """An operation with its arguments."""
    name = name_of(operation)
    match operation:
        case Reserve(size, alignment):
            aligned = "" if _is_zero(alignment) else f" align {show_amount(alignment, unit)}"
            return f"{name} {show_amount(size, unit)}{aligned}"
        case Commit(reservation, offset, size) | Release(reservation, offset, size):
            return f"{name} {_reference(reservation)} {_span(offset, size, unit)}"
        case Close(reservation):
            return f"{name} {_reference(reservation)}"
        case Reclaim(None):
            return name
        case Reclaim(reservation):
            return f"{name} {_reference(reservation)}"
        case Publish(reservation, size):
            return f"{name} {_reference(reservation)} {show_amount(size, unit)}"
        case Seal(prefix) | Retire(prefix):
            return f"{name} {_reference(prefix, 'p')}"
        case Attach(targets):
            shown = (
                f"{_reference(reservation)} {_reference(prefix, 'p')} {show_amount(offset, unit)}"
                for reservation, prefix, offset in targets
            )
            return f"{name} {' and '.join(shown) or 'nothing'}"
        case Fork(parents):
            shown = (f"{_reference(r)} {show_amount(length, unit)}" for r, length in parents)
            return f"{name} {' and '.join(shown) or 'nothing'}"
        case Trim(size) | SetLimit(size):
            return f"{name} {show_amount(size, unit)}"


def _is_zero(value: object) -> bool:
    return type(value) is int and value == 0


def _reference(serial: object, letter: str = "r") -> str:
    if type(serial) is int and serial >= 0:
        return f"{letter}{serial}"
    return f"{letter}={show_amount(serial, 1)}"


def _span(offset: object, size: object, unit: int) -> str:
    if type(offset) is int and type(size) is int and offset >= 0 and size >= 0:
        return f"{show_amount(offset, unit)}..{show_amount(offset + size, unit)}"
    return f"at {show_amount(offset, unit)} size {show_amount(size, unit)}"
