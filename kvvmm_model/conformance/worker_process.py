"""One worker process, as its parent has it: started, listened to, bounded in time, ended.

A fresh interpreter, never a fork: a forked child gets no answer from a CUDA driver (D-29).  It is
the head of a process group of its own, and that whole group is killed in the end, however the end
comes about.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from attrs import frozen

from kvvmm_model.conformance.worker_job import Begun, Job
from kvvmm_model.conformance.worker_journal import JOURNAL

__all__ = ["FAULTS", "Death", "Worker"]

FAULTS = "stack"
"""Where a worker that dies or hangs leaves its stack, in its directory."""

START_SECONDS = 120.0
"""How long a worker may take to begin: it imports much, and opens a device."""

_LISTEN_SECONDS = 0.05
_STACK_SECONDS = 0.3


@frozen
class Death:
    """How a worker ended that should not have.

    ``how``: the name of a signal, ``exit code N``, or ``hung``.
    """

    how: str

    @property
    def hung(self) -> bool:
        """Whether it was killed because nothing went on."""
        return self.how == "hung"


class Worker:
    """A process that does one job; within ``with``, and gone after it.

    ``patience``: for how many seconds the journal may stand still.  ``death`` says how it ended,
    once ``messages`` has: None if that was as it should be.
    """

    def __init__(self, command: tuple[str, ...], job: Job, patience: float) -> None:
        self.death: Death | None = None
        self._directory = Path(job.directory)
        self._patience = patience
        ours, theirs = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a subject prints is none of our results
                env={**os.environ, "PYTHONPATH": paths},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._connection = ours
        try:
            with suppress(BrokenPipeError):  # it is dead already, and how will be seen
                ours.send(job)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Number of the process, and of its group."""
        return self._process.pid

    def interrupt(self) -> None:
        """Ask for the end after the sequence that runs."""
        if self._process.returncode is None:
            os.kill(self.pid, signal.SIGINT)

    def messages(self) -> Generator[object | None]:
        """What the worker says; None now and then while it says nothing."""
        seen, since, patience = self._written(), monotonic(), max(self._patience, START_SECONDS)
        while True:
            if self._connection.poll(_LISTEN_SECONDS):
                try:
                    message: object = self._connection.recv()
                except (EOFError, OSError):
                    break
                since = monotonic()
                patience = self._patience if isinstance(message, Begun) else patience
                yield message
                continue
            written = self._written()
            if written != seen:
                seen, since = written, monotonic()
            elif monotonic() - since > patience:
                self._hang()
                return
            yield None
        self._wait()

    def _written(self) -> tuple[int, int]:
        try:
            found = (self._directory / JOURNAL).stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_size, found.st_mtime_ns

    def _hang(self) -> None:
        self.death = Death("hung")
        os.kill(self.pid, signal.SIGUSR1)  # it then writes where it is
        sleep(_STACK_SECONDS)
        self.close()

    def _wait(self) -> None:
        """The worker has closed its end: what is left is to see how."""
        until = monotonic() + self._patience
        while not self._exited():
            if monotonic() > until:
                self._hang()
                return
            sleep(_LISTEN_SECONDS / 10)
        self.close()
        code = self._process.returncode
        if code:
            self.death = Death(_signal_name(-code) if code < 0 else f"exit code {code}")

    def _exited(self) -> bool:
        """Leaves the process to be waited for: until then its number is nobody else's."""
        flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def close(self) -> None:
        """Kill the group, whatever is left of it, and wait for the process."""
        self._connection.close()
        if self._process.returncode is not None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        _ = self._process.wait()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
