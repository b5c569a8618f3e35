"""A wrapper that lets threads meet at every driver call, over a driver that does not lock."""

from threading import Lock
from time import sleep

from kvvmm_model.driver_model import Memory
from kvvmm_model.vocabulary import Driver, Fault, Rights

__all__ = ["YieldingDriver"]


class YieldingDriver:
    """Gives the processor away before and after each inner call, and holds a lock only in it.

    The order of calls from two threads is thus anyone's, while each call stays whole.  ``memory``
    is where ``write`` and ``read`` go: the inner driver itself, if it has them.
    """

    def __init__(self, inner: Driver, memory: Memory | None = None) -> None:
        self._inner = inner
        self._memory = inner if memory is None and isinstance(inner, Memory) else memory
        self._lock = Lock()

    @property
    def granularity_bytes(self) -> int:
        """The inner driver's."""
        return self._inner.granularity_bytes

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.address_reserve(size_bytes, alignment_bytes)
        sleep(0)
        return answer

    def create(self, size_bytes: int) -> int | Fault:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.create(size_bytes)
        sleep(0)
        return answer

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.map(address, size_bytes, handle)
        sleep(0)
        return answer

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.set_access(address, size_bytes, rights)
        sleep(0)
        return answer

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.clear(address, size_bytes)
        sleep(0)
        return answer

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.unmap(address, size_bytes)
        sleep(0)
        return answer

    def release(self, handle: int) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.release(handle)
        sleep(0)
        return answer

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.address_free(address, size_bytes)
        sleep(0)
        return answer

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.copy(target, source, size_bytes)
        sleep(0)
        return answer

    def fence(self) -> Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.fence()
        sleep(0)
        return answer

    def query(self, address: int) -> Rights | Fault | None:
        """As the inner driver."""
        sleep(0)
        with self._lock:
            answer = self._inner.query(address)
        sleep(0)
        return answer

    def write(self, address: int, size_bytes: int, word: int) -> Fault | None:
        """As the memory; without one, TypeError."""
        memory = self._bytes()
        sleep(0)
        with self._lock:
            answer = memory.write(address, size_bytes, word)
        sleep(0)
        return answer

    def read(self, address: int) -> int | Fault:
        """As the memory; without one, TypeError."""
        memory = self._bytes()
        sleep(0)
        with self._lock:
            answer = memory.read(address)
        sleep(0)
        return answer

    def _bytes(self) -> Memory:
        if self._memory is None:
            message = "the inner driver has no memory to show; pass memory="
            raise TypeError(message)
        return self._memory
