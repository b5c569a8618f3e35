"""A small language for operations and faults: on the command line, in traces and in tests.

    reserve 4; fault set_access part=2 OUT_OF_MEMORY; fault unmap; commit 0..4

Statements end with ``;`` or a new line; ``#`` begins a comment.  Plain numbers count granules;
bytes have a unit (``1B``, ``4KiB``, ``2MiB``).  ``0..4`` is the windows from 0 up to 4.

    world policy=run longest_run=4 retention=2 limit=16 capacity=32 clear_pooled=no
    reserve SIZE [align SIZE]          commit [rN] A..B          release [rN] A..B
    close [rN]                         trim SIZE                 reclaim [rN]
    publish [rN] SIZE                  seal [pN]                 retire [pN]
    attach rN pN OFFSET [and ...]      fork [rN] LENGTH [and ...]
    set_limit SIZE
    fault CALL [NTH] [CODE] [effect | part=K] [lasting]
    expect ...

Reservations are ``r1``, ``r2`` … in the order in which they were made; left out, it is ``r1``
(``reclaim`` alone means all).  Prefixes are ``p1``, ``p2`` … likewise.  A fault belongs to the next
operation: the NTH call of its kind (the first if left out) answers CODE (UNKNOWN if left out), and
did nothing before it said so; with ``effect`` it did its work, with ``part=K`` the first K mappings
of it; ``lasting``, and every later call of the kind as well.  ``expect`` says what must hold after
the operation before it.
"""

from kvvmm_model.language.expecting import Expect
from kvvmm_model.language.parsing import Script, parse, parse_statement
from kvvmm_model.language.printing import show, show_fault, show_operation, show_step, show_world
from kvvmm_model.language.words import LanguageError

__all__ = [
    "Expect",
    "LanguageError",
    "Script",
    "parse",
    "parse_statement",
    "show",
    "show_fault",
    "show_operation",
    "show_step",
    "show_world",
]
