"""The options of a run."""

from collections.abc import Callable
from pathlib import Path

import click
from attrs import frozen

from kvvmm_cuda.cli.choosing import size
from kvvmm_cuda.cli.trying import BACKEND
from kvvmm_cuda.drivers.selection import NAMES

__all__ = ["DEFAULT_SECONDS", "Asked", "run_options"]

DEFAULT_SECONDS = 30.0

Command = Callable[..., None]


def _file(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """A place to write to; that it is none should not come out after hours."""
    _ = context
    if value is not None and (value.is_dir() or not value.absolute().parent.is_dir()):
        raise click.BadParameter(f"{value} cannot be written: no such directory", param=parameter)
    return value


def _driver(context: click.Context, parameter: click.Parameter, value: str) -> str:
    _ = context
    if value not in NAMES and ":" not in value:
        raise click.BadParameter(
            f"{value!r} is none of {', '.join(NAMES)}, nor module:attribute", param=parameter
        )
    return value


_FILE = click.Path(dir_okay=False, path_type=Path)
_DIRECTORY = click.Path(file_okay=False, path_type=Path)

_WHAT = (
    click.option(
        "--driver",
        metavar="NAME",
        callback=_driver,
        default="auto",
        show_default=True,
        help=f"{', '.join(NAMES)}, or module:attribute, a function that opens one for a world.",
    ),
    click.option("--device", type=click.IntRange(0), default=0, help="Number of the CUDA device."),
    click.option(
        "--subject",
        metavar="MODULE:ATTRIBUTE",
        default=BACKEND,
        show_default=True,
        help="The manager to compare: what makes one from a driver, settings and a limit.",
    ),
    click.option(
        "--limit",
        metavar="SIZE",
        callback=size,
        help="No limit in any sequence is higher, as 64MiB.",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        help=f"How long; {DEFAULT_SECONDS:.0f} unless --count is given.",
    ),
    click.option("--count", type=click.IntRange(1), help="How many operations."),
    click.option("--seed", type=click.IntRange(0), help="Random unless given, and printed."),
    click.option("--faults/--no-faults", default=True, show_default=True),
)
_WORKER = (
    click.option(
        "--worker/--no-worker",
        default=None,
        help="Run in a process of its own, which may die.  [default: except on sim]",
    ),
    click.option(
        "--patience",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        default=30.0,
        show_default=True,
        help="A worker whose step takes longer hangs, and is killed.",
    ),
    click.option(
        "--restarts",
        type=click.IntRange(0),
        default=5,
        show_default=True,
        help="How many workers may take the place of others.",
    ),
    click.option(
        "--trials",
        type=click.IntRange(0),
        default=40,
        show_default=True,
        help="Processes that may be spent to cut a deadly sequence down.",
    ),
)
_OUT = (
    click.option("--report", type=_FILE, callback=_file, help="Results as JSON."),
    click.option("--junit", type=_FILE, callback=_file, help="Results as JUnit XML."),
    click.option(
        "--trace",
        type=_FILE,
        callback=_file,
        help="Where a failing sequence goes.  [default: kvvmm-FORM-SEED.trace.json]",
    ),
    click.option(
        "--artifacts",
        type=_DIRECTORY,
        help="All of these in one directory; findings that lie in it are tried again first.",
    ),
    click.option(
        "--deterministic",
        is_flag=True,
        help="Reports without dates, times and versions: the same for the same seed and count.",
    ),
)


def run_options(command: Command) -> Command:
    """All of them."""
    for option in reversed((*_WHAT, *_WORKER, *_OUT)):
        command = option(command)
    return command


@frozen(kw_only=True)
class Asked:
    """What they were given as."""

    driver: str
    device: int
    subject: str
    limit: int | None
    seconds: float | None
    count: int | None
    seed: int | None
    faults: bool
    worker: bool | None
    patience: float
    restarts: int
    trials: int
    report: Path | None
    junit: Path | None
    trace: Path | None
    artifacts: Path | None
    deterministic: bool

    def __attrs_post_init__(self) -> None:
        if self.seconds is not None and self.count is not None:
            raise click.UsageError("--seconds and --count are two bounds: give one of them")
        if self.deterministic and (self.seed is None or self.count is None):
            raise click.UsageError(
                "--deterministic needs --seed and --count: other runs are not the same again"
            )
