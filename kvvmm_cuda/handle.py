"""The record of a handle."""

from kvvmm_model.vocabulary import Fact, HandleView


class Handle:
    """Physical memory of ``size`` granules.

    ``references``: mappings not confirmed gone, live prefixes, and operations that are about to map
    it.  ``mappings``: the first of these alone.  ``gone``: its release is confirmed.  ``proven``:
    the driver has handed out its value again while its release was under way.
    """

    __slots__ = (
        "gone",
        "mappings",
        "place",
        "pooled",
        "proven",
        "quarantined",
        "references",
        "serial",
        "size",
        "value",
    )

    def __init__(self, serial: int, value: int, size: int) -> None:
        """A handle that was just created."""
        self.serial = serial
        self.value = value
        self.size = size
        self.references = 0
        self.mappings = 0
        self.place = 0
        self.pooled = False
        self.quarantined = False
        self.gone = False
        self.proven = False

    @property
    def held(self) -> int:
        """Its size where it is kept without being mapped, and not in the pool either; else 0."""
        return self.size if self.references and not self.mappings else 0

    def facts(self) -> tuple[Fact, ...]:
        """What can be observed of it."""
        if self.gone:
            return ()
        view = HandleView(self.serial, self.size, self.quarantined)
        return (view, ("pooled", self.serial)) if self.pooled else (view,)
