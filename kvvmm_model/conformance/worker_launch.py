"""Starting workers, each with a directory of its own."""

from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from attrs import frozen

from kvvmm_model.conformance.worker_job import Job, Spell, Trials
from kvvmm_model.conformance.worker_journal import Interrupted, begun, interrupted
from kvvmm_model.conformance.worker_process import FAULTS, Death, Worker

__all__ = ["Launch", "Launched", "WorkerDeclined"]


class WorkerDeclined(RuntimeError):
    """No worker can do the task, and the message says why."""


@frozen
class Launch:
    """How workers are started and how long they are waited for.

    ``command``: what starts one; it is given the number of a file descriptor besides.
    ``patience``: seconds that a step may take.  ``restarts``: workers that may replace others.
    ``trials``: processes that may be spent on cutting one deadly sequence down; 0 for none.
    """

    command: tuple[str, ...]
    patience: float = 30.0
    restarts: int = 5
    trials: int = 40

    def start(self, task: Spell | Trials) -> "Launched":
        """One more worker, for this task."""
        directory = TemporaryDirectory(prefix="kvvmm-worker-")
        try:
            worker = Worker(self.command, Job(task, directory.name), self.patience)
        except BaseException:
            directory.cleanup()
            raise
        return Launched(worker, directory)


class Launched:
    """A worker and its directory; both are gone after ``with``."""

    def __init__(self, worker: Worker, directory: TemporaryDirectory[str]) -> None:
        self._worker = worker
        self._directory = directory
        self._path = Path(directory.name)

    def messages(self) -> Generator[object | None]:
        """What it says; None now and then while it says nothing."""
        return self._worker.messages()

    def interrupt(self) -> None:
        """Ask for the end after the sequence that runs."""
        self._worker.interrupt()

    def death(self, *, ended: bool) -> Death | None:
        """How it ended; None if well, which takes that it said so itself (``ended``)."""
        if ended:
            return None  # what comes after its last word is only its interpreter's end
        return self._worker.death or Death("exit code 0")

    def last(self) -> int | None:
        """The number of the sequence that it was in."""
        found = begun(self._path)
        return None if found is None else found[0]

    def interrupted(self) -> Interrupted | None:
        """The sequence that it was in, as far as that came."""
        return interrupted(self._path)

    def stack(self) -> str:
        """What it wrote about where it was."""
        path = self._path / FAULTS
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the worker."""
        try:
            self._worker.close()
        finally:
            self._directory.cleanup()
