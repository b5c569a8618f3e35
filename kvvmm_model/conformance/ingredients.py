"""What random sequences are made of: fault points, faults, bad arguments, habits."""

from attrs import frozen

from kvvmm_model.codes import STICKY
from kvvmm_model.codes import Step as Kind
from kvvmm_model.faulting import Manner, all_specs
from kvvmm_model.machine import OPERATIONS
from kvvmm_model.sequence import NAN

FAULT_POINTS: dict[str, tuple[Kind, ...]] = {
    "reserve": (Kind.ADDRESS_RESERVE,),
    "commit": (
        Kind.RELEASE,
        Kind.CREATE,
        Kind.MAP,
        Kind.QUERY,
        Kind.SET_ACCESS,
        Kind.UNMAP,
    ),
    "release": (Kind.FENCE, Kind.CLEAR, Kind.UNMAP, Kind.QUERY, Kind.RELEASE),
    "close": (
        Kind.FENCE,
        Kind.CLEAR,
        Kind.UNMAP,
        Kind.QUERY,
        Kind.RELEASE,
        Kind.ADDRESS_FREE,
    ),
    "publish": (),
    "seal": (Kind.FENCE, Kind.SET_ACCESS),
    "attach": (Kind.MAP, Kind.QUERY, Kind.SET_ACCESS, Kind.UNMAP),
    "retire": (Kind.RELEASE,),
    "fork": (
        Kind.RELEASE,
        Kind.ADDRESS_RESERVE,
        Kind.FENCE,
        Kind.MAP,
        Kind.QUERY,
        Kind.SET_ACCESS,
        Kind.CREATE,
        Kind.COPY,
        Kind.UNMAP,
        Kind.ADDRESS_FREE,
    ),
    "trim": (Kind.RELEASE,),
    "reclaim": (
        Kind.FENCE,
        Kind.QUERY,
        Kind.UNMAP,
        Kind.RELEASE,
        Kind.ADDRESS_FREE,
    ),
    "set_limit": (),
}
"""The kinds of driver call that each operation can make."""

INJECTABLE: dict[Kind, tuple[tuple[Manner, int], ...]] = {
    kind: tuple(pair for pair in all_specs(kind) if pair[1] not in STICKY) for kind in Kind
}
STICKY_PAIRS: dict[Kind, tuple[tuple[Manner, int], ...]] = {
    kind: tuple(pair for pair in all_specs(kind) if pair[1] in STICKY) for kind in Kind
}
BAD: tuple[object, ...] = (-1, 0, 1 << 70, True, None, 1.5, "4096", NAN)
"""Arguments that no operation takes."""


UNDOING: dict[str, tuple[Kind, ...]] = {
    "commit": (Kind.QUERY, Kind.UNMAP, Kind.RELEASE),
    "attach": (Kind.QUERY, Kind.UNMAP),
    "fork": (Kind.QUERY, Kind.UNMAP, Kind.RELEASE, Kind.ADDRESS_FREE),
}


def forward(name: str) -> tuple[Kind, ...]:
    """The calls that an operation makes while nothing has failed yet."""
    undoing = UNDOING.get(name, (Kind.QUERY,))
    return tuple(kind for kind in FAULT_POINTS[name] if kind not in undoing)


@frozen
class Habit:
    """How one sequence behaves: its mixture of operations, by name, and its rates."""

    names: tuple[str, ...]
    weights: tuple[int, ...]
    fault_rate: float
    bad_rate: float
    sticky_rate: float
    reservations: int
    longest: int


SHARING = ("publish", "seal", "attach", "retire", "fork")
ALONE = tuple(name for name in OPERATIONS if name not in SHARING)
