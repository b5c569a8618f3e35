"""What a driver call's answer says about its effect, as data.

A call that reports an error may have done its work all the same.  Which codes allow which
conclusion is written here once, for the model, the backend and the fault injector.

Numbers and names are those of ``CUresult`` (CUDA driver API, enumeration of error codes).
"""

from enum import Enum, IntEnum

from attrs import frozen


class Step(Enum):
    """A kind of driver call."""

    ADDRESS_RESERVE = "address_reserve"
    CREATE = "create"
    MAP = "map"
    SET_ACCESS = "set_access"
    CLEAR = "clear"
    UNMAP = "unmap"
    RELEASE = "release"
    ADDRESS_FREE = "address_free"
    FENCE = "fence"
    QUERY = "query"
    COPY = "copy"

    __hash__ = object.__hash__  # members are singletons; the default hashes the name each time


class Code(IntEnum):
    """The result codes that the documentation lists for these calls, or that were observed."""

    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    DEINITIALIZED = 4
    INVALID_DEVICE = 101
    INVALID_CONTEXT = 201
    ECC_UNCORRECTABLE = 214
    PEER_ACCESS_UNSUPPORTED = 217
    CONTAINED = 226
    INVALID_HANDLE = 400
    ILLEGAL_ADDRESS = 700
    LAUNCH_TIMEOUT = 702
    CONTEXT_IS_DESTROYED = 709
    ASSERT = 710
    HARDWARE_STACK_ERROR = 714
    ILLEGAL_INSTRUCTION = 715
    MISALIGNED_ADDRESS = 716
    INVALID_ADDRESS_SPACE = 717
    INVALID_PC = 718
    LAUNCH_FAILED = 719
    TENSOR_MEMORY_LEAK = 721
    NOT_PERMITTED = 800
    NOT_SUPPORTED = 801
    STREAM_CAPTURE_UNSUPPORTED = 900
    STREAM_CAPTURE_IMPLICIT = 906
    EXTERNAL_DEVICE = 911
    UNKNOWN = 999


STICKY: frozenset[int] = frozenset(
    {
        Code.CONTAINED,
        Code.ILLEGAL_ADDRESS,
        Code.LAUNCH_TIMEOUT,
        Code.ASSERT,
        Code.HARDWARE_STACK_ERROR,
        Code.ILLEGAL_INSTRUCTION,
        Code.MISALIGNED_ADDRESS,
        Code.INVALID_ADDRESS_SPACE,
        Code.INVALID_PC,
        Code.LAUNCH_FAILED,
        Code.TENSOR_MEMORY_LEAK,
        Code.EXTERNAL_DEVICE,
    }
)
"""Codes after which the process must end: the documentation says of each that the process or
its context cannot be used any more, and D-19 measured it for ILLEGAL_ADDRESS."""


@frozen
class CodesOf:
    """The codes of one kind of call.

    ``answers``: codes that are not errors but what was asked for.
    ``rules_out``: codes after which the call certainly had no effect.
    ``unknown``: codes worth injecting that leave the effect open.  A code that stands nowhere
    leaves it open too.
    """

    unknown: tuple[int, ...]
    rules_out: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()


_ANY_CALL = (Code.UNKNOWN, Code.DEINITIALIZED)  # of earlier asynchronous work, or at exit

CODES: dict[Step, CodesOf] = {
    # D-1, D-2: both refuse before anything is reserved.
    Step.ADDRESS_RESERVE: CodesOf(
        rules_out=(Code.OUT_OF_MEMORY, Code.INVALID_VALUE),
        unknown=(*_ANY_CALL, Code.NOT_PERMITTED),
    ),
    # D-5: neither takes memory, and neither is sticky.
    Step.CREATE: CodesOf(
        rules_out=(Code.OUT_OF_MEMORY, Code.INVALID_VALUE),
        unknown=(*_ANY_CALL, Code.INVALID_DEVICE, Code.NOT_PERMITTED),
    ),
    Step.MAP: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_VALUE, Code.OUT_OF_MEMORY)),
    # OUT_OF_MEMORY was seen on WDDM, 217 on pairs of devices without a peer link.
    Step.SET_ACCESS: CodesOf(
        unknown=(
            *_ANY_CALL,
            Code.INVALID_VALUE,
            Code.INVALID_DEVICE,
            Code.NOT_SUPPORTED,
            Code.OUT_OF_MEMORY,
            Code.PEER_ACCESS_UNSUPPORTED,
        )
    ),
    Step.CLEAR: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_VALUE, Code.INVALID_CONTEXT)),
    Step.UNMAP: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_VALUE, Code.NOT_PERMITTED)),
    Step.RELEASE: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_VALUE)),
    Step.ADDRESS_FREE: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_VALUE)),
    Step.FENCE: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_CONTEXT)),
    # D-25: INVALID_VALUE says "not mapped".
    Step.QUERY: CodesOf(
        unknown=(*_ANY_CALL, Code.NOT_INITIALIZED),
        answers=(Code.INVALID_VALUE,),
    ),
    Step.COPY: CodesOf(unknown=(*_ANY_CALL, Code.INVALID_VALUE, Code.INVALID_CONTEXT)),
}


def code_name(code: int) -> str:
    """The code as the documentation spells it, or ``code N`` for one not listed here."""
    try:
        return Code(code).name
    except ValueError:
        return f"code {code}"
