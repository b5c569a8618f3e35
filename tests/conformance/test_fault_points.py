"""Where faults can fall: the model's list is the backend's, and every point on it is hit."""

import pytest

from kvvmm_model.conformance.reached import possible_fault_points

from support.bench import MakeBench, Side
from support.fault_points import Point, scenes, search


def points(side: Side, windows: int) -> set[Point]:
    make = MakeBench(side)
    return {point for scene in scenes(windows) for point in search(make, scene)}


@pytest.mark.parametrize("windows", [1, 2, 3, 4])
def test_fault_points_of_model_and_backend_are_the_same(windows: int) -> None:
    model, backend = points(Side.MODEL, windows), points(Side.BACKEND, windows)
    assert model - backend == set(), "only the model can fail there"
    assert backend - model == set(), "only the backend can fail there"
    assert len(model) > 100


def test_fault_points_reached_are_all_that_the_tables_allow() -> None:
    found = {
        (point.operation, point.step, point.manner)
        for windows in (1, 2, 3)
        for point in points(Side.MODEL, windows)
    }
    assert found == set(possible_fault_points())


def test_fault_points_of_four_windows_have_a_first_a_middle_and_a_last() -> None:
    found = {(point.operation, point.step.value, point.position) for point in points(Side.MODEL, 4)}
    for step in ("create", "map", "unmap", "release"):
        assert {position for name, kind, position in found if (name, kind) == ("commit", step)} == {
            "first",
            "middle",
            "last",
        }
