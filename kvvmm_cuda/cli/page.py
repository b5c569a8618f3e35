"""The page of worked examples: what ``kvvmm try`` prints, written below the command that prints it.

``python -m kvvmm_cuda.cli.page spec/fault_lab.md`` rewrites what stands between the markers.
"""

import re
import shlex
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from kvvmm_cuda.cli.trying import attempt

__all__ = ["commands", "rewritten"]

_EXAMPLE = re.compile(
    r"(<!-- try -->\n```sh\n(?P<command>.*?)```\n\n```text\n)(?P<printed>.*?)(```\n<!-- /try -->)",
    re.DOTALL,
)


def commands(page: str) -> list[str]:
    """The commands that the page shows, in order."""
    return [found["command"] for found in _EXAMPLE.finditer(page)]


def rewritten(page: str) -> str:
    """The page with what its commands print now."""
    return _EXAMPLE.sub(lambda found: found[1] + printed(found["command"]) + found[4], page)


def printed(command: str) -> str:
    """What a command prints, run in this process."""
    program, name, *arguments = shlex.split(command)
    if (program, name) != ("kvvmm", "try"):
        raise ValueError(f"{command!r}: an example begins with kvvmm try")
    out = StringIO()
    with redirect_stdout(out):
        _ = attempt.main(arguments, prog_name="kvvmm try", standalone_mode=False)
    return out.getvalue()


def main(path: Path, rewrite: Callable[[str], str] = rewritten) -> None:
    """Rewrite a page."""
    _ = path.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
