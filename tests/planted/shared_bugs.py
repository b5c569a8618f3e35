"""Bugs planted in what reservations share."""

from planted.bug import Bug

SHARED = (
    # --- who holds shared memory ------------------------------------------------------------
    Bug(
        "counted-when-the-map-is-confirmed",
        "A mapping's reference is counted once its map is confirmed, and so not of one in doubt.",
        r"(Commit|Attach|Fork)\(.*\): (calls: call \d+ of \w+: the model makes |outcome: |state: )",
    ),
    Bug(
        "held-misses-what-mappings-leave",
        "What only prefixes keep is counted when a prefix ends, and not when a mapping goes.",
        r"(Release|Close)\(.*\): state: ledger: model Ledger\(.*held=[1-9].*, manager Ledger\(",
        source="B31 UbiquitousLearning/mllm#656",
    ),
    Bug(
        "residue-leaves-out-held",
        "What is kept by prefixes alone after a failure is no part of its residue.",
        r"\w+\(.*\): outcome: the model says Failed\(fault=.*held=-?[1-9].*, the manager Failed\(",
    ),
    Bug(
        "attach-keeps-its-pins",
        "The references that an attach counts ahead stay when it is done.",
        r"\w+\(.*\): (calls: call \d+ of \w+: the model makes release\(\w+\),|state: ledger: )",
        source="B28 pytorch/pytorch#133600",
    ),
    Bug(
        "failed-attach-keeps-its-pins",
        "The references that an attach counts ahead stay when it fails.",
        r"\w+\(.*\): (calls: call \d+ of \w+: the model makes release\(\w+\),"
        r"|state: ledger: |outcome: )",
        source="B17 sgl-project/sglang#40360",
    ),
    Bug(
        "pins-of-one-handle-ended-once",
        "A handle that is attached twice at once is counted ahead twice, and once taken back.",
        r"\w+\(.*\): (calls: call \d+ of \w+: the model makes release\(\w+\),|state: ledger: )",
    ),
    Bug(
        "sharer-releases-under-the-others",
        "Who leaves releases the memory, whoever else has it.",
        r"(Release|Close)\(.*\): (calls: call \d+ of \w+: the model makes .*, the manager release\("
        r"|exception: )",
        source="B45 openxla/xla#43399",
    ),
    Bug(
        "shared-handle-disposed-of-twice",
        "A handle that leaves through two windows at once is disposed of for each of them.",
        r"(Release|Close)\(.*\): (exception: |calls: call \d+ of \w+: the model makes .*,"
        r" the manager release\()",
    ),
    Bug(
        "reclaim-releases-under-the-others",
        "A reclaim releases the memory of what it unmapped, whoever else has it.",
        r"Reclaim\(.*\): calls: call \d+ of reclaim: the model makes .*, the manager release\(",
    ),
    Bug(
        "reclaim-pools-the-handle",
        "A reclaim pools the memory of what it unmapped, which nobody has cleared.",
        r"Reclaim\(.*\): (calls: call \d+ of reclaim: the model makes release\(\w+\),|state: )",
    ),
    Bug(
        "pools-what-was-sealed",
        "Memory that was sealed is pooled, and cleared for that, which its rights forbid.",
        r"(Release|Close)\(.*\): calls: call \d+ of \w+: the model makes .*, the manager"
        r" (clear|release)\(",
    ),
    # --- publish ----------------------------------------------------------------------------
    Bug(
        "publish-holds-all-but-the-last",
        "A prefix holds all of its handles but the last.",
        r"\w+\(.*\): (calls: call \d+ of \w+: the model makes .*, the manager release\("
        r"|state: |outcome: |exception: )",
        source="B24 sgl-project/mini-sglang#52",
    ),
    Bug(
        "second-prefix-holds-nothing",
        "Memory that a prefix holds is not held by a second one as well.",
        r"\w+\(.*\): (calls: call \d+ of \w+: the model makes .*, the manager (release|clear)\("
        r"|state: |outcome: |exception: )",
        source="B122 vllm-project/vllm#55092",
    ),
    Bug(
        "publish-takes-a-hole-along",
        "A prefix may have a hole, and is shorter than its length says.",
        r"Publish\(.*\): outcome: the model says NOT_COMMITTED .*, the manager Done\(",
    ),
    Bug(
        "publish-takes-part-of-a-handle",
        "A handle that reaches over the end of a prefix is taken for a part of it.",
        r"Publish\(.*\): outcome: the model says STRADDLING .*, the manager ",
    ),
    Bug(
        "publish-takes-a-handle-twice",
        "A prefix may hold a handle twice, where memory was attached repeatedly.",
        r"Publish\(.*\): outcome: the model says REPEATED .*, the manager ",
    ),
    Bug(
        "publish-rounds-up",
        "The length of a prefix is rounded up to a window that is not full.",
        r"Publish\(.*\): outcome: the model says .*, the manager ",
        source="B32 sgl-project/sglang#10637",
    ),
    # --- seal -------------------------------------------------------------------------------
    Bug(
        "seal-without-a-fence",
        "A seal takes rights without waiting for the work that uses them.",
        r"Seal\(.*\): (exception: DriverMisuse: set_access under unfinished work"
        r"|calls: call 1 of seal: the model makes fence\()",
    ),
    Bug(
        "seal-leaves-the-owner-writing",
        "A seal takes no right from the owner.",
        r"Seal\(.*\): (calls: call \d+ of seal: the model makes set_access\(|outcome: )",
    ),
    Bug(
        "seal-takes-what-lies-behind",
        "A seal takes the right to write from all of its reservation.",
        r"Seal\(.*\): (calls: call \d+ of seal: the model makes .*, the manager set_access\("
        r"|outcome: )",
        source="B50 ai-dynamo/dynamo#11201",
    ),
    Bug(
        "seal-touches-what-is-read",
        "A seal sets the rights of windows that are sealed already, under those who read them.",
        r"Seal\(.*\): (calls: call \d+ of seal: the model makes .*, the manager set_access\("
        r"|outcome: )",
    ),
    Bug(
        "seal-undo-opens-an-older-prefix",
        "A seal that is undone gives back the right to write what an older prefix has sealed.",
        r"Seal\(.*\): calls: call \d+ of seal: the model makes .*, the manager"
        r" set_access\(.*, RW\)",
    ),
    Bug(
        "sealed-before-the-rights-are",
        "A prefix counts as sealed before its rights are set, and stays so when they are not.",
        r"Seal\(.*\): (outcome: |state: )",
    ),
    Bug(
        "sealed-prefix-still-listed",
        "A prefix stays listed as unsealed, so that release and close cancel it once it is sealed.",
        r"(Release|Close)\(.*\): (calls: |state: |outcome: |exception: )",
    ),
    # --- the end of prefixes ----------------------------------------------------------------
    Bug(
        "release-does-not-cancel",
        "An unsealed prefix outlives the release of its memory.",
        r"Release\(.*\): (calls: |state: only the manager has |outcome: )",
    ),
    Bug(
        "release-cancels-what-ends-before-it",
        "A release cancels an unsealed prefix that ends where its range begins.",
        r"Release\(.*\): (state: only the model has |outcome: |calls: )",
    ),
    Bug(
        "close-does-not-cancel",
        "An unsealed prefix outlives its reservation.",
        r"Close\(.*\): (calls: |state: only the manager has |outcome: )",
    ),
    Bug(
        "cancelled-prefix-still-listed",
        "A prefix that is retired unsealed stays listed, and is cancelled once more.",
        r"(Release|Close)\(.*\): exception: KeyError: ",
    ),
    Bug(
        "retire-releases-under-sharers",
        "A retire releases the memory of its prefix, whoever maps it.",
        r"Retire\(.*\): (calls: call \d+ of retire: the model makes .*, the manager release\("
        r"|outcome: )",
    ),
    Bug(
        "retire-releases-nothing",
        "A retire leaves the memory that nobody has any more to somebody else.",
        r"Retire\(.*\): calls: call 1 of retire: the model makes release\(\w+\),"
        r" the manager nothing",
        source="B16 LMCache/LMCache#1130",
    ),
    Bug(
        "retire-drops-twice",
        "Two layers each drop the references of a prefix, and the counter stops at zero.",
        r"Retire\(.*\): (calls: call \d+ of retire: the model makes .*, the manager release\("
        r"|outcome: |state: )",
        source="B27 LMCache/LMCache#2954",
    ),
    # --- commit beside shared memory --------------------------------------------------------
    Bug(
        "commit-takes-sealed-for-committed",
        "A commit over sealed windows is a success, and they cannot be written.",
        r"Commit\(.*\): (outcome: the model says SHARED |calls: call 1 of commit: the model makes"
        r" nothing)",
    ),
    Bug(
        "commit-takes-unknown-for-committed",
        "A commit over windows whose rights are not known is a success.",
        r"Commit\(.*\): (outcome: the model says RIGHTS_UNKNOWN |calls: call 1 of commit: the model"
        r" makes nothing)",
    ),
    Bug(
        "sealed-refusal-names-the-first",
        "A refused commit names the end of the first sealed window, with others behind it.",
        r"Commit\(.*\): outcome: the model says SHARED \(.*, the manager SHARED \(",
    ),
    # --- attach -----------------------------------------------------------------------------
    Bug(
        "attach-before-the-seal",
        "A prefix can be attached while its owner still writes it.",
        r"Attach\(.*\): (calls: call 1 of attach: the model makes nothing, the manager map\("
        r"|outcome: )",
        source="B44 sgl-project/sglang#28374",
    ),
    Bug(
        "attach-gives-the-right-to-write",
        "Sharers may write what they share.",
        r"Attach\(.*\): calls: call \d+ of attach: the model makes set_access\(.*, READ\),"
        r" the manager set_access\(.*, RW\)",
        source="B51 smol-machines/smolvm#742",
    ),
    Bug(
        "attach-undoes-the-last-target",
        "Of several targets, only the one that failed is undone.",
        r"Attach\(.*\): (calls: call \d+ of attach: the model makes unmap\(.*, the manager nothing"
        r"|outcome: |state: )",
    ),
    Bug(
        "attach-goes-on-behind-a-failed-target",
        "Of several targets, those behind one that failed are attached all the same.",
        r"Attach\(.*\): calls: call \d+ of attach: the model makes .*, the manager"
        r" (map|set_access)\(",
    ),
    Bug(
        "attach-rounds-its-offset",
        "An offset inside a window is taken for the window's begin.",
        r"Attach\(.*\): (outcome: the model says MISALIGNED |calls: call 1 of attach: the model"
        r" makes nothing)",
    ),
    Bug(
        "attach-looks-at-its-begin-only",
        "A prefix may reach over the end of a reservation, if it begins within.",
        r"Attach\(.*\): (outcome: the model says TOO_LONG |calls: call 1 of attach: the model makes"
        r" nothing)",
        source="B58 ovg-project/kvcached#437",
    ),
    Bug(
        "attach-overlooks-earlier-targets",
        "Two targets may be the same windows.",
        r"Attach\(.*\): (exception: |outcome: the model says OCCUPIED |calls: call 1 of attach: the"
        r" model makes nothing)",
    ),
    Bug(
        "group-refused-for-its-first",
        "Of several refusals, the first target's is given, and not the one that takes precedence.",
        r"(Attach|Fork)\(.*\): outcome: the model says [A-Z]+.*, the manager [A-Z]+",
    ),
    # --- fork -------------------------------------------------------------------------------
    Bug(
        "fork-shares-the-cut-handle",
        "A handle that is sealed is shared as a whole, although the length ends inside it.",
        r"Fork\(.*\): (calls: call \d+ of fork: the model makes .*, the manager map\("
        r"|outcome: |exception: )",
        source="B15 bytedance-iaas/sglang#508",
    ),
    Bug(
        "fork-shares-what-can-be-written",
        "A fork shares whole handles below its length, sealed or not.",
        r"Fork\(.*\): (outcome: the model says UNSEALED |calls: call 1 of fork: the model makes"
        r" nothing)",
    ),
    Bug(
        "fork-copies-whole-granules",
        "A child gets all of the last window, and not the bytes below its length alone.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes copy\(.*, the manager copy\(",
    ),
    Bug(
        "fork-copies-whole-words",
        "The bytes that a child gets are rounded down to words of four.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes copy\(.*, the manager ",
    ),
    Bug(
        "fork-copies-from-the-begin",
        "The copy begins where the parent begins, and not behind what is shared.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes copy\(.*, the manager copy\(",
    ),
    Bug(
        "fork-without-the-first-fence",
        "A fork copies what may still be written.",
        r"Fork\(.*\): (exception: DriverMisuse: |calls: call \d+ of fork: the model makes fence\()",
    ),
    Bug(
        "fork-without-the-last-fence",
        "A fork is done while its copy is still under way.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes fence\(\), the manager",
    ),
    Bug(
        "fork-pools-what-it-copied-into",
        "A fork that is undone pools memory that holds its parent's bytes.",
        r"Fork\(.*\): (calls: call \d+ of fork: the model makes release\(|outcome: |state: )",
    ),
    Bug(
        "fork-unmaps-under-a-copy",
        "A fork that is undone unmaps memory that is still being copied to.",
        r"Fork\(.*\): (exception: DriverMisuse: unmap under unfinished work"
        r"|calls: call \d+ of fork: the model makes fence\()",
    ),
    Bug(
        "failed-copy-leaves-no-trace",
        "A copy that failed is taken for one that was never begun.",
        r"Fork\(.*\): (exception: DriverMisuse: unmap under unfinished work"
        r"|calls: call \d+ of fork: the model makes )",
    ),
    Bug(
        "half-undone-child-left-open",
        "A child stays open where a mapping in it could not be undone.",
        r"Fork\(.*\): outcome: the model says Failed\(fault=.*<Standing.CLOSED",
    ),
    Bug(
        "fork-frees-the-oldest-child-first",
        "Of several children, the oldest is given up first.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes address_free\((\w+), .*, the manager"
        r" address_free\((?!\1,)",
    ),
    Bug(
        "fork-releases-behind-all-unmaps",
        "A fork that is undone unmaps what it shared before it releases memory of its own.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes release\(\w+\), the manager unmap\(",
    ),
    Bug(
        "lost-fork-leaves-children-open",
        "Children that a lost device leaves half made stay open.",
        r"Fork\(.*\): outcome: the model says Failed\(fault=",
    ),
    Bug(
        "child-as-long-as-its-prefix",
        "A child's reservation is as long as what it begins with, and cannot grow like its parent.",
        r"Fork\(.*\): calls: call \d+ of fork: the model makes address_reserve\(",
    ),
)
