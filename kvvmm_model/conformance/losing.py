"""A device that is lost though no injected fault did that: how a run tells."""

from kvvmm_model.codes import STICKY
from kvvmm_model.conformance.comparison import Divergence, Seen
from kvvmm_model.vocabulary import Driver

__all__ = ["gone", "lost_by_itself", "says_nothing"]

_OF_A_LOST_DEVICE = ("contents", "leak")


def lost_by_itself(seen: Seen) -> bool:
    """Whether this step lost the device, and no injected fault did that."""
    lost = seen.transition.state.lost and not seen.before.lost
    return bool(lost) and not any(spec.sticky for spec in seen.fired)


def gone(driver: Driver) -> bool:
    """Whether the device is lost, also where no step has met that: a fence does (D-19)."""
    fault = driver.fence()
    return fault is not None and fault.code in STICKY


def says_nothing(divergence: Divergence) -> bool:
    """Whether a lost device shows this with any manager: nothing can be read or given back."""
    return divergence.kind in _OF_A_LOST_DEVICE
