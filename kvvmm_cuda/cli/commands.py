"""The command's subcommands."""

import importlib.metadata
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from kvvmm_cuda.cli.choosing import Chosen, choose, size
from kvvmm_cuda.cli.printing import finding_text, progress, result_text, say
from kvvmm_cuda.cli.replaying import replayed
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_cuda.drivers.selection import NAMES
from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance import campaign
from kvvmm_model.conformance.campaign import Plan, Result
from kvvmm_model.conformance.report import Machine, as_json, closing_line
from kvvmm_model.trace import BadTrace, dump, load

__all__ = ["kvvmm"]

DEFAULT_SECONDS = 30.0


def _version() -> str:
    try:
        return importlib.metadata.version("kvvmm")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="kvvmm")
def kvvmm() -> None:
    """Checks a manager of GPU virtual memory against its model."""


# --- options ------------------------------------------------------------------------------------


def _file(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """A place to write to; that it is none should not come out after hours."""
    _ = context
    if value is not None and (value.is_dir() or not value.absolute().parent.is_dir()):
        raise click.BadParameter(f"{value} cannot be written: no such directory", param=parameter)
    return value


_DRIVER = (
    click.option("--driver", type=click.Choice(NAMES), default="auto", show_default=True),
    click.option("--device", type=click.IntRange(0), default=0, help="Number of the CUDA device."),
)
_FILE = click.Path(dir_okay=False, path_type=Path)
_RUN = (
    *_DRIVER,
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
    click.option("--report", type=_FILE, callback=_file, help="Results as JSON."),
    click.option(
        "--trace",
        type=_FILE,
        callback=_file,
        help="Where a failing sequence goes.  [default: kvvmm-FORM-SEED.trace.json]",
    ),
)

_Command = Callable[..., None]


def _options(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@frozen(kw_only=True)
class Asked:
    """The options of a run."""

    driver: str
    device: int
    limit: int | None
    seconds: float | None
    count: int | None
    seed: int | None
    faults: bool
    report: Path | None
    trace: Path | None

    def __attrs_post_init__(self) -> None:
        if self.seconds is not None and self.count is not None:
            raise click.UsageError("--seconds and --count are two bounds: give one of them")


# --- runs ---------------------------------------------------------------------------------------


@kvvmm.command()
@_options(*_RUN)
def soak(**given: Any) -> None:
    """Run sequences from seeds against the model."""
    _end(_run("soak", Asked(**given)))


@kvvmm.command()
@_options(*_RUN)
def fuzz(**given: Any) -> None:
    """Let Hypothesis draw sequences, and shorten one that fails."""
    _end(_run("fuzz", Asked(**given)))


@kvvmm.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_options(*_DRIVER)
def replay(trace: Path, driver: str, device: int) -> None:
    """Run a trace once, and say at each step what was called and answered."""
    try:
        sequence = load(trace.read_text(encoding="utf-8"))
    except (BadTrace, UnicodeDecodeError) as error:
        raise click.UsageError(f"{trace}: {error}") from error
    chosen = _chosen(driver, device)
    try:
        same = replayed(sequence, chosen, Backend)
    finally:
        chosen.close()
    _end(0 if same else 1)


def _end(code: int) -> None:
    click.get_current_context().exit(code)


def _chosen(name: str, device: int) -> Chosen:
    try:
        chosen = choose(name, device)
    except DriverUnavailable as error:
        raise click.UsageError(f"--driver {name}: {error}") from error
    say(f"driver: {chosen.name}: {chosen.why}")
    return chosen


def _run(form: str, asked: Asked) -> int:
    chosen = _chosen(asked.driver, asked.device)
    try:
        plan = _plan(asked, chosen)
        say(f"{form}: seed {plan.seed}, faults {'on' if plan.faults else 'off'}")
        before = chosen.free_bytes()
        with progress() as show:
            result = (campaign.soak if form == "soak" else campaign.fuzz)(plan, show)
        machine = _machine(chosen, before)
    finally:
        chosen.close()
    _tell(result, machine, asked)
    return _code(result)


def _plan(asked: Asked, chosen: Chosen) -> Plan:
    unit = chosen.granularity_bytes
    endless = asked.seconds is None and asked.count is None
    if asked.limit is not None and asked.limit < unit:
        raise click.UsageError(
            f"--limit {asked.limit} is less than one granule: give at least {unit} bytes"
        )
    return Plan(
        make=Backend,
        open_driver=chosen.open_driver,
        granularity_bytes=unit,
        seed=secrets.randbelow(1 << 32) if asked.seed is None else asked.seed,
        faults=asked.faults,
        seconds=DEFAULT_SECONDS if endless else asked.seconds,
        count=asked.count,
        most=None if asked.limit is None else asked.limit // unit,
    )


def _machine(chosen: Chosen, free_before: int | None) -> Machine:
    if chosen.device is None:
        return Machine(chosen.name, _version())
    facts = chosen.device.describe()
    return Machine(
        chosen.name,
        _version(),
        gpu=facts["gpu"],
        gpu_uuid=facts["uuid"],
        driver_version=facts["driver_version"],
        cuda_version=facts["cuda_version"],
        bindings_version=facts["bindings_version"],
        free_bytes_before=free_before,
        free_bytes_after=chosen.free_bytes(),
    )


def _tell(result: Result, machine: Machine, asked: Asked) -> None:
    """Files first, for a pipe may break; the closing line last."""
    trace = asked.trace or Path(f"kvvmm-{result.form}-{result.seed}.trace.json")
    if result.finding is not None:
        text = dump(result.finding.sequence, str(result.finding.divergence))
        _ = trace.write_text(text + "\n", encoding="utf-8")
    if asked.report is not None:
        written = None if result.finding is None else str(trace)
        text = json.dumps(as_json(result, machine, written), indent=1)
        _ = asked.report.write_text(text + "\n", encoding="utf-8")
    say(result_text(result))
    if result.finding is not None:
        say(finding_text(result.finding, str(trace)))
    if result.void:
        say(f"\nVOID, this proves nothing: {result.void}")
    say(closing_line(result))


def _code(result: Result) -> int:
    if result.finding is not None:
        return 1
    if result.interrupted:
        return 130
    return 2 if result.void else 0
