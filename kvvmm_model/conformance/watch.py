"""What is counted of a run while it goes on, and when it ends."""

from time import monotonic

from attrs import define, field

from kvvmm_model.conformance.comparison import Comparison, Divergence, Seen
from kvvmm_model.conformance.hypothesis_form import Findings
from kvvmm_model.conformance.losing import gone, lost_by_itself
from kvvmm_model.conformance.results import Plan, Progress, Result
from kvvmm_model.conformance.stopping import Interrupts, Stop
from kvvmm_model.sequence import Sequence, World
from kvvmm_model.vocabulary import Driver

__all__ = ["Watch"]


@define
class Watch:
    """Counts what runs, and says before each sequence whether it still may.

    ``shorten``: whether sequences may go on after a first finding.
    """

    plan: Plan
    result: Result
    interrupts: Interrupts
    progress: Progress
    sequences: int | None = None
    shorten: bool = True
    findings: Findings = field(factory=Findings)
    told: tuple[Sequence, Divergence] | None = None
    driver: Driver | None = None
    stopped: bool = False
    started: float = field(factory=monotonic)

    @property
    def over(self) -> bool:
        """Whether no further sequence should begin."""
        if self.interrupts.asked or self.result.lost:
            return True
        if self.findings.last is not None:
            return not self.shorten
        plan, reached = self.plan, self.result.reached
        self.result.seconds = monotonic() - self.started
        return (
            (plan.seconds is not None and self.result.seconds >= plan.seconds)
            or (plan.count is not None and reached.operations >= plan.count)
            or (self.sequences is not None and reached.sequences >= self.sequences)
        )

    def open_driver(self, world: World) -> Driver:
        """The driver for one more sequence; all begin here, also those that shorten a finding."""
        if self.over or self.gone():
            self.stopped = True
            raise Stop
        if self.findings.last is not None and self.findings.last is not self.told:
            self.told = self.findings.last
            self.plan.witness.found(*self.told)
        self.plan.witness.opened(world)
        self.driver = self.plan.open_driver(world)
        return self.driver

    def gone(self) -> bool:
        """Whether something was found, and the device is lost."""
        if self.findings.last is not None and self.driver is not None:
            self.result.lost = self.result.lost or gone(self.driver)
        return self.result.lost

    def note(self, seen: Seen) -> None:
        """Count a step; what only shortens a finding does not count."""
        if self.findings.last is not None:
            return
        self.result.reached.note(seen)
        self.result.lost = self.result.lost or lost_by_itself(seen)

    def ended(self, comparison: Comparison) -> None:
        """Count a sequence, in the same way."""
        if self.findings.last is not None:
            return
        self.result.reached.sequences += 1
        self.result.timings.add(comparison.recording.durations)
        seconds = monotonic() - self.started
        self.plan.witness.ended(self.result.reached, comparison, seconds)
        self.progress(self.result)
