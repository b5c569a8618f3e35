"""A virtual-memory manager for KV caches, on CUDA or simulated.

``VirtualMemory.open`` is the way in; ``kvvmm_cuda.errors`` has what it raises.
"""

from kvvmm_cuda.manager import VirtualMemory
from kvvmm_cuda.prefix import Prefix
from kvvmm_cuda.reservation import Reservation

__all__ = ["Prefix", "Reservation", "VirtualMemory"]
