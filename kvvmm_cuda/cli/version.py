"""The version of what is installed."""

import importlib.metadata

__all__ = ["version"]


def version() -> str:
    """Of kvvmm; ``unknown`` where it is run from a checkout that nobody installed."""
    try:
        return importlib.metadata.version("kvvmm")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
