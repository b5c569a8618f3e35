"""An immutable, hashable mapping: what a frozen state keeps its things in."""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")


class Table(Mapping[K, V], Generic[K, V]):
    """A mapping that never changes; ``put`` and ``without`` give changed copies."""

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] = dict(items or {})
        self._hash: int | None = None

    def put(self, key: K, value: V) -> "Table[K, V]":
        """A copy in which ``key`` has ``value``."""
        copy: Table[K, V] = Table(self._items)
        copy._items[key] = value
        return copy

    def without(self, key: K) -> "Table[K, V]":
        """A copy without ``key``, which must be there."""
        copy: Table[K, V] = Table(self._items)
        del copy._items[key]
        return copy

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    # The inherited views look every key up again; a state is read far more often than made.

    def values(self) -> ValuesView[V]:
        """The values."""
        return self._items.values()

    def items(self) -> ItemsView[K, V]:
        """Keys with values."""
        return self._items.items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Table):
            return self._items == cast("Table[object, object]", other)._items
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self._items.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"Table({self._items!r})"
