"""Findings of an earlier run, tried before anything else: what failed yesterday may still fail."""

from collections.abc import Iterator
from pathlib import Path

from kvvmm_cuda.cli.choosing import Chosen
from kvvmm_cuda.cli.saving import SUFFIX
from kvvmm_model.conformance.report import Earlier
from kvvmm_model.conformance.run import fails
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.worker_job import Place
from kvvmm_model.conformance.worker_launch import Launch
from kvvmm_model.conformance.worker_shortening import outcomes
from kvvmm_model.sequence import Sequence
from kvvmm_model.trace import BadTrace, load

__all__ = ["again"]

NOT_RUN = 2


def again(
    findings: Path, chosen: Chosen, make: MakeSubject | None, launch: Launch, place: Place
) -> Iterator[Earlier]:
    """Each finding of a directory; in a worker if there is no subject to run in this process."""
    for path in sorted(findings.glob(f"*{SUFFIX}")):
        name = path.name.removesuffix(SUFFIX)
        try:
            sequence = load(path.read_text(encoding="utf-8"))
        except (BadTrace, OSError, UnicodeDecodeError) as error:
            yield Earlier(name, NOT_RUN, str(error))
            continue
        unit = sequence.world.settings.granularity_bytes
        if chosen.name == "cuda" and unit != chosen.granularity_bytes:
            yield Earlier(name, NOT_RUN, f"it has granules of {unit} bytes, the device other ones")
        elif make is None:
            yield _in_a_worker(name, sequence, launch, place)
        else:
            divergence = fails(make, chosen.open_driver, sequence)
            yield Earlier(name, int(divergence is not None), str(divergence or "no divergence"))


def _in_a_worker(name: str, sequence: Sequence, launch: Launch, place: Place) -> Earlier:
    tried, death = outcomes(launch, place, (sequence,))
    if death is not None:
        return Earlier(name, 3, "the process hung" if death.hung else f"died by {death.how}")
    divergence = tried[0].divergence
    if divergence is not None:
        return Earlier(name, 1, str(divergence))
    return Earlier(name, 0, "the device was lost" if tried[0].lost else "no divergence")
