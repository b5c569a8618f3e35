"""Every place where a driver call can fail, found by running and failing.

A scene is what comes before, and one operation.  Run without faults, it shows the calls of the
operation; failing each of them in every manner shows the calls of its unwinding; failing those too
ends the search.  The same search on the model and on the backend gives two lists to compare.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kvvmm_model.conformance.ingredients import INJECTABLE
from kvvmm_model.faulting import FaultSpec, Manner
from kvvmm_model.machine import Operation, name_of
from kvvmm_model.recording import Call
from kvvmm_model.vocabulary import Code, Fault, Policy, Step

from support.bench import (
    GRANULE,
    Bench,
    MakeBench,
    attach,
    close,
    commit,
    fails,
    fork,
    publish,
    reclaim,
    release,
    reserve,
    retire,
    seal,
    trim,
)


class Point(NamedTuple):
    """Where a fault can fall; ``after`` is the first fault's, when it is a second."""

    operation: str
    step: Step
    position: str
    manner: Manner
    after: tuple[Step, Manner] | None


Before = tuple[tuple[Operation, tuple[FaultSpec, ...]], ...]
"""Operations, each with the faults that it meets."""


class Scene(NamedTuple):
    """Settings, what comes before, and the operation that is looked at."""

    windows: int
    retention: int
    limit: int
    capacity: int
    policy: Policy
    before: Before
    operation: Operation


def scenes(windows: int) -> Iterator[Scene]:
    """Every operation on a run of that many windows."""
    n = windows
    ranges = ((reserve(8), ()), (reserve(8), ()))
    backed = (*ranges, (commit(1, 0, n), ()))
    pooled = (*backed, (release(1, 0, n), ()))
    doubtful = (*backed, (close(1), (fails(Step.FENCE),)))
    broken = (*ranges, (commit(1, 0, n), _undo_fails()))

    def scene(
        before: Before,
        operation: Operation,
        *,
        retention: int = 8,
        limit: int = 64,
        capacity: int = 64,
        policy: Policy = Policy.GRANULE,
    ) -> Scene:
        return Scene(n, retention, limit, capacity, policy, before, operation)

    yield scene((), reserve(n))
    for policy in Policy:
        yield scene(ranges, commit(1, 0, n), policy=policy)
    yield scene(pooled, commit(1, 0, n))
    yield scene(pooled, commit(1, 0, n + 1))
    single = (*ranges, *((commit(1, window, 1), ()) for window in range(n)), (release(1, 0, n), ()))
    yield scene(single, commit(2, 0, 4), limit=n + 3, policy=Policy.RUN)
    yield scene(single, commit(2, 0, 4), capacity=n + 3, policy=Policy.RUN)
    for retention in (0, 1, 8):
        yield scene(backed, release(1, 0, n), retention=retention)
        yield scene(backed, close(1), retention=retention)
    yield scene((*backed, (commit(1, n + 1, 1), ())), release(1, 0, 8))
    yield scene(ranges, close(1))
    yield from _sharing(n, scene)
    yield scene(pooled, trim(n))
    yield scene(doubtful, reclaim())
    yield scene(broken, reclaim(1))


def _sharing(n: int, scene: Callable[..., Scene]) -> Iterator[Scene]:
    """What begins with that many windows published or sealed."""
    published = _faultless(
        *(reserve(8), reserve(8), *(commit(1, window, 1) for window in range(n)), publish(1, n))
    )
    sealed = (*published, (seal(1), ()))
    attached = (*sealed, (attach((2, 1, 0)), ()))
    shared = (*attached, (retire(1), ()))
    yield scene(published, seal(1))
    yield scene(published, release(1, 0, n))
    yield scene(published, close(1))
    yield scene(sealed, attach((2, 1, 0)))
    yield scene(sealed, attach((2, 1, 0), (2, 1, 4)))
    yield scene(sealed, close(1))
    yield scene(shared, release(2, 0, n))
    yield scene((*shared, (close(1), ())), close(2))
    yield scene((*sealed, (close(1), ())), retire(1))
    left = _faultless(close(1), release(2, 0, 1))
    yield scene((*attached, *left), retire(1))
    yield from _around(n, scene, sealed)
    yield from _forks(n, scene, sealed)


def _around(n: int, scene: Callable[..., Scene], sealed: Before) -> Iterator[Scene]:
    """A sharer with windows of its own on both sides, and one that has all of it twice."""
    own = (commit(2, 0, 1), attach((2, 1, 1)), commit(2, n + 1, 1))
    middle = (*sealed, *_faultless(*own))
    yield scene((*middle, *_faultless(publish(2, n + 2))), seal(2))
    last = (*middle, *_faultless(close(1), retire(1)))
    yield scene(last, release(2, 0, 8))
    yield scene(last, close(2), retention=1)
    twice = _faultless(attach((2, 1, 0), (2, 1, 4)), close(1), retire(1))
    yield scene((*sealed, *twice), release(2, 0, 8))
    yield scene((*sealed, *twice), close(2))
    doubtful = (*last, (close(2), (fails(Step.FENCE),)))
    yield scene(doubtful, reclaim())


def _forks(n: int, scene: Callable[..., Scene], sealed: Before) -> Iterator[Scene]:
    """Children that share, that copy, that do both; with memory from the pool, or given up."""
    cut = n * GRANULE + 5
    longer = (*sealed, (commit(1, n, 1), ()))
    yield scene(longer, fork((1, cut)))
    yield scene(longer, fork((1, n * GRANULE)))
    yield scene(longer, fork((1, cut), (1, cut)), retention=0)
    yield scene((*longer, *_faultless(commit(2, 7, 1), release(2, 7, 1))), fork((1, cut)))
    large = _faultless(reserve(8), commit(1, 0, 8))
    yield scene(large, fork((1, n * GRANULE)), policy=Policy.RUN)
    pooled = _faultless(
        *(reserve(8), commit(1, 0, 1), publish(1, 1), seal(1), commit(1, 1, 1)),
        *(commit(1, 4, 2), release(1, 4, 2)),
    )
    yield scene(pooled, fork((1, GRANULE + 5)), limit=4, policy=Policy.RUN)
    yield scene(pooled, fork((1, GRANULE + 5)), capacity=4, policy=Policy.RUN)


def _faultless(*operations: Operation) -> Before:
    return tuple((operation, ()) for operation in operations)


def _undo_fails() -> tuple[FaultSpec, ...]:
    return fails(Step.SET_ACCESS), fails(Step.UNMAP, lasting=True)


def manners(step: Step) -> list[tuple[Manner, int]]:
    """Each manner of a call's failing, with one code; of create, OUT_OF_MEMORY too."""
    kinds = dict(reversed([pair for pair in INJECTABLE[step] if pair[1] == Code.UNKNOWN]))
    pairs = list(kinds.items())
    if (Manner.WITHOUT_EFFECT, Code.OUT_OF_MEMORY) in INJECTABLE[step]:
        pairs.append((Manner.WITHOUT_EFFECT, Code.OUT_OF_MEMORY))
    return pairs


def staged(make_bench: MakeBench, scene: Scene) -> Bench:
    """A bench on which the operation comes next."""
    bench = make_bench(
        policy=scene.policy,
        retention=scene.retention,
        limit=scene.limit,
        capacity=scene.capacity,
    )
    for operation, faults in scene.before:
        _ = bench.run(operation, *faults)
    return bench


def search(make_bench: MakeBench, scene: Scene) -> Iterator[Point]:
    """All fault points of a scene, and of the unwinding after each; every one is hit."""
    for first, point, calls in _failing(make_bench, scene, (), 0, None):
        yield point
        after = (first.step, first.manner)
        for _, second, _ in _failing(make_bench, scene, (first,), _reach(calls, first), after):
            yield second


def _failing(
    make_bench: MakeBench,
    scene: Scene,
    given: tuple[FaultSpec, ...],
    start: int,
    after: tuple[Step, Manner] | None,
) -> Iterator[tuple[FaultSpec, Point, list[Call]]]:
    """Fail each call from ``start`` on, in each manner, with what was given already."""
    bench = staged(make_bench, scene)
    _ = bench.run(scene.operation, *given)
    calls = list(bench.calls)
    for number in range(start, len(calls)):
        step = calls[number].step
        nth = sum(call.step is step for call in calls[: number + 1])
        count = sum(call.step is step for call in calls)
        refused = isinstance(calls[number].answer, Fault)  # by the driver, which is out of memory
        for manner, code in manners(step):
            if refused and manner is not Manner.WITHOUT_EFFECT:
                continue
            spec = FaultSpec(step, manner, code, nth, part=int(manner is Manner.IN_PART))
            trial = staged(make_bench, scene)
            _ = trial.run(scene.operation, *given, spec)  # insists that every fault was met
            point = Point(name_of(scene.operation), step, _position(nth, count), manner, after)
            yield spec, point, list(trial.calls)


def _position(nth: int, count: int) -> str:
    if nth == 1:
        return "first"
    return "last" if nth == count else "middle"


def _reach(calls: list[Call], spec: FaultSpec) -> int:
    """The number of the call after the one that a fault fell on."""
    seen = 0
    for number, call in enumerate(calls):
        seen += call.step is spec.step
        if seen == spec.nth:
            return number + 1
    raise AssertionError(f"{spec} was never met in {calls}")
