"""The command's subcommands."""

from typing import Any

import click

from kvvmm_cuda.cli.campaigns import run
from kvvmm_cuda.cli.doctor import doctor
from kvvmm_cuda.cli.options import Asked, run_options
from kvvmm_cuda.cli.plan import plan
from kvvmm_cuda.cli.replaying import replay
from kvvmm_cuda.cli.trying import attempt
from kvvmm_cuda.cli.version import version

__all__ = ["kvvmm"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version(), prog_name="kvvmm")
def kvvmm() -> None:
    """Checks a manager of GPU virtual memory against its model."""


@kvvmm.command()
@run_options
def soak(**given: Any) -> None:
    """Run sequences from seeds against the model."""
    _end(run("soak", Asked(**given)))


@kvvmm.command()
@run_options
def fuzz(**given: Any) -> None:
    """Let Hypothesis draw sequences, and shorten one that fails."""
    _end(run("fuzz", Asked(**given)))


@kvvmm.command()
@run_options
def batch(**given: Any) -> None:
    """Let Hypothesis draw bytes that sequences are read from: many more of them."""
    _end(run("batch", Asked(**given)))


@kvvmm.command("doctor")
@click.option("--device", type=click.IntRange(0), default=0, help="Number of the CUDA device.")
@click.option("--json", "as_data", is_flag=True, help="The same as data.")
def _doctor(device: int, *, as_data: bool) -> None:
    """Say what is here, what would run, and what to do about the rest."""
    _end(doctor(device, as_data=as_data))


kvvmm.add_command(replay)
kvvmm.add_command(attempt)
kvvmm.add_command(plan)


def _end(code: int) -> None:
    click.get_current_context().exit(code)
