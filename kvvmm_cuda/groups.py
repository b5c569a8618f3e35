"""Attaching and forking as the public classes offer them: one, or several as one transaction."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from kvvmm_cuda.core import Core
from kvvmm_cuda.errors import ForeignError
from kvvmm_cuda.ops.attach import attach
from kvvmm_cuda.ops.fork import fork
from kvvmm_model.vocabulary import Refusal, refused

if TYPE_CHECKING:
    from kvvmm_cuda.prefix import Prefix
    from kvvmm_cuda.reservation import Reservation


def attach_all(core: Core, targets: Iterable[tuple["Reservation", "Prefix", int]]) -> int:
    """Attach prefixes at offsets; the granules mapped."""
    named = tuple(
        (_ours(core, "attach", reservation), _ours(core, "attach", prefix), offset_bytes)
        for reservation, prefix, offset_bytes in targets
    )
    return cast("int", core.run("attach", attach, named))


def fork_all(core: Core, parents: Iterable[tuple["Reservation", int]]) -> tuple[int, ...]:
    """Fork reservations at lengths; the children's serials."""
    named = tuple((_ours(core, "fork", parent), length_bytes) for parent, length_bytes in parents)
    return cast("tuple[int, ...]", core.run("fork", fork, named))


def _ours(core: Core, operation: str, thing: "Reservation | Prefix") -> int:
    """Its serial, which means something only to the manager that gave it."""
    if thing._core is not core:  # pyright: ignore[reportPrivateUsage] - one package
        what = type(thing).__name__.lower()
        numbers: dict[str, object] = {what: thing.serial, "manager": "another"}
        raise ForeignError(operation, refused(Refusal.STALE, **numbers))
    return thing.serial
