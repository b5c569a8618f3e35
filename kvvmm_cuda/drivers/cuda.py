"""The seam to the CUDA driver API: one call a method, no decisions.

The only module that imports ``cuda``, and that only when a driver is opened.  What the bindings
answer becomes an integer, a ``Rights`` or a ``Fault`` here; none of their objects goes further
(D-9).  No call of the ``Driver`` protocol raises for a status.

Calls on virtual memory need no current context (D-28) and touch none.  Fencing, clearing and
copying do need one: they push the device's primary context and pop it again, so that the caller's
stays what it was.

The bindings ship no types.  They come in as ``Any``, here alone.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import contextlib
import importlib.metadata
import logging
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_model.codes import Code, Step, code_name
from kvvmm_model.vocabulary import Fault, Rights

__all__ = ["CudaDriver"]

_WORD_BYTES = 4
_RIGHTS = {0: Rights.NONE, 1: Rights.READ, 3: Rights.RW}

_log = logging.getLogger("kvvmm")


class CudaDriver:
    """One CUDA device's virtual-memory calls; satisfies the ``Driver`` protocol.

    ``granularity_bytes`` is the smallest that the device allows; ``capacity_bytes`` all the memory
    it has, not what is free.  Usable by several threads.  Of no use in a forked child (D-29).

    Args:
        device: the device's number, as CUDA counts (``CUDA_VISIBLE_DEVICES`` applies).
        bindings: stands in for ``cuda.bindings.driver``, for tests.

    Raises:
        DriverUnavailable: no bindings, no driver, no such device, or one without virtual memory
            management.
    """

    def __init__(self, device: int = 0, *, bindings: Any = None) -> None:
        cu = _imported() if bindings is None else bindings
        self._cu = cu
        self.device = device
        self._device = _opened(cu, device)
        # VMM calls need no current context, but fences and clears push this one, and a context
        # that is retained cannot vanish under memory that is in use.
        self._context: Any = _answer(
            cu.cuDevicePrimaryCtxRetain(self._device),
            "retaining the primary context failed",
            "end other users of the device, or see whether nvidia-smi reports an error",
        )
        try:
            self._ask_device(device)
        except BaseException:
            self.close()
            raise
        self._bind()

    def _ask_device(self, device: int) -> None:
        cu = self._cu
        on_device = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._property = cu.CUmemAllocationProp()
        self._property.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._property.location.type = on_device
        self._property.location.id = device
        self._location = cu.CUmemLocation()
        self._location.type = on_device
        self._location.id = device
        flags = cu.CUmemAccess_flags
        self._access: dict[Rights, list[Any]] = {}
        for rights, flag in (
            (Rights.NONE, flags.CU_MEM_ACCESS_FLAGS_PROT_NONE),
            (Rights.READ, flags.CU_MEM_ACCESS_FLAGS_PROT_READ),
            (Rights.RW, flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
        ):
            descriptor = cu.CUmemAccessDesc()
            descriptor.location.type = on_device
            descriptor.location.id = device
            descriptor.flags = flag
            self._access[rights] = [descriptor]
        minimum = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        remedy = "update the NVIDIA driver, or use the simulated driver"
        self.granularity_bytes = int(
            _answer(
                cu.cuMemGetAllocationGranularity(self._property, minimum),
                "the device does not tell its granularity",
                remedy,
            )
        )
        self.capacity_bytes = int(
            _answer(
                cu.cuDeviceTotalMem(self._device), "the device does not tell its memory", remedy
            )
        )

    def _bind(self) -> None:
        """Look the calls up once; a look-up in the bindings costs a good part of a short call."""
        cu = self._cu
        self._cu_reserve = _total(cu.cuMemAddressReserve, 2)
        self._cu_create = _total(cu.cuMemCreate, 2)
        self._cu_map = _total(cu.cuMemMap)
        self._cu_set_access = _total(cu.cuMemSetAccess)
        self._cu_get_access = _total(cu.cuMemGetAccess, 2)
        self._cu_unmap = _total(cu.cuMemUnmap)
        self._cu_release = _total(cu.cuMemRelease)
        self._cu_free = _total(cu.cuMemAddressFree)
        self._cu_push = _total(cu.cuCtxPushCurrent)
        self._cu_pop = _total(cu.cuCtxPopCurrent, 2)
        self._cu_synchronize = _total(cu.cuCtxSynchronize)
        self._cu_memset = _total(cu.cuMemsetD32Async)
        self._cu_copy = _total(cu.cuMemcpyDtoH)
        self._cu_copy_on_device = _total(cu.cuMemcpyDtoDAsync)
        self._cu_info = _total(cu.cuMemGetInfo, 3)
        # Stream 0 is whatever the environment makes of it; this one is the legacy stream always.
        self._stream = cu.CUstream(cu.CU_STREAM_LEGACY)

    # --- the Driver protocol: no current context is needed, none is touched (D-28) --------------

    def address_reserve(self, size_bytes: int, alignment_bytes: int) -> int | Fault:
        """``cuMemAddressReserve``, anywhere (D-1, D-2)."""
        status, address = self._cu_reserve(size_bytes, alignment_bytes, 0, 0)
        return Fault(Step.ADDRESS_RESERVE, int(status)) if status else int(address)

    def create(self, size_bytes: int) -> int | Fault:
        """``cuMemCreate`` on the device (D-5, D-6)."""
        status, handle = self._cu_create(size_bytes, self._property, 0)
        return Fault(Step.CREATE, int(status)) if status else int(handle)

    def map(self, address: int, size_bytes: int, handle: int) -> Fault | None:
        """``cuMemMap`` of a whole handle (D-10, D-11)."""
        (status,) = self._cu_map(address, size_bytes, 0, handle, 0)
        return Fault(Step.MAP, int(status)) if status else None

    def set_access(self, address: int, size_bytes: int, rights: Rights) -> Fault | None:
        """``cuMemSetAccess`` for this device; UNKNOWN cannot be given (D-14, D-15)."""
        (status,) = self._cu_set_access(address, size_bytes, self._access[rights], 1)
        return Fault(Step.SET_ACCESS, int(status)) if status else None

    def unmap(self, address: int, size_bytes: int) -> Fault | None:
        """``cuMemUnmap`` (D-20 to D-22)."""
        (status,) = self._cu_unmap(address, size_bytes)
        return Fault(Step.UNMAP, int(status)) if status else None

    def release(self, handle: int) -> Fault | None:
        """``cuMemRelease``; a handle that is not ours can end the process (D-8)."""
        (status,) = self._cu_release(handle)
        return Fault(Step.RELEASE, int(status)) if status else None

    def address_free(self, address: int, size_bytes: int) -> Fault | None:
        """``cuMemAddressFree`` of exactly one reservation (D-4)."""
        (status,) = self._cu_free(address, size_bytes)
        return Fault(Step.ADDRESS_FREE, int(status)) if status else None

    def query(self, address: int) -> Rights | Fault | None:
        """``cuMemGetAccess`` for this device; INVALID_VALUE means "not mapped" (D-25)."""
        status, flags = self._cu_get_access(self._location, address)
        if not status:
            return _RIGHTS.get(int(flags), Rights.UNKNOWN)
        return None if status == Code.INVALID_VALUE else Fault(Step.QUERY, int(status))

    # --- the Driver protocol: within the primary context ----------------------------------------

    def clear(self, address: int, size_bytes: int) -> Fault | None:
        """Zeros on the legacy stream: after what was launched there, done only at a fence."""
        return self.write(address, size_bytes, 0)

    def copy(self, target: int, source: int, size_bytes: int) -> Fault | None:
        """``cuMemcpyDtoDAsync`` on the legacy stream; done only at a fence."""
        status, _ = self._within(
            lambda: self._cu_copy_on_device(target, source, size_bytes, self._stream)
        )
        return Fault(Step.COPY, status) if status else None

    def fence(self) -> Fault | None:
        """``cuCtxSynchronize`` of the primary context: every stream of it (D-26)."""
        status, _ = self._within(self._cu_synchronize)
        return Fault(Step.FENCE, status) if status else None

    # --- beyond the protocol ---------------------------------------------------------------------

    def write(self, address: int, size_bytes: int, word: int) -> Fault | None:
        """Start filling whole words of 4 bytes with ``word``, on the legacy stream."""
        count = size_bytes // _WORD_BYTES
        status, _ = self._within(lambda: self._cu_memset(address, word, count, self._stream))
        return Fault(Step.CLEAR, status) if status else None

    def read(self, address: int) -> int | Fault:
        """The word of 4 bytes at an address, after all that was started on the legacy stream."""
        word = bytearray(_WORD_BYTES)
        status, _ = self._within(lambda: self._cu_copy(word, address, _WORD_BYTES))
        return Fault(Step.QUERY, status) if status else int.from_bytes(word, "little")

    def free_bytes(self) -> int:
        """Device memory that is free now, for every process (``cuMemGetInfo``).

        Raises:
            RuntimeError: the driver does not answer, as after a lost context (D-19).
        """
        status, answer = self._within(self._cu_info)
        if status:
            raise RuntimeError(f"cuMemGetInfo answered {code_name(status)}")
        return int(answer[0])

    def describe(self) -> dict[str, str]:
        """Device, driver and versions, as text for a report; ``unknown`` where nobody says."""
        cu = self._cu
        status, name = cu.cuDeviceGetName(256, self._device)
        gpu = "unknown" if status else name.decode(errors="replace").rstrip("\0 ")
        status, uuid = cu.cuDeviceGetUuid(self._device)
        text = "unknown" if status else _uuid_text(bytes(uuid.bytes))
        status, version = cu.cuDriverGetVersion()
        cuda = "unknown" if status else f"{version // 1000}.{version % 1000 // 10}"
        return {
            "gpu": gpu,
            "uuid": text,
            "driver_version": _driver_version() or f"CUDA {cuda}",
            "cuda_version": cuda,
            "bindings_version": _bindings_version(),
        }

    def close(self) -> None:
        """Give the primary context back; afterwards, what needs it answers INVALID_CONTEXT.

        Memory is left as it is (D-27).  A second close does nothing.
        """
        if self._context is None:
            return
        self._context = None
        (status,) = self._cu.cuDevicePrimaryCtxRelease(self._device)
        if status and status != Code.DEINITIALIZED:  # at exit, that is as it should be
            _log.warning("giving the primary context back answered %s", _named(status))

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

    def _within(self, call: Callable[[], tuple[Any, ...]]) -> tuple[int, tuple[Any, ...]]:
        """Call with the primary context current: the first status not 0, and the call's answer."""
        context = self._context
        if context is None:
            return int(Code.INVALID_CONTEXT), ()
        (pushed,) = self._cu_push(context)
        if pushed:
            return int(pushed), ()
        try:
            status, *answer = call()
        finally:
            popped, _ = self._cu_pop()
        return int(status or popped), tuple(answer)


# --- opening ------------------------------------------------------------------------------------


def _imported() -> Any:
    """The bindings' module."""
    try:
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue, reportMissingImports]
    except ImportError as error:
        raise DriverUnavailable(
            "CUDA's Python bindings are not installed; install kvvmm[cuda], or use the simulated"
            " driver"
        ) from error
    return driver


def _opened(cu: Any, device: int) -> Any:
    """The device's handle, once it is known to manage virtual memory."""
    try:
        answer = cu.cuInit(0)
    except (RuntimeError, OSError) as error:  # the bindings look for the driver's library here
        raise DriverUnavailable(
            "the NVIDIA driver's library cannot be loaded; install the driver (in a container:"
            " start it with access to the GPU), or use the simulated driver"
        ) from error
    remedy = "see whether nvidia-smi lists a device, or use the simulated driver"
    _ = _answer(answer, "CUDA cannot be initialised", remedy)
    count = int(_answer(cu.cuDeviceGetCount(), "the devices cannot be counted", remedy))
    if not 0 <= device < count:
        raise DriverUnavailable(
            f"there is no device {device}: {count} visible, numbered from 0; choose one of them,"
            " or look at CUDA_VISIBLE_DEVICES"
        )
    found = _answer(cu.cuDeviceGet(device), f"device {device} cannot be opened", remedy)
    attribute = cu.CUdevice_attribute
    supported = _answer(
        cu.cuDeviceGetAttribute(
            attribute.CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, found
        ),
        f"device {device} does not answer",
        remedy,
    )
    if not supported:
        raise DriverUnavailable(
            f"device {device} does not support virtual memory management; use another device, or"
            " the simulated driver"
        )
    return found


def _total(call: Callable[..., Any], width: int = 1) -> Callable[..., Any]:
    """The call, answering also a status that a newer driver gives and the bindings do not know.

    They raise for such a status; in the middle of an operation it has to be an answer.
    """

    def total(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (ValueError, KeyError) as error:
            unlisted = re.fullmatch(r"(\d+)(?: is not a valid CUresult)?", str(error))
            if unlisted is None:
                raise
            return (int(unlisted[1]), *(None,) * (width - 1))

    return total


def _answer(answer: tuple[Any, ...], what: str, remedy: str) -> Any:
    """What a call gave, or None; DriverUnavailable, with a cause, for any status but success."""
    status = answer[0]
    if status:
        cause = RuntimeError(_named(status))
        raise DriverUnavailable(f"{what} ({_named(status)}); {remedy}") from cause
    return answer[1] if len(answer) > 1 else None


def _named(status: Any) -> str:
    return f"{getattr(status, 'name', 'code')} {int(status)}"


def _uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    return "GPU-" + "-".join(
        digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    )


def _driver_version() -> str | None:
    """The driver's own version, such as 580.159.04; None where NVML does not tell."""
    with contextlib.suppress(Exception):  # absent, or another NVML: a report goes without it
        from cuda.bindings import nvml  # pyright: ignore[reportAttributeAccessIssue, reportMissingImports]

        nvml.init_v2()
        try:
            return str(nvml.system_get_driver_version())
        finally:
            nvml.shutdown()
    return None


def _bindings_version() -> str:
    try:
        return importlib.metadata.version("cuda-bindings")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
