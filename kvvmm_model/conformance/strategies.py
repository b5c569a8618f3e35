"""What the readable form draws: worlds, arguments and fault plans, as Hypothesis strategies."""

from collections.abc import Sequence

from attrs import frozen
from hypothesis import strategies as st

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.ingredients import (
    BAD,
    FAULT_POINTS,
    INJECTABLE,
    STICKY_PAIRS,
    forward,
)
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.sequence import NO_FAULTS, World
from kvvmm_model.vocabulary import Policy, Settings

LONGEST = 6
"""Windows of the largest reservation that is drawn."""


@st.composite
def _spec(draw: st.DrawFn, kinds: tuple[Kind, ...], *, lasting: bool | None = None) -> FaultSpec:
    kind = draw(st.sampled_from(kinds))
    rarely = draw(st.integers(0, 40)) == 40
    manner, code = draw(st.sampled_from((STICKY_PAIRS if rarely else INJECTABLE)[kind]))
    return FaultSpec(
        step=kind,
        manner=manner,
        code=code,
        nth=draw(st.sampled_from((1, 1, 2, 3))),
        part=draw(st.integers(0, 3)) if manner is Manner.IN_PART else 0,
        lasting=draw(st.booleans()) if lasting is None else lasting,
    )


def faults(name: str) -> st.SearchStrategy[FaultPlan]:
    """Plans for an operation's calls: none, one, or one with others that undoing it may meet."""
    kinds = FAULT_POINTS[name]
    if not kinds:
        return st.just(NO_FAULTS)
    first = _spec(forward(name))
    later = _spec(kinds, lasting=True)
    plans = st.one_of(
        st.tuples(first),
        st.tuples(first, later),
        st.tuples(first, later, later),
    )
    return st.one_of(st.just(NO_FAULTS), plans.map(FaultPlan))


def amounts(unit: int, longest: int = LONGEST) -> st.SearchStrategy[object]:
    """Bytes: mostly whole granules, sometimes not, rarely what nobody takes."""
    whole = st.integers(0, longest).map(lambda granules: granules * unit)
    ragged = st.integers(-1, longest * unit)
    return st.one_of(*[whole] * 6, ragged, ragged, st.sampled_from(BAD))


@st.composite
def ranges(draw: st.DrawFn, unit: int) -> tuple[object, object]:
    """Offset and size: mostly whole windows of a reservation of the usual size."""
    if draw(st.integers(0, 7)) == 7:
        return draw(amounts(unit)), draw(amounts(unit))
    first = draw(st.integers(0, LONGEST - 1))
    return first * unit, draw(st.integers(1, LONGEST - first)) * unit


@frozen
class Recent:
    """A reservation or a prefix by how recent it is, among those that should be there."""

    rank: int

    def among(self, serials: Sequence[int]) -> int:
        """Counted from the newest on; 0, which is none, among none."""
        return serials[-1 - self.rank % len(serials)] if serials else 0


SERIALS: st.SearchStrategy[object] = st.one_of(
    st.integers(0, 2).map(Recent),
    st.integers(0, 2).map(Recent),
    st.integers(0, 2).map(Recent),
    st.sampled_from((0, 1, 2, 7, None, True, "1")),
)


@st.composite
def lengths(draw: st.DrawFn, unit: int) -> object:
    """Bytes from the begin of a reservation: whole windows, or any number, or what nobody takes."""
    kind = draw(st.integers(0, 9))
    if kind == 9:
        return draw(amounts(unit))
    return draw(st.integers(1, LONGEST)) * unit - (
        draw(st.integers(0, unit - 1)) if kind > 4 else 0
    )


@st.composite
def worlds(draw: st.DrawFn, unit: int, most: int) -> World:
    """Settings, limit and capacity; at most ``most`` granules of memory."""
    limit = min(most, draw(st.sampled_from((12, 8, 6, 4, 2, 1))))
    drawn = Settings(
        unit,
        policy=draw(st.sampled_from(Policy)),
        longest_run=draw(st.integers(1, 5)),
        retention=draw(st.sampled_from((0, 1, 3, 8))),
        clear_pooled=draw(st.integers(0, 5)) > 0,
    )
    return World(drawn, limit, capacity=draw(st.integers(max(1, limit - 2), limit + 2)))
