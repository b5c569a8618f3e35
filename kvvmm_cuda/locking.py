"""Holding the locks of several reservations at once."""

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager

from kvvmm_cuda.records import Reservation


@contextmanager
def locked(reservations: Iterable[Reservation]) -> Generator[None]:
    """Hold the locks of reservations, taken in serial order so that no two wait for each other."""
    each_once = {reservation.serial: reservation for reservation in reservations}
    with ExitStack() as held:
        for _, reservation in sorted(each_once.items()):
            _ = held.enter_context(reservation.lock)
        yield
