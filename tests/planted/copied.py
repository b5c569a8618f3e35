"""For processes that run on a copy of both packages."""

import sys
from pathlib import Path


def insist_on(root: Path) -> None:
    """All of both packages comes from the copy, or this process has shown nothing."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in {"kvvmm_cuda", "kvvmm_model"}:
            file = module.__file__
            if file is None or not Path(file).is_relative_to(root):
                sys.exit(f"{name} comes from {file}, not from {root}")
