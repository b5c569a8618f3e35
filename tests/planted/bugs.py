"""The planted bugs, each a small patch ``patches/<name>.patch``, as one might write it by mistake.

After a change of the backend a patch may not fit any more.  Then plant the same mistake again and
write the difference down anew, with paths that begin with ``a/`` and ``b/``.
"""

from attrs import frozen


@frozen
class Bug:
    """One mistake.

    ``wrong`` says what it is, ``shows`` how the swarm's finding has to begin after the step, as a
    regular expression.  ``examples_miss``: every example test passes with the bug in place.
    """

    name: str
    wrong: str
    shows: str
    examples_miss: bool = True


BUGS = (
    # --- the pool ---------------------------------------------------------------------------
    Bug(
        "give-up-smallest-first",
        "Of several sizes in the pool, the smallest is given up first, and not the oldest.",
        r"(Trim|Commit)\(.*\): calls: call \d+ of \w+: the model makes release\(\w+\),"
        r" the manager release\(",
    ),
    Bug(
        "unwind-puts-hits-back-as-newest",
        "A commit that is undone returns pool hits as the newest, and not to their old places.",
        r"Commit\(.*\): state: pool: model \(.*\), manager \(",
    ),
    Bug(
        "refusal-puts-hits-back-as-newest",
        "A commit that is refused for the budget returns the hits it had taken as the newest.",
        r"Commit\(.*\): state: pool: model \(.*\), manager \(",
    ),
    Bug(
        "room-kept-after-a-failed-clear",
        "The room set aside for what could not be cleared is never free again.",
        r"(Release|Close)\(.*\): calls: call \d+ of \w+: the model makes (clear|fence)\(",
    ),
    Bug(
        "room-kept-after-a-failed-fence",
        "A release that unmaps nothing keeps the room that it had set aside in the pool.",
        r"(Release|Close)\(.*\): calls: call \d+ of \w+: the model makes (clear|fence)\(",
    ),
    Bug(
        "room-set-aside-by-handles",
        "Room in the pool is set aside by the handle, and used up by the granule.",
        r"(Release|Close)\(.*\): calls: call \d+ of \w+: the model makes (clear|fence|unmap)\(.*,"
        r" the manager clear\(",
    ),
    # --- the budget -------------------------------------------------------------------------
    Bug(
        "free-ignores-the-unattributed",
        "Admission takes memory that nobody can name for free.",
        r"Commit\(.*\): (calls: call \d+ of commit: the model makes (nothing|release\()"
        r"|outcome: the model says BUDGET)",
    ),
    Bug(
        "budget-hides-the-excess",
        "A refusal says that nothing is free where more than the limit is charged.",
        r"Commit\(.*\): outcome: the model says BUDGET \(.*free_bytes=-\d+.*, the manager BUDGET"
        r" \(.*free_bytes=0,",
    ),
    Bug(
        "gives-up-for-any-create-without-effect",
        "The pool is given up for every create without effect, and not for lack of memory only.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes (nothing|release\(\w+\)),"
        r" the manager release\(",
    ),
    Bug(
        "gives-up-as-if-nothing-were-free",
        "Short of the limit, a commit gives up all that it needs, and not what it is short of.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes create\(.*,"
        r" the manager release\(",
        examples_miss=False,
    ),
    # --- quarantine -------------------------------------------------------------------------
    Bug(
        "proof-ends-one-granule-of-quarantine",
        "A value handed out again ends the quarantine of one granule, whatever the handle's size.",
        r"Commit\(.*\): state: ledger: model Ledger\(.*, manager Ledger\(.*quarantined=[1-9]",
    ),
    Bug(
        "barred-names-one-window",
        "A refusal for quarantine names the first window only.",
        r"(Commit|Release)\(.*\): outcome: the model says QUARANTINED \(offsets_bytes=\(\d+, .*,"
        r" the manager QUARANTINED \(offsets_bytes=\(\d+,\)\)",
    ),
    Bug(
        "neighbour-counts-as-overlapping",
        "A mapping that ends where a range begins counts as lying in the range.",
        r"(Commit|Release)\(.*\): (outcome: .*, the manager QUARANTINED \("
        r"|calls: call 1 of \w+: the model makes \w+\(.*\), the manager nothing)",
        examples_miss=False,
    ),
    Bug(
        "reclaim-counts-granules",
        "A reclaim says how many granules it freed, and not how many mappings.",
        r"Reclaim\(.*\): outcome: the model says Done\(value=\d+\), the manager Done\(value=\d+\)",
    ),
    # --- mappings ---------------------------------------------------------------------------
    Bug(
        "failed-rights-say-none",
        "After a failed set_access a mapping counts as one without rights, as if that were known.",
        r"Commit\(.*\): outcome: the model says Failed\(fault=.*rights=<Rights.UNKNOWN.*,"
        r" the manager Failed\(.*rights=<Rights.NONE",
    ),
    Bug(
        "rights-go-on-after-a-fault",
        "After a run that was given no rights, the runs behind it are still given theirs.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes unmap\(.*,"
        r" the manager set_access\(",
    ),
    Bug(
        "run-ends-at-a-larger-handle",
        "A run of mappings ends where a larger handle follows, though there is no gap.",
        r"(Commit|Release|Close)\(.*\): calls: call \d+ of \w+: the model makes"
        r" (set_access|clear|unmap)\((\w+)(\S*), .*, the manager \2\(\3\4, ",
    ),
    Bug(
        "unmap-stops-asking-at-one-there",
        "Of a run that could not be unmapped, what lies behind a mapping still there is not asked.",
        r"(Release|Close)\(.*\): calls: call \d+ of \w+: the model makes query\(.*, the manager",
        examples_miss=False,
    ),
    # --- what is said -----------------------------------------------------------------------
    Bug(
        "not-committed-names-rounded-bytes",
        "A refused release names the range rounded to windows, and not the one that was given.",
        r"Release\(.*\): outcome: the model says NOT_COMMITTED \(.*, the manager NOT_COMMITTED \(",
    ),
)
