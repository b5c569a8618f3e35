"""``kvvmm replay``: a trace again, step by step, or as a test that shows the same."""

import sys
from contextlib import closing
from pathlib import Path
from textwrap import wrap

import click

from kvvmm_cuda.cli.choosing import Chosen
from kvvmm_cuda.cli.lab import Told
from kvvmm_cuda.cli.printing import say
from kvvmm_cuda.cli.telling import drawn, tell
from kvvmm_cuda.cli.trying import BACKEND, chosen_driver, chosen_subject, fits, opened
from kvvmm_cuda.cli.walking import Walk, walk
from kvvmm_cuda.drivers.selection import NAMES
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.language import Script, show
from kvvmm_model.sequence import Sequence
from kvvmm_model.trace import BadTrace, Trace, read

__all__ = ["as_test", "replay", "replayed"]


def replayed(sequence: Sequence, chosen: Chosen, make: MakeSubject) -> bool:
    """Whether manager and model agree to the end; tells every step."""
    last: Told | None = None
    with opened(Script(sequence), make, chosen) as lab:
        for last in lab.steps():
            say(drawn(tell(last), coloured=sys.stdout.isatty()))
    divergence = None if last is None else last.divergence
    if divergence is None:
        say("no divergence")
        return True
    say(f"DIVERGED at step {divergence.number}: {divergence.kind}: {divergence.detail}")
    return False


# --- as a test ----------------------------------------------------------------------------------

_TEST = '''\
"""Manager and model over the steps of a trace; written by ``kvvmm replay --as-test``."""

from {module} import {top}
from kvvmm_model.conformance.comparison import Comparison
from kvvmm_model.conformance.run import run, simulated
from kvvmm_model.language import parse
from kvvmm_model.trace import with_retries

{comment}SCRIPT = {script}


def test_manager_and_model_agree() -> None:
    sequence = with_retries(parse(SCRIPT).sequence)
    run(Comparison({subject}, simulated(sequence.world), sequence.world), sequence)
'''


def as_test(trace: Trace, subject: str = BACKEND) -> str:
    """A test file that fails as long as the trace shows its finding."""
    module, _, attribute = subject.partition(":")
    lines = [line for part in trace.finding.splitlines() for line in wrap(part, 96)]
    return _TEST.format(
        module=module,
        top=attribute.partition(".")[0],
        subject=attribute,
        comment="".join(f"# {line}\n" for line in lines),
        script=_literal("\n" + show(trace.sequence)),
    )


def _literal(text: str) -> str:
    """Python source for a text, in lines where they can stand as they are."""
    return repr(text) if "\\" in text or '"""' in text else f'"""{text}"""'


# --- the command --------------------------------------------------------------------------------


def _read(path: Path) -> Trace:
    try:
        return read(path.read_text(encoding="utf-8"))
    except (BadTrace, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: {error}") from error


def _interactive(asked: bool | None) -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() if asked is None else asked


@click.command()
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--driver", default="auto", show_default=True, help=f"One of {', '.join(NAMES)}.")
@click.option("--device", type=click.IntRange(0), default=0, help="Number of the CUDA device.")
@click.option("--subject", default=BACKEND, show_default=True, help="The manager to compare.")
@click.option(
    "--interactive/--plain",
    "asked",
    default=None,
    help="Step by step, or all at once.  [default: step by step on a terminal]",
)
@click.option("--as-test", "test", is_flag=True, help="Run nothing; print a test that shows it.")
def replay(
    trace: Path, driver: str, device: int, subject: str, asked: bool | None, test: bool
) -> None:
    """Run a trace again, and say at each step what was called, answered and changed."""
    given = _read(trace)
    if test:
        say(as_test(given, subject).rstrip("\n"))
        return
    make = chosen_subject(subject)
    with closing(chosen_driver(driver, device)) as chosen:
        fits(given.sequence.world, chosen)
        say(f"driver: {chosen.name}: {chosen.why}")
        if _interactive(asked):
            same = walk(Walk(lambda: opened(Script(given.sequence), make, chosen)), given.finding)
        else:
            same = replayed(given.sequence, chosen, make)
    click.get_current_context().exit(0 if same else 1)
