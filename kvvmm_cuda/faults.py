"""Planned faults, and the driver that injects them: for tests of what stands on a manager."""

from kvvmm_model.faulting import FaultingDriver, FaultPlan, FaultSpec, Manner

__all__ = ["FaultPlan", "FaultSpec", "FaultingDriver", "Manner"]
