"""The page of layouts: what ``kvvmm plan`` prints, written below the command that prints it.

``python -m kvvmm_cuda.cli.plan_page spec/geometry.md`` rewrites what stands between the markers.
"""

import re
import shlex
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from kvvmm_cuda.cli.page import main
from kvvmm_cuda.cli.plan import plan

__all__ = ["examples", "rewritten"]

_EXAMPLE = re.compile(
    r"(<!-- plan -->\n```sh\n(?P<command>.*?)```\n\n```text\n)"
    r"(?P<printed>.*?)(```\n<!-- /plan -->)",
    re.DOTALL,
)


def examples(page: str) -> list[tuple[str, str]]:
    """The commands that a page shows, in order, each with what is printed below it."""
    return [(found["command"], found["printed"]) for found in _EXAMPLE.finditer(page)]


def rewritten(page: str) -> str:
    """The page with what its commands print now."""
    return _EXAMPLE.sub(lambda found: found[1] + _printed(found["command"]) + found[4], page)


def _printed(command: str) -> str:
    program, name, *arguments = shlex.split(command.replace("\\\n", " "))
    if (program, name) != ("kvvmm", "plan"):
        raise ValueError(f"{command!r}: an example begins with kvvmm plan")
    out = StringIO()
    with redirect_stdout(out):
        _ = plan.main(arguments, prog_name="kvvmm plan", standalone_mode=False)
    return out.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]), rewritten)
