"""The planted bugs, each a small patch ``patches/<name>.patch``, as one might write it by mistake.

After a change of the backend a patch may not fit any more.  Then plant the same mistake again and
write the difference down anew, with paths that begin with ``a/`` and ``b/``.  ``measure.py`` takes
a new bug, or a changed one, into the table.
"""

from planted.bug import Bug
from planted.private_bugs import PRIVATE
from planted.shared_bugs import SHARED

__all__ = ["BUGS", "Bug"]

BUGS = (*PRIVATE, *SHARED)
