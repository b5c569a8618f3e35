"""How a run ends early: between two sequences, when somebody asks for it."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Never

__all__ = ["Interrupts", "Stop", "terminable"]


class Stop(BaseException):
    """Between two sequences: no more of them.  No ``Exception``: Hypothesis would keep that."""


class Interrupts:
    """Ctrl-C asks for the end after the sequence that runs; a second one ends that too."""

    def __init__(self) -> None:
        self.asked = False

    @contextmanager
    def heeded(self) -> Generator[None]:
        """Within, a first Ctrl-C is only noted.  Elsewhere than in the main thread: as ever."""
        before = signal.getsignal(signal.SIGINT)
        if current_thread() is not main_thread() or before is not signal.default_int_handler:
            yield  # somebody else has a handler, or wants none
            return
        _ = signal.signal(signal.SIGINT, self._ask)
        try:
            yield
        finally:
            _ = signal.signal(signal.SIGINT, before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        _ = number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def terminable() -> Generator[None]:
    """Within, a request to terminate is an exit like any other, after which nothing is left."""
    before = signal.getsignal(signal.SIGTERM)
    if current_thread() is not main_thread() or before is not signal.SIG_DFL:
        yield
        return
    _ = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        _ = signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> Never:
    _ = frame
    raise SystemExit(128 + number)
