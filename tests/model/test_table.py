"""The immutable mapping, and states as values."""

from operator import setitem

import pytest

from kvvmm_model.driver_model import DriverModel
from kvvmm_model.machine import Commit, Operation, Release, Reserve, apply
from kvvmm_model.state import State, initial
from kvvmm_model.table import Table
from kvvmm_model.vocabulary import Settings

G = 2 << 20


def test_put_gives_a_changed_copy() -> None:
    old = Table({1: "a"})
    new = old.put(2, "b")
    assert dict(old) == {1: "a"}
    assert dict(new) == {1: "a", 2: "b"}
    assert dict(new.put(1, "c")) == {1: "c", 2: "b"}
    assert new[1] == "a"


def test_without_gives_a_copy_that_lacks_the_key() -> None:
    old = Table({1: "a", 2: "b"})
    assert dict(old.without(1)) == {2: "b"}
    assert 1 in old
    assert 1 not in old.without(1)


def test_without_an_absent_key_raises() -> None:
    with pytest.raises(KeyError):
        _ = Table({1: "a"}).without(2)


def test_table_takes_no_assignment() -> None:
    table = Table({1: "a"})
    with pytest.raises(TypeError):
        setitem(table, 1, "b")  # type: ignore[call-overload]
    assert table[1] == "a"


def test_table_does_not_follow_what_it_was_made_of() -> None:
    source = {1: "a"}
    table = Table(source)
    source[2] = "b"
    assert len(table) == 1


def test_equal_tables_hash_alike_whatever_their_history() -> None:
    one = Table[int, str]().put(1, "a").put(2, "b")
    other = Table({2: "b", 1: "x", 3: "c"}).without(3).put(1, "a")
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


def test_hash_is_not_carried_over_to_a_copy() -> None:
    table = Table({1: "a"})
    assert hash(table) == hash(table)
    assert hash(table.put(1, "b")) == hash(Table({1: "b"}))


def test_table_equals_no_other_kind_of_mapping() -> None:
    assert Table({1: "a"}) != {1: "a"}
    assert Table({1: "a"}) != Table({1: "b"})
    assert Table({1: "a"}) != Table({2: "a"})


def test_table_is_a_mapping() -> None:
    table = Table({1: "a", 2: "b"})
    assert list(table) == [1, 2]
    assert table.get(3) is None
    assert list(table.values()) == ["a", "b"]
    assert repr(table) == "Table({1: 'a', 2: 'b'})"
    assert not Table()


# --- states ------------------------------------------------------------------------------------


def after(*operations: Operation) -> State:
    """The state that operations lead to, on a driver of their own."""
    driver = DriverModel(granularity_bytes=G)
    state = initial(Settings(G, retention=2), limit=8)
    for operation in operations:
        state = apply(state, operation, driver).state
    return state


def test_equal_states_hash_alike() -> None:
    operations = (Reserve(4 * G), Commit(1, 0, 2 * G), Release(1, 0, G))
    one, other = after(*operations), after(*operations)
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)


def test_states_of_different_histories_differ() -> None:
    states = {after(), after(Reserve(4 * G)), after(Reserve(8 * G))}
    assert len(states) == 3


def test_a_refused_operation_gives_the_state_itself() -> None:
    state = after(Reserve(4 * G))
    transition = apply(state, Commit(1, 0, 5 * G), DriverModel(granularity_bytes=G))
    assert transition.state is state
