"""Injected faults: when they fire, what they leave, and how they are settled."""

import pytest

from kvvmm_model.codes import CODES, STICKY
from kvvmm_model.driver_model import DriverModel
from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner, all_specs, allowed
from kvvmm_model.vocabulary import Code, Fault, Rights, Step

G = 2 << 20
UNKNOWN = Code.UNKNOWN
WITHOUT, WITH, PART = Manner.WITHOUT_EFFECT, Manner.WITH_EFFECT, Manner.IN_PART


class World:
    """A driver that can be told to fail, over a model that tells the truth."""

    def __init__(self) -> None:
        self.model = DriverModel()
        self.driver = FaultingDriver(self.model)
        self.base = self.number(self.driver.address_reserve(8 * G, 0))

    @staticmethod
    def number(answer: int | Fault) -> int:
        assert not isinstance(answer, Fault)
        return answer

    def fill(self, *windows: int, rights: Rights = Rights.RW) -> list[int]:
        """Back windows with a handle each."""
        handles: list[int] = []
        for window in windows:
            handles.append(self.number(self.driver.create(G)))
            assert self.driver.map(self.base + window * G, G, handles[-1]) is None
            assert self.driver.set_access(self.base + window * G, G, rights) is None
        return handles

    def arm(self, *specs: FaultSpec) -> None:
        self.driver.arm(FaultPlan(specs))

    def rights(self) -> list[Rights | Fault | None]:
        return [self.model.query(self.base + window * G) for window in range(8)]

    def holds(self) -> tuple[int, int, int]:
        """How many handles, mappings and ranges exist."""
        model = self.model
        return len(model.live_handles()), len(model.live_mappings()), len(model.live_ranges())


@pytest.fixture
def world() -> World:
    return World()


# --- what may be injected ----------------------------------------------------------------------


def test_all_specs_of_every_step_follow_the_table_of_codes() -> None:
    for step in Step:
        pairs = set(all_specs(step))
        assert {code for _, code in pairs} >= {*CODES[step].unknown, *CODES[step].rules_out}
        assert any(code in STICKY for _, code in pairs)
        for manner, code in pairs:
            assert allowed(step, manner, code)
            assert FaultSpec(step, manner, code).sticky == (code in STICKY)
        manners = {manner for manner, _ in pairs}
        assert (PART in manners) == (step in {Step.SET_ACCESS, Step.CLEAR, Step.UNMAP, Step.COPY})
        assert (WITH in manners) == (step is not Step.QUERY)


@pytest.mark.parametrize(
    ("step", "manner", "code", "words"),
    [
        (Step.CREATE, WITH, Code.OUT_OF_MEMORY, "choose WITHOUT_EFFECT"),
        (Step.ADDRESS_RESERVE, WITH, Code.INVALID_VALUE, "choose WITHOUT_EFFECT"),
        (Step.QUERY, WITHOUT, Code.INVALID_VALUE, "choose another code"),
        (Step.QUERY, WITH, UNKNOWN, "choose WITHOUT_EFFECT"),
        (Step.MAP, PART, UNKNOWN, "IN_PART is for"),
        (Step.FENCE, PART, UNKNOWN, "IN_PART is for"),
        (Step.MAP, WITHOUT, 0, "1 or more"),
    ],
)
def test_spec_of_what_no_driver_does_is_refused(
    step: Step, manner: Manner, code: int, words: str
) -> None:
    assert not allowed(step, manner, code)
    with pytest.raises(ValueError, match=words):
        _ = FaultSpec(step, manner, code)


@pytest.mark.parametrize(
    ("nth", "part", "words"), [(0, 0, "nth=0"), (1, -1, "part=-1"), (1, 1, "part=1 with WITH_")]
)
def test_spec_with_numbers_out_of_range_is_refused(nth: int, part: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        _ = FaultSpec(Step.UNMAP, WITH, UNKNOWN, nth=nth, part=part)


# --- when it fires -----------------------------------------------------------------------------


def test_fault_at_the_nth_call_since_arming_fires_once(world: World) -> None:
    _ = world.fill(0)
    spec = FaultSpec(Step.CREATE, WITHOUT, Code.OUT_OF_MEMORY, nth=2)
    world.arm(spec)
    answers = [world.driver.create(G) for _ in range(3)]
    assert [isinstance(answer, Fault) for answer in answers] == [False, True, False]
    assert answers[1] == Fault(Step.CREATE, Code.OUT_OF_MEMORY)
    assert world.driver.fired == (spec,)


def test_lasting_fault_fires_ever_after_and_counts_once(world: World) -> None:
    spec = FaultSpec(Step.FENCE, WITHOUT, UNKNOWN, nth=2, lasting=True)
    world.arm(spec)
    answers = [world.driver.fence() for _ in range(4)]
    assert answers == [None, *[Fault(Step.FENCE, UNKNOWN)] * 3]
    assert world.driver.fired == (spec,)
    world.driver.disarm()
    assert world.driver.fence() is None


def test_plan_with_several_specs_fires_each_at_its_call(world: World) -> None:
    first = FaultSpec(Step.QUERY, WITHOUT, UNKNOWN)
    second = FaultSpec(Step.QUERY, WITHOUT, Code.NOT_INITIALIZED, nth=3)
    never = FaultSpec(Step.MAP, WITHOUT, UNKNOWN, nth=9)
    world.arm(second, never, first)
    codes = [getattr(world.driver.query(world.base), "code", None) for _ in range(4)]
    assert codes == [UNKNOWN, None, Code.NOT_INITIALIZED, None]
    assert world.driver.fired == (first, second)
    world.arm()
    assert not world.driver.fired


def test_plan_never_fires_in_another_driver(world: World) -> None:
    other = World()
    world.arm(FaultSpec(Step.FENCE, WITHOUT, UNKNOWN, lasting=True))
    assert other.driver.fence() is None
    assert world.driver.granularity_bytes == other.driver.granularity_bytes == G


def test_fault_of_the_inner_driver_goes_out_and_nothing_counts_as_fired(world: World) -> None:
    handle = world.number(world.driver.create(2 * G))
    assert world.driver.map(world.base, 2 * G, handle) is None
    driver, base = world.driver, world.base
    steps = set(Step) - {Step.QUERY, Step.FENCE, Step.RELEASE}
    world.arm(*[FaultSpec(step, WITH, UNKNOWN) for step in steps])
    answers = {
        Step.CREATE: driver.create(1),
        Step.ADDRESS_RESERVE: driver.address_reserve(1, 0),
        Step.MAP: driver.map(base, 2 * G, handle),
        Step.SET_ACCESS: driver.set_access(base, G, Rights.RW),
        Step.CLEAR: driver.clear(base, G),
        Step.COPY: driver.copy(base, base + 2 * G, 1),
        Step.UNMAP: driver.unmap(base, G),
        Step.ADDRESS_FREE: driver.address_free(base, 8 * G),
    }
    assert answers == {step: Fault(step, Code.INVALID_VALUE) for step in steps}
    assert not driver.fired
    assert world.holds() == (1, 1, 1)


# --- what it did -------------------------------------------------------------------------------


def test_fault_without_effect_leaves_everything(world: World) -> None:
    (handle,) = world.fill(0)
    steps = [Step.MAP, Step.SET_ACCESS, Step.CLEAR, Step.COPY]
    steps += [Step.UNMAP, Step.RELEASE, Step.CREATE]
    world.arm(*[FaultSpec(step, WITHOUT, UNKNOWN) for step in steps])
    before = world.holds(), world.rights()
    driver, base = world.driver, world.base
    assert driver.create(G) == Fault(Step.CREATE, UNKNOWN)
    assert driver.map(base + G, G, handle) == Fault(Step.MAP, UNKNOWN)
    assert driver.set_access(base, G, Rights.READ) == Fault(Step.SET_ACCESS, UNKNOWN)
    assert driver.clear(base, G) == Fault(Step.CLEAR, UNKNOWN)
    assert driver.copy(base, base + 4 * G, G) == Fault(Step.COPY, UNKNOWN)
    assert driver.unmap(base, G) == Fault(Step.UNMAP, UNKNOWN)
    assert driver.release(handle) == Fault(Step.RELEASE, UNKNOWN)
    assert (world.holds(), world.rights()) == before


def test_fault_with_effect_has_it(world: World) -> None:
    handle, other = world.fill(0, 2)
    steps = set(Step) - {Step.QUERY, Step.FENCE}
    world.arm(*[FaultSpec(step, WITH, UNKNOWN) for step in steps])
    driver, base = world.driver, world.base
    assert driver.map(base + G, G, handle) == Fault(Step.MAP, UNKNOWN)
    assert driver.set_access(base, 2 * G, Rights.RW) == Fault(Step.SET_ACCESS, UNKNOWN)
    assert world.rights()[:2] == [Rights.RW] * 2
    assert world.model.write(base, G, 9) is None
    assert driver.clear(base, G) == Fault(Step.CLEAR, UNKNOWN)
    assert world.model.read(base + G) == 0
    assert world.model.write(base + 2 * G, G, 9) is None
    assert driver.copy(base, base + 2 * G, 4) == Fault(Step.COPY, UNKNOWN)
    assert [world.model.read(base + at) for at in (0, 4)] == [9, 0]
    assert driver.unmap(base, 3 * G) == Fault(Step.UNMAP, UNKNOWN)
    assert driver.release(handle) == Fault(Step.RELEASE, UNKNOWN)
    assert driver.release(other) is None
    assert driver.address_free(base, 8 * G) == Fault(Step.ADDRESS_FREE, UNKNOWN)
    assert world.holds() == (0, 0, 0)
    assert driver.create(G) == Fault(Step.CREATE, UNKNOWN)
    assert driver.address_reserve(G, 0) == Fault(Step.ADDRESS_RESERVE, UNKNOWN)
    assert world.holds() == (1, 0, 1)
    assert set(driver.fired) == {FaultSpec(step, WITH, UNKNOWN) for step in steps}


@pytest.mark.parametrize(("part", "done"), [(0, 0), (1, 1), (2, 2), (3, 3), (7, 3)])
def test_fault_in_part_does_the_first_mappings_of_the_run(
    world: World, part: int, done: int
) -> None:
    _ = world.fill(5, 6, 7)
    _ = world.fill(0, 1, 2, rights=Rights.READ)
    steps = [Step.SET_ACCESS, Step.CLEAR, Step.UNMAP]
    world.arm(*[FaultSpec(step, PART, UNKNOWN, part=part) for step in steps])
    driver, base = world.driver, world.base
    assert driver.set_access(base, 3 * G, Rights.RW) == Fault(Step.SET_ACCESS, UNKNOWN)
    assert world.rights()[:3] == [*[Rights.RW] * done, *[Rights.READ] * (3 - done)]
    high = base + 5 * G
    assert world.model.write(high, 3 * G, 9) is None
    assert driver.clear(high, 3 * G) == Fault(Step.CLEAR, UNKNOWN)
    assert [world.model.read(high + at * G) for at in range(3)] == [0] * done + [9] * (3 - done)
    assert driver.unmap(high, 3 * G) == Fault(Step.UNMAP, UNKNOWN)
    assert world.rights()[5:] == [*[None] * done, *[Rights.RW] * (3 - done)]
    assert len(driver.fired) == len(steps)


@pytest.mark.parametrize(("part", "copied"), [(0, 0), (1, G), (2, 3 * G), (7, 4 * G + 3)])
def test_fault_in_part_of_a_copy_ends_where_a_mapping_of_its_target_ends(
    world: World, part: int, copied: int
) -> None:
    _ = world.fill(0, 3, 4, 5, 6, 7)
    wide = world.number(world.driver.create(2 * G))
    assert world.driver.map(world.base + G, 2 * G, wide) is None
    assert world.driver.set_access(world.base + G, 2 * G, Rights.RW) is None
    low, high = world.base, world.base + 4 * G
    other = world.number(world.driver.address_reserve(5 * G, 0))
    source = world.number(world.driver.create(5 * G))
    assert world.driver.map(other, 5 * G, source) is None
    assert world.driver.set_access(other, 5 * G, Rights.RW) is None
    assert world.model.write(other, 5 * G, 9) is None
    world.arm(FaultSpec(Step.COPY, PART, UNKNOWN, part=part))
    assert world.driver.copy(low, other, 4 * G + 3) == Fault(Step.COPY, UNKNOWN)
    ends = [world.model.read(low + at * G) for at in range(4)]
    assert ends == [9 if at * G < copied else 0 for at in range(4)]
    assert world.model.read(high) == (9 if copied > 4 * G else 0)
    assert world.model.read(high + 4) == 0
    assert len(world.driver.fired) == 1


def test_fault_in_part_cuts_between_handles_of_several_granules(world: World) -> None:
    handle = world.number(world.driver.create(4 * G))
    assert world.driver.map(world.base, 4 * G, handle) is None
    _ = world.fill(4)
    world.arm(FaultSpec(Step.UNMAP, PART, UNKNOWN, part=1))
    assert world.driver.unmap(world.base, 5 * G) == Fault(Step.UNMAP, UNKNOWN)
    assert list(world.model.live_mappings()) == [world.base + 4 * G]


# --- settling ----------------------------------------------------------------------------------


def test_settle_without_faults_touches_no_leak(world: World) -> None:
    _ = world.fill(0, 1)
    _ = world.driver.create(G)
    before = world.holds()
    assert world.driver.settle() == ()
    assert world.holds() == before == (3, 2, 1)


def test_settle_gives_back_what_was_hidden(world: World) -> None:
    world.arm(FaultSpec(Step.CREATE, WITH, UNKNOWN), FaultSpec(Step.ADDRESS_RESERVE, WITH, UNKNOWN))
    assert isinstance(world.driver.create(G), Fault)
    assert isinstance(world.driver.address_reserve(G, 0), Fault)
    assert world.holds() == (1, 0, 2)
    assert world.driver.settle() == ()
    assert world.holds() == (0, 0, 1)


def test_settle_carries_out_what_was_withheld(world: World) -> None:
    first, second = world.fill(0, 1)
    world.arm(
        FaultSpec(Step.UNMAP, PART, UNKNOWN, part=1),
        FaultSpec(Step.RELEASE, WITHOUT, UNKNOWN, lasting=True),
        FaultSpec(Step.ADDRESS_FREE, WITHOUT, UNKNOWN),
    )
    driver = world.driver
    assert driver.clear(world.base + G, G) is None
    assert driver.fence() is None
    assert isinstance(driver.unmap(world.base, 2 * G), Fault)
    assert isinstance(driver.release(first), Fault)
    assert isinstance(driver.release(second), Fault)
    assert isinstance(driver.address_free(world.base, 8 * G), Fault)
    assert world.holds() == (2, 1, 1)
    assert driver.settle() == ()
    assert world.holds() == (0, 0, 0)
    assert world.model.oddities == []


@pytest.mark.parametrize("manner", [WITHOUT, WITH])
def test_settle_after_a_copy_that_failed_undoes_nothing_of_it(world: World, manner: Manner) -> None:
    _ = world.fill(0, 1)
    assert world.model.write(world.base, G, 9) is None
    world.arm(FaultSpec(Step.COPY, manner, UNKNOWN))
    assert isinstance(world.driver.copy(world.base + G, world.base, 4), Fault)
    assert world.driver.settle() == ()
    assert world.holds() == (2, 2, 1)
    assert world.model.read(world.base + G) == (9 if manner is WITH else 0)


def test_settle_waits_for_a_copy_before_it_unmaps(world: World) -> None:
    _ = world.fill(0, 1)
    assert world.driver.copy(world.base + G, world.base, 1) is None
    assert world.driver.tear_down() == ()
    assert world.holds() == (0, 0, 0)


def test_settle_leaves_what_the_user_did_again(world: World) -> None:
    (handle,) = world.fill(0)
    world.arm(
        FaultSpec(Step.UNMAP, WITHOUT, UNKNOWN),
        FaultSpec(Step.RELEASE, WITHOUT, UNKNOWN),
        FaultSpec(Step.ADDRESS_FREE, WITHOUT, UNKNOWN),
    )
    driver, base = world.driver, world.base
    for _ in range(2):
        _ = driver.unmap(base, G)
    assert isinstance(driver.release(handle), Fault)
    assert driver.release(handle) is None
    for _ in range(2):
        _ = driver.address_free(base, 8 * G)
    # The same values again, and now they are other things.
    assert driver.address_reserve(8 * G, 0) == base
    assert world.fill(0) == [handle]
    assert driver.settle() == ()
    assert world.holds() == (1, 1, 1)


def test_settle_after_a_release_with_effect_leaves_the_recycled_handle(world: World) -> None:
    handle = world.number(world.driver.create(G))
    world.arm(FaultSpec(Step.RELEASE, WITH, UNKNOWN))
    assert isinstance(world.driver.release(handle), Fault)
    assert world.driver.create(G) == handle
    assert world.driver.settle() == ()
    assert world.holds() == (1, 0, 1)


def test_settle_leaves_a_mapping_that_a_query_has_shown_since(world: World) -> None:
    _ = world.fill(0, 1)
    world.arm(FaultSpec(Step.UNMAP, WITHOUT, UNKNOWN))
    assert isinstance(world.driver.unmap(world.base, 2 * G), Fault)
    assert world.driver.query(world.base) is Rights.RW
    assert world.driver.settle() == ()
    assert world.rights()[:2] == [Rights.RW, None]


def test_settle_leaves_a_mapping_made_with_effect_to_its_user(world: World) -> None:
    handle = world.number(world.driver.create(G))
    world.arm(FaultSpec(Step.MAP, WITH, UNKNOWN))
    assert isinstance(world.driver.map(world.base, G, handle), Fault)
    assert world.driver.settle() == ()
    assert world.driver.query(world.base) is Rights.NONE


def test_settle_answers_what_the_inner_driver_refused(world: World) -> None:
    _ = world.fill(0)
    world.arm(FaultSpec(Step.ADDRESS_FREE, WITHOUT, UNKNOWN))
    assert isinstance(world.driver.address_free(world.base, 8 * G), Fault)
    assert world.driver.settle() == (Fault(Step.ADDRESS_FREE, Code.INVALID_VALUE),)
    assert world.holds() == (1, 1, 1)
    assert world.driver.settle() == ()


# --- sticky ------------------------------------------------------------------------------------


def test_sticky_fault_answers_every_later_call_without_effect(world: World) -> None:
    (handle,) = world.fill(0)
    world.arm(FaultSpec(Step.FENCE, WITHOUT, Code.ILLEGAL_ADDRESS))
    driver, base = world.driver, world.base
    assert driver.fence() == Fault(Step.FENCE, Code.ILLEGAL_ADDRESS)
    assert driver.lost
    driver.disarm()
    before = world.holds(), world.rights()
    answers = {
        Step.ADDRESS_RESERVE: driver.address_reserve(G, 0),
        Step.CREATE: driver.create(G),
        Step.MAP: driver.map(base + G, G, handle),
        Step.SET_ACCESS: driver.set_access(base, G, Rights.READ),
        Step.CLEAR: driver.clear(base, G),
        Step.COPY: driver.copy(base, base + G, G),
        Step.UNMAP: driver.unmap(base, G),
        Step.RELEASE: driver.release(handle),
        Step.ADDRESS_FREE: driver.address_free(base, 8 * G),
        Step.FENCE: driver.fence(),
        Step.QUERY: driver.query(base),
    }
    assert answers == {step: Fault(step, Code.ILLEGAL_ADDRESS) for step in Step}
    assert (world.holds(), world.rights()) == before


@pytest.mark.parametrize("manner", [WITHOUT, WITH])
def test_settle_after_a_sticky_fault_tears_everything_down(world: World, manner: Manner) -> None:
    (handle, _) = world.fill(0, 3)
    assert world.driver.map(world.base + 5 * G, G, handle) is None
    assert world.driver.clear(world.base, G) is None
    world.arm(FaultSpec(Step.CREATE, manner, Code.LAUNCH_FAILED))
    assert world.driver.create(G) == Fault(Step.CREATE, Code.LAUNCH_FAILED)
    assert world.driver.settle() == ()
    assert world.holds() == (0, 0, 0)
    assert not world.driver.lost
    assert isinstance(world.driver.create(G), int)
