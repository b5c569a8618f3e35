"""Runs in a process of its own, on a copy of both packages.

``drive.py COPY FORM SECONDS SEQUENCES SHORTEN_SECONDS`` looks for a divergence with that form, and
prints what it came to as JSON.
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

from attrs import define, field

from kvvmm_cuda.subject import Backend
from kvvmm_model.conformance.batched import batch, explore_batch
from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.hypothesis_form import Findings, explore, machine
from kvvmm_model.conformance.run import run, shortest, simulated
from kvvmm_model.conformance.stopping import Stop
from kvvmm_model.conformance.swarm import Swarm
from kvvmm_model.sequence import World
from kvvmm_model.vocabulary import Driver
from planted.copied import insist_on

UNIT = 2 << 20

BATCH = 100
"""Sequences that Hypothesis draws from one seed."""

STEPS = 50
"""Rules that Hypothesis runs at most in one sequence."""


# --- looking for a divergence -------------------------------------------------------------------


@define
class Hunt:
    """One form's search: its bounds, what it has run, and what it found.

    ``sequences``, ``operations`` and ``seconds`` stand still once there is a finding; what comes
    after only makes it shorter.
    """

    most_seconds: float
    most_sequences: int
    shorten_seconds: float
    sequences: int = 0
    operations: int = 0
    seconds: float = 0
    message: str | None = None
    stopped: bool = False
    findings: Findings = field(factory=Findings)
    started: float = field(factory=monotonic)

    @property
    def over(self) -> bool:
        """Whether no further sequence should begin."""
        now = monotonic() - self.started
        if self.message is not None:
            return now > self.seconds + self.shorten_seconds
        return now > self.most_seconds or self.sequences >= self.most_sequences

    def open_driver(self, world: World) -> Driver:
        """The driver of one more sequence."""
        self.look()
        if self.over:
            self.stopped = True
            raise Stop
        self.sequences += self.message is None
        return simulated(world)

    def note(self, _: Seen) -> None:
        """Count an operation."""
        self.operations += self.findings.last is None

    def look(self) -> None:
        """Note when the first finding was there."""
        if self.findings.last is not None and self.message is None:
            self.message = str(self.findings.last[1])
            self.seconds = monotonic() - self.started

    def verdict(self) -> dict[str, object]:
        """What is printed."""
        last = self.findings.last
        return {
            "found": self.message,
            "sequences": self.sequences,
            "operations": self.operations,
            "seconds": round(self.seconds or monotonic() - self.started, 2),
            "steps": None if last is None else len(last[0].steps),
        }


def swarm(hunt: Hunt) -> None:
    """The sequences of the seeds from 0 on."""
    seed = 0
    while hunt.findings.last is None:
        sequence = Swarm(seed, granularity_bytes=UNIT).sequence()
        world = sequence.world
        try:
            run(Comparison(Backend, hunt.open_driver(world), world), sequence, hunt.note)
        except Divergence as divergence:
            hunt.findings.last = (sequence, divergence)
        seed += 1


def hypothesis(hunt: Hunt) -> None:
    """What Hypothesis draws rule by rule."""
    kind = machine(Backend, hunt.open_driver, UNIT, note=hunt.note, findings=hunt.findings)
    shrink = hunt.shorten_seconds > 0
    _numbered(
        hunt,
        lambda number: explore(kind, number=number, examples=BATCH, steps=STEPS, shrink=shrink),
    )


def batched(hunt: Hunt) -> None:
    """What Hypothesis draws as bytes."""
    compare = batch(Backend, hunt.open_driver, UNIT, note=hunt.note, findings=hunt.findings)
    shrink = hunt.shorten_seconds > 0
    _numbered(
        hunt,
        lambda number: explore_batch(compare, number=number, examples=BATCH, shrink=shrink),
    )


def _numbered(hunt: Hunt, draw: Callable[[int], None]) -> None:
    """The seeds from 0 on; what was found is in the findings, whatever Hypothesis raises for it."""
    number = 0
    while hunt.findings.last is None:
        try:
            draw(number)
        except Exception:  # the finding; or Hypothesis notes that a sequence ends otherwise now
            if hunt.stopped:
                raise Stop from None
            if hunt.findings.last is None:
                raise
        number += 1


FORMS: dict[str, Callable[[Hunt], None]] = {
    "swarm": swarm,
    "hypothesis": hypothesis,
    "batched": batched,
}


def search(form: str, hunt: Hunt) -> None:
    """Run the form up to its finding; where there is time for it, make that short."""
    with suppress(Stop):
        FORMS[form](hunt)
    hunt.look()
    if hunt.findings.last is not None and hunt.shorten_seconds:
        end = monotonic() + hunt.shorten_seconds

        def open_driver(world: World) -> Driver:
            if monotonic() > end:
                raise Stop
            return simulated(world)

        sequence, _ = hunt.findings.last
        with suppress(Stop, ValueError):  # not to its end, or it does not fail again
            hunt.findings.last = shortest(Backend, open_driver, sequence)
    _ = sys.stdout.write(json.dumps(hunt.verdict()))


def main() -> None:
    """Carry out what the command line asks for."""
    root, form, seconds, sequences, shorten_seconds = sys.argv[1:]
    insist_on(Path(root))
    search(form, Hunt(float(seconds), int(sequences), float(shorten_seconds)))
    insist_on(Path(root))


if __name__ == "__main__":
    main()
