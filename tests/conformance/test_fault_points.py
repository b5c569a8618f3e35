"""Where faults can fall: the model's list is the backend's, and every point on it is hit."""

from functools import cache

import pytest

from kvvmm_model.conformance.reached import possible_fault_points

from support.bench import MakeBench, Side
from support.fault_points import Point, scenes, search


@cache
def places(side: Side, windows: int) -> frozenset[tuple[int, Point]]:
    """Of each scene, by its number."""
    make = MakeBench(side)
    return frozenset(
        (number, point)
        for number, scene in enumerate(scenes(windows))
        for point in search(make, scene)
    )


def points(windows: int) -> set[Point]:
    """The model's, of all scenes."""
    return {point for _, point in places(Side.MODEL, windows)}


@pytest.mark.parametrize("windows", [1, 2, 3, 4])
def test_fault_points_of_model_and_backend_are_the_same(windows: int) -> None:
    model, backend = places(Side.MODEL, windows), places(Side.BACKEND, windows)
    assert model - backend == set(), "only the model can fail there"
    assert backend - model == set(), "only the backend can fail there"
    assert len(model) > 100


def test_fault_points_reached_are_all_that_the_tables_allow() -> None:
    found = {
        (point.operation, point.step, point.manner)
        for windows in (1, 2, 3)
        for point in points(windows)
    }
    assert found == set(possible_fault_points())


@pytest.mark.parametrize(
    ("operation", "step"),
    [
        *(("commit", "create"), ("commit", "map"), ("commit", "unmap"), ("commit", "release")),
        *(("release", "release"), ("close", "release"), ("retire", "release")),
        *(("seal", "set_access"), ("attach", "map"), ("attach", "unmap")),
        *(("fork", "map"), ("fork", "unmap"), ("reclaim", "query"), ("reclaim", "unmap")),
    ],
)
def test_fault_points_of_four_windows_have_a_first_a_middle_and_a_last(
    operation: str, step: str
) -> None:
    found = {
        point.position
        for point in points(4)
        if (point.operation, point.step.value) == (operation, step)
    }
    assert found == {"first", "middle", "last"}
