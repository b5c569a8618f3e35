"""The readable form: a Hypothesis state machine whose rules are the operations.

Every rule can always run, with any arguments, and draws nothing that depends on an answer, so that
shrinking is free to change what comes before.
"""

from collections.abc import Callable

from attrs import define
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType] - untyped there
)

from kvvmm_model.conformance.comparison import Comparison, Divergence
from kvvmm_model.conformance.guesses import Foreseen
from kvvmm_model.conformance.run import AFTER_LOSS, Note, OpenDriver, ignore
from kvvmm_model.conformance.strategies import (
    LONGEST,
    SERIALS,
    Recent,
    amounts,
    faults,
    lengths,
    ranges,
    worlds,
)
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.faulting import FaultPlan
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
)
from kvvmm_model.sequence import NO_FAULTS, Sequence, Step, World


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

    sizes, spans, cuts = amounts(unit), ranges(unit), lengths(unit)

    def plans(name: str) -> st.SearchStrategy[FaultPlan]:
        return faults(name) if with_faults else st.just(NO_FAULTS)

    places = st.one_of(
        st.just(0), st.just(0), st.integers(0, LONGEST).map(lambda n: n * unit), sizes
    )
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
            self.foreseen: Foreseen | None = None
            self.failed = False

        @initialize(world=worlds(unit, most), backed=st.lists(st.integers(0, LONGEST), max_size=3))
        def begin(self, world: World, backed: list[int]) -> None:
            """Open the world, mostly with memory in it: without any there is little to see."""
            self.drawn = world
            self.foreseen = Foreseen(world)
            self.comparison = Comparison(make, open_driver(world), world, timed=timed)
            for windows in backed:
                self.reserve(LONGEST * unit, 0, NO_FAULTS)
                if windows:
                    self.do(Commit(self.ahead.issued, 0, windows * unit), NO_FAULTS)

        @property
        def ahead(self) -> Foreseen:
            """What the model says to what was drawn; no answer of the subject is in it."""
            assert self.foreseen is not None
            return self.foreseen

        def do(self, operation: Operation, plan: FaultPlan) -> None:
            """One compared step."""
            assert self.comparison is not None
            self.after_loss += bool(self.comparison.state.lost)
            if self.after_loss > AFTER_LOSS:
                return  # it was seen often enough that everything is refused
            self.steps.append(Step(operation, plan))
            self.ahead.follow(self.steps[-1])
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
            """The reservation that is meant; where none is open, one is opened."""
            if not isinstance(serial, Recent):
                return serial
            if not self.ahead.backed:
                self.reserve(LONGEST * unit, 0, NO_FAULTS)
                self.do(Commit(self.ahead.issued, 0, 2 * unit), NO_FAULTS)
            return serial.among(list(self.ahead.backed))

        def prefix(self, serial: object, *, sealed: bool) -> object:
            """The prefix that is meant; where there is none of the kind, one is made."""
            if not isinstance(serial, Recent):
                return serial
            if not self.ahead.prefixes(sealed=sealed):
                self.publish_what_is_backed(self.named(Recent(0)), 2)
                if sealed:
                    self.do(Seal(self.ahead.published), NO_FAULTS)
            return serial.among([prefix.serial for prefix in self.ahead.prefixes(sealed=sealed)])

        @rule(
            size=st.one_of(st.just(LONGEST * unit), sizes),
            alignment=st.sampled_from((0, 0, 0, 4096, 3)),
            plan=plans("reserve"),
        )
        def reserve(self, size: object, alignment: object, plan: FaultPlan) -> None:
            """Take an address range."""
            self.do(Reserve(size, alignment), plan)

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
            self.do(Close(self.named(reservation)), plan)

        @rule(reservation=SERIALS, size=cuts)
        def publish(self, reservation: object, size: object) -> None:
            """Make a prefix of what a reservation begins with, whatever that is."""
            self.do(Publish(self.named(reservation), size), NO_FAULTS)

        @rule(reservation=SERIALS, windows=st.integers(1, 4))
        def publish_what_is_backed(self, reservation: object, windows: int) -> None:
            """Make a prefix of memory that is there, if there is enough."""
            serial = self.named(reservation)
            self.do(Commit(serial, 0, windows * unit), NO_FAULTS)
            self.do(Publish(serial, windows * unit), NO_FAULTS)

        @rule(prefix=SERIALS, plan=plans("seal"))
        def seal(self, prefix: object, plan: FaultPlan) -> None:
            """Make a prefix readable for all."""
            self.do(Seal(self.prefix(prefix, sealed=False)), plan)

        @rule(
            where=st.lists(st.tuples(SERIALS, SERIALS, places), min_size=1, max_size=2),
            plan=plans("attach"),
        )
        def attach(self, where: list[tuple[object, object, object]], plan: FaultPlan) -> None:
            """Map prefixes, to be read."""
            resolved = [
                (self.named(r), self.prefix(p, sealed=True), offset) for r, p, offset in where
            ]
            self.do(Attach(tuple(resolved)), plan)

        @rule(prefix=SERIALS, offset=places, plan=plans("attach"))
        def attach_to_a_new_one(self, prefix: object, offset: object, plan: FaultPlan) -> None:
            """Map a prefix where nothing lies yet."""
            found = self.prefix(prefix, sealed=True)
            self.reserve(LONGEST * unit, 0, NO_FAULTS)
            self.do(Attach(((self.ahead.issued, found, offset),)), plan)

        @rule(prefix=SERIALS, plan=plans("retire"))
        def retire(self, prefix: object, plan: FaultPlan) -> None:
            """End a prefix."""
            self.do(Retire(self.prefix(prefix, sealed=True)), plan)

        @rule(
            parents=st.lists(st.tuples(SERIALS, cuts), min_size=1, max_size=2),
            plan=plans("fork"),
        )
        def fork(self, parents: list[tuple[object, object]], plan: FaultPlan) -> None:
            """Make children."""
            self.do(Fork(tuple((self.named(r), length) for r, length in parents)), plan)

        @rule(windows=st.integers(1, 3), beyond=st.integers(0, unit), plan=plans("fork"))
        def fork_what_is_sealed(self, windows: int, beyond: int, plan: FaultPlan) -> None:
            """A child that shares a few windows and copies some bytes of the next."""
            self.reserve(LONGEST * unit, 0, NO_FAULTS)
            parent = self.ahead.issued
            self.publish_what_is_backed(parent, windows)
            self.do(Seal(self.ahead.published), NO_FAULTS)
            self.do(Commit(parent, windows * unit, unit), NO_FAULTS)
            self.do(Fork(((parent, windows * unit + beyond),)), plan)

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
