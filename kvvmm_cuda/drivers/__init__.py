"""Drivers that touch a machine.  Importing this package never imports CUDA's bindings."""

__all__ = ["DriverUnavailable"]


class DriverUnavailable(RuntimeError):
    """No CUDA driver can be used here: what is missing, and what to do about it."""
