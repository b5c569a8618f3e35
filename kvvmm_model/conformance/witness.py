"""Who is told of a run while it goes on: by default nobody takes notice."""

from kvvmm_model.conformance.comparison import Comparison, Divergence
from kvvmm_model.conformance.reached import Reached
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.sequence import Sequence, World

__all__ = ["Witness"]


class Witness:
    """Is told what happens, each time before it happens, so that it knows what was interrupted."""

    def subject(self, make: MakeSubject) -> MakeSubject:
        """The same subject, perhaps with something around it that watches its calls."""
        return make

    def planted(self, canary: str) -> None:
        """The search for this planted bug begins; an empty name: it is over."""

    def numbered(self, number: int) -> None:
        """What follows belongs to this number, counted from the seed's first."""

    def opened(self, world: World) -> None:
        """A sequence begins."""

    def found(self, sequence: Sequence, divergence: Divergence) -> None:
        """This fails; what follows only shortens it."""

    def ended(self, reached: Reached, comparison: Comparison, seconds: float) -> None:
        """A sequence that counts has ended, ``seconds`` after the run began."""
