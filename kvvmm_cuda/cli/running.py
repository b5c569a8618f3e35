"""The command within click, with exit codes of our own: click's would read as a divergence."""

import os
from collections.abc import Sequence
from tempfile import TemporaryDirectory

import click

from kvvmm_cuda.cli.commands import kvvmm

__all__ = ["code"]


def code(arguments: Sequence[str] | None = None) -> int:
    """The exit code of the command."""
    # Hypothesis would leave a directory where the command is run.
    with TemporaryDirectory(prefix="kvvmm-") as directory:
        _ = os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", directory)
        return _code(arguments)


def _code(arguments: Sequence[str] | None) -> int:
    try:
        given = None if arguments is None else list(arguments)
        answer: object = kvvmm.main(given, prog_name="kvvmm", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code if error.exit_code != 1 else 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    return answer if isinstance(answer, int) else 0
