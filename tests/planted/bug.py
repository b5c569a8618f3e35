"""What is said of a planted bug."""

import re

from attrs import frozen


@frozen
class Bug:
    """One mistake.

    ``wrong`` says what it is, ``shows`` how the finding has to begin after the step, as a regular
    expression.  ``source``: the public report of the same mistake elsewhere, if there is one, by
    its id in ``spec/public_bugs.md``.  ``form`` has to find the bug in every run of the tests.
    """

    name: str
    wrong: str
    shows: str
    source: str = ""
    form: str = "swarm"

    def explains(self, found: str | None) -> bool:
        """Whether a search found this, and nothing else."""
        return found is not None and re.match(rf"step \d+ {self.shows}", found) is not None
