"""Subjects and drivers that do not survive what they do, for the tests of the worker."""

import os
import signal
import subprocess
import time
from pathlib import Path

from kvvmm_cuda.subject import Backend
from kvvmm_model.codes import Code, Step
from kvvmm_model.conformance.canary import canaries
from kvvmm_model.conformance.run import simulated
from kvvmm_model.machine import Commit, Operation
from kvvmm_model.sequence import World
from kvvmm_model.vocabulary import Driver, Fault, Outcome, Rights, Settings

Wide = next(c for c in canaries(faults=False) if "too many" in c.name).plant(Backend)
"""Has a bug that shows itself in a few steps, and dies of nothing."""


def _only_once() -> bool:
    """Whether nobody has asked yet, among all processes that share the directory."""
    try:
        Path(os.environ["KVVMM_TEST_ONCE"]).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class _Deadly(Backend):
    """Ends something at the third commit."""

    def __init__(self, driver: Driver, settings: Settings, limit_bytes: int) -> None:
        super().__init__(driver, settings, limit_bytes)
        self._commits = 0

    def apply(self, operation: Operation) -> Outcome:
        if isinstance(operation, Commit):
            self._commits += 1
            if self._commits == 3:
                self.end()
        return super().apply(operation)

    def end(self) -> None:
        raise NotImplementedError


class Crashing(_Deadly):
    """Dies by a signal."""

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class CrashingOnce(_Deadly):
    """Dies by a signal, once."""

    def end(self) -> None:
        if _only_once():
            os.kill(os.getpid(), signal.SIGSEGV)


class Leaving(_Deadly):
    """Leaves with an exit code, and a child that would go on."""

    def end(self) -> None:
        if _only_once():
            _ = subprocess.Popen(["/bin/sleep", "3600"])
            os._exit(7)


class Hanging(_Deadly):
    """Never comes back, once."""

    def end(self) -> None:
        if _only_once():
            time.sleep(3600)


class Stubborn(_Deadly):
    """Never comes back, and heeds no interrupt."""

    def end(self) -> None:
        _ = signal.signal(signal.SIGINT, signal.SIG_IGN)
        Path(os.environ["KVVMM_TEST_ONCE"]).touch()
        while True:
            time.sleep(3600)


class Between:
    """A driver that hands everything on, and tells no truth."""

    def __init__(self, inner: Driver) -> None:
        self.inner = inner
        self.granularity_bytes = inner.granularity_bytes

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        return self.inner.address_reserve(size_bytes, alignment_bytes)

    def create(self, size_bytes: int) -> int | Fault:
        return self.inner.create(size_bytes)

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        return self.inner.map(address, size_bytes, handle)

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        return self.inner.set_access(address, size_bytes, rights)

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        return self.inner.clear(address, size_bytes)

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        return self.inner.unmap(address, size_bytes)

    def release(self, handle: int) -> Fault | None:
        return self.inner.release(handle)

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        return self.inner.address_free(address, size_bytes)

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        return self.inner.copy(target, source, size_bytes)

    def fence(self) -> Fault | None:
        return self.inner.fence()

    def query(self, address: int) -> Rights | None | Fault:
        return self.inner.query(address)


class _Sticky(Between):
    """Answers a sticky code from the n-th map on, at every map and fence; the rest succeeds."""

    maps = 0

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        _Sticky.maps += 1
        if self._lost():
            return Fault(Step.MAP, Code.ILLEGAL_ADDRESS)
        return super().map(address, size_bytes, handle)

    def fence(self) -> Fault | None:
        return Fault(Step.FENCE, Code.ILLEGAL_ADDRESS) if self._lost() else super().fence()

    def _lost(self) -> bool:
        return _Sticky.maps >= int(os.environ["KVVMM_TEST_MAPS"])


def sticky(world: World) -> Driver:
    """A driver whose context is lost after some maps in one process, whatever the sequence."""
    return _Sticky(simulated(world))


class _Stuck(Between):
    """Its third unmap never comes back."""

    unmaps = 0

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        _Stuck.unmaps += 1
        if _Stuck.unmaps == 3 and _only_once():
            time.sleep(3600)
        return super().unmap(address, size_bytes)


def stuck(world: World) -> Driver:
    """A driver that hangs in a call, once."""
    return _Stuck(simulated(world))
