"""Python objects by name, as options and worker processes give them."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["NotFound", "named"]


class NotFound(ValueError):
    """The name leads nowhere; the message says where it stops."""


def named(path: str) -> Any:
    """The object that ``module:attribute`` names; the current directory is searched last.

    Raises:
        NotFound: there is no such module or attribute, or it cannot be called.
    """
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise NotFound(f"{path!r} is not of the form module:attribute")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found: Any = import_module(module_name)
    except ImportError as error:
        raise NotFound(f"{module_name} cannot be imported: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise NotFound(f"{module_name} has no {attribute}")
        found = getattr(found, name)
    if not callable(found):
        raise NotFound(f"{path} cannot be called")
    return found
