"""The readable form: a Hypothesis state machine whose rules are the operations.

Every rule can always run, with any arguments, and draws nothing that depends on an answer, so that
shrinking is free to change what comes before.
"""

from collections.abc import Callable

from attrs import define, frozen
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType] - untyped there
)

from kvvmm_model.codes import Step as Kind
from kvvmm_model.conformance.comparison import Comparison, Divergence
from kvvmm_model.conformance.run import AFTER_LOSS, Note, OpenDriver, ignore
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.swarm import BAD, FAULT_POINTS, INJECTABLE, STICKY_PAIRS, forward
from kvvmm_model.faulting import FaultPlan, FaultSpec, Manner
from kvvmm_model.machine import (
    Close,
    Commit,
    Operation,
    Reclaim,
    Release,
    Reserve,
    SetLimit,
    Trim,
)
from kvvmm_model.sequence import NO_FAULTS, Sequence, Step, World
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
    """A reservation by how recent it is, among those that should be open."""

    rank: int


SERIALS: st.SearchStrategy[object] = st.one_of(
    st.integers(0, 2).map(Recent),
    st.integers(0, 2).map(Recent),
    st.integers(0, 2).map(Recent),
    st.sampled_from((0, 1, 2, 7, None, True, "1")),
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


@define
class Findings:
    """What a machine found: the last failing sequence is the one Hypothesis could not shorten."""

    last: tuple[Sequence, Divergence] | None = None


def machine(
    make: MakeSubject,
    open_driver: OpenDriver,
    unit: int,
    *,
    most: int = 12,
    with_faults: bool = True,
    timed: bool = False,
    note: Note = ignore,
    ended: Callable[[Comparison], None] = lambda _: None,
    findings: Findings | None = None,
) -> type[RuleBasedStateMachine]:
    """The machine for a subject.

    ``most``: granules of memory.  ``ended`` is told of each sequence that ended well.
    """
    kept = findings if findings is not None else Findings()

    sizes, spans = amounts(unit), ranges(unit)

    def plans(name: str) -> st.SearchStrategy[FaultPlan]:
        return faults(name) if with_faults else st.just(NO_FAULTS)

    plenty = st.just(most * unit)
    limits = st.one_of(plenty, plenty, plenty, amounts(unit, min(LONGEST, most)))

    class Machine(RuleBasedStateMachine):
        """One subject and the model, over one driver."""

        def __init__(self) -> None:
            super().__init__()
            self.comparison: Comparison | None = None
            self.drawn: World | None = None
            self.steps: list[Step] = []
            self.after_loss = 0
            self.issued = 0
            self.expected: list[object] = []
            self.failed = False

        @initialize(world=worlds(unit, most), backed=st.lists(st.integers(0, LONGEST), max_size=3))
        def begin(self, world: World, backed: list[int]) -> None:
            """Open the world, mostly with memory in it: without any there is little to see."""
            self.drawn = world
            self.comparison = Comparison(make, open_driver(world), world, timed=timed)
            for windows in backed:
                self.reserve(LONGEST * unit, 0, NO_FAULTS)
                if windows:
                    self.do(Commit(self.issued, 0, windows * unit), NO_FAULTS)

        def do(self, operation: Operation, plan: FaultPlan) -> None:
            """One compared step."""
            assert self.comparison is not None
            self.after_loss += bool(self.comparison.state.lost)
            if self.after_loss > AFTER_LOSS:
                return  # it was seen often enough that everything is refused
            self.steps.append(Step(operation, plan))
            try:
                note(self.comparison.step(self.steps[-1]))
            except Divergence as divergence:
                self.keep(divergence)
                raise
            except BaseException:
                self.failed = True  # the two sides are not in step: there is nothing to compare
                raise

        def keep(self, divergence: Divergence) -> None:
            """Remember the sequence that failed."""
            assert self.drawn is not None
            self.failed = True
            kept.last = (Sequence(self.drawn, tuple(self.steps)), divergence)

        def named(self, serial: object) -> object:
            """The serial that is meant: a guess from what was drawn, never from an answer."""
            if not isinstance(serial, Recent):
                return serial
            if not self.expected:
                self.reserve(LONGEST * unit, 0, NO_FAULTS)
                self.do(Commit(self.issued, 0, 2 * unit), NO_FAULTS)
            return self.expected[-1 - serial.rank % len(self.expected)]

        @rule(
            size=st.one_of(st.just(LONGEST * unit), sizes),
            alignment=st.sampled_from((0, 0, 0, 4096, 3)),
            plan=plans("reserve"),
        )
        def reserve(self, size: object, alignment: object, plan: FaultPlan) -> None:
            """Take an address range."""
            self.do(Reserve(size, alignment), plan)
            if plan is NO_FAULTS and size not in BAD and alignment != 3:
                self.issued += 1
                self.expected.append(self.issued)

        @rule(reservation=SERIALS, span=spans, plan=plans("commit"))
        def commit(self, reservation: object, span: tuple[object, object], plan: FaultPlan) -> None:
            """Back windows."""
            self.do(Commit(self.named(reservation), *span), plan)

        @rule(reservation=SERIALS, windows=st.integers(1, LONGEST), plan=plans("commit"))
        def grow(self, reservation: object, windows: int, plan: FaultPlan) -> None:
            """Back windows from the beginning on: mostly some that are backed already."""
            self.do(Commit(self.named(reservation), 0, windows * unit), plan)

        @rule(reservation=SERIALS, span=spans, plan=plans("release"))
        def release(
            self, reservation: object, span: tuple[object, object], plan: FaultPlan
        ) -> None:
            """Take memory from windows."""
            self.do(Release(self.named(reservation), *span), plan)

        @rule(reservation=SERIALS, windows=st.integers(1, LONGEST), plan=plans("release"))
        def shrink(self, reservation: object, windows: int, plan: FaultPlan) -> None:
            """Take memory from the windows at the beginning: mostly some that have any."""
            self.do(Release(self.named(reservation), 0, windows * unit), plan)

        @rule(reservation=SERIALS, plan=plans("close"))
        def close(self, reservation: object, plan: FaultPlan) -> None:
            """End a reservation."""
            serial = self.named(reservation)
            self.do(Close(serial), plan)
            if serial in self.expected:
                self.expected.remove(serial)

        @rule(size=sizes, plan=plans("trim"))
        def trim(self, size: object, plan: FaultPlan) -> None:
            """Give pooled memory back."""
            self.do(Trim(size), plan)

        @rule(reservation=st.one_of(st.none(), SERIALS), plan=plans("reclaim"))
        def reclaim(self, reservation: object, plan: FaultPlan) -> None:
            """End quarantine."""
            self.do(Reclaim(self.named(reservation)), plan)

        @rule(size=limits)
        def set_limit(self, size: object) -> None:
            """Set the limit."""
            self.do(SetLimit(size), NO_FAULTS)

        @precondition(lambda self: bool(self.steps) and bool(self.steps[-1].faults.specs))
        @rule()
        def again(self) -> None:
            """The same call once more, now without the fault."""
            self.do(self.steps[-1].operation, NO_FAULTS)

        def teardown(self) -> None:
            """Close everything and see what is left."""
            if self.comparison is None:
                return
            if self.failed:
                _ = self.comparison.faulting.tear_down()
                return
            try:
                for seen in self.comparison.end():
                    note(seen)
            except BaseException as error:
                if isinstance(error, Divergence):
                    self.keep(error)
                _ = self.comparison.faulting.tear_down()
                raise
            ended(self.comparison)

    return Machine


def explore(
    kind: type[RuleBasedStateMachine], *, number: int, examples: int, steps: int, shrink: bool
) -> None:
    """Run the machine; the same number, the same sequences.  Raises what it finds."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    seeded: Callable[[type[RuleBasedStateMachine]], type[RuleBasedStateMachine]] = seed(number)
    run_state_machine_as_test(
        seeded(kind),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            phases=phases,
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
