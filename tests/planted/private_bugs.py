"""Bugs planted in what one reservation has to itself, and in what all operations need."""

from planted.bug import Bug

PRIVATE = (
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
        "unwind-puts-hits-back-first",
        "A commit that is undone pools its hits before the releases, one of which may lose the"
        " device.",
        r"Commit\(.*\): outcome: the model says Failed\(fault=.*quarantined=True",
        form="batched",
    ),
    Bug(
        "refusal-puts-hits-back-as-newest",
        "A commit that is refused for the budget returns the hits it had taken as the newest.",
        r"Commit\(.*\): state: pool: model \(.*\), manager \(",
    ),
    Bug(
        "refusal-loses-the-hits",
        "A commit that is refused for the budget keeps the pooled handles that it had taken.",
        r"(Commit|Fork)\(.*\): state: only the model has \[\('pooled', \d+\)",
        source="B05 ovg-project/kvcached#364",
    ),
    Bug(
        "undo-pools-what-is-still-mapped",
        "A commit that is undone pools its hits, also one whose mapping would not go.",
        r"Commit\(.*\): outcome: the model says Failed\(fault=",
        source="B26 vllm-project/vllm-ascend#15990",
    ),
    Bug(
        "pool-put-back-one-place",
        "A handle that comes back to the pool passes one newer handle at most on its way.",
        r"(Trim|Commit)\(.*\): (calls: call \d+ of \w+: the model makes release\(\w+\),"
        r" the manager release\(|state: pool: model)",
    ),
    Bug(
        "pool-counts-before-it-looks",
        "The pool's size goes down before the look-up, whether or not there is such a handle.",
        r"Commit\(.*\): (outcome: the model says BUDGET|state: ledger: model .*pooled=0,.*"
        r" manager .*pooled=-)",
        source="B40 rapidsai/rmm#2404",
    ),
    Bug(
        "last-granule-stays-in-the-pool",
        "The pool never gives up its last granule.",
        r"(Trim|Commit)\(.*\): calls: call \d+ of \w+: the model makes release\(\w+\),",
        source="B77 NVIDIA/TensorRT-LLM#11746",
    ),
    Bug(
        "pools-before-it-releases",
        "What leaves goes into the pool first and back to the driver second, not window by window.",
        r"(Release|Close)\(.*\): (outcome: the model says Failed\(|calls: |state: )",
    ),
    Bug(
        "hits-get-no-rights-again",
        "A handle out of the pool is mapped, and not given any rights: it had them before.",
        r"(Commit|Fork)\(.*\): calls: call \d+ of \w+: the model makes set_access\(",
        source="B82 openxla/xla#41626",
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
    Bug(
        "trim-ends-at-a-failed-release",
        "A trim stops at a release that fails, and leaves the rest of the pool alone.",
        r"Trim\(.*\): calls: call \d+ of trim: the model makes release\(",
    ),
    # --- the budget -------------------------------------------------------------------------
    Bug(
        "free-ignores-the-unattributed",
        "Admission takes memory that nobody can name for free.",
        r"(Commit|Fork)\(.*\): (calls: call \d+ of \w+: the model makes (nothing|release\()"
        r"|outcome: the model says BUDGET)",
    ),
    Bug(
        "budget-hides-the-excess",
        "A refusal says that nothing is free where more than the limit is charged.",
        r"Commit\(.*\): outcome: the model says BUDGET \(.*free_bytes=-\d+.*, the manager BUDGET"
        r" \(.*free_bytes=0,",
    ),
    Bug(
        "excess-clamped-to-zero",
        "What is charged over the limit is no part of what a commit is short of.",
        r"(Commit|Fork)\(.*\): (calls: call \d+ of \w+: the model makes (nothing|release\()"
        r"|outcome: the model says BUDGET)",
        source="B34 vllm-project/vllm#53591",
    ),
    Bug(
        "no-budget-check-beside-a-hit",
        "A commit that has a hit in the pool is never short of anything.",
        r"(Commit|Fork)\(.*\): (calls: call \d+ of \w+: the model makes (nothing|release\()"
        r"|outcome: the model says BUDGET)",
        source="B37 kekzl/imp#1649",
    ),
    Bug(
        "charged-before-the-create",
        "A handle is charged before it is created, and stays so when it is not.",
        r"Commit\(.*\): (state: ledger: model|outcome: |calls: )",
        source="B39 rapidsai/rmm#575",
    ),
    Bug(
        "grant-returned-in-bytes",
        "What a failed commit had set aside and not used goes back in bytes, where granules count.",
        r"Commit\(.*\): state: ledger: model Ledger\(.*, manager Ledger\(.*granted=-",
        source="B08 facebookincubator/velox#5639",
    ),
    Bug(
        "doubtful-addresses-charged-as-memory",
        "Addresses that may have been reserved are charged like memory.",
        r"Reserve\(.*\): state: ledger: model Ledger\(.*unattributed_addresses=[1-9]",
        source="B98 ggml-org/llama.cpp#4680",
    ),
    Bug(
        "gives-up-for-any-create-without-effect",
        "The pool is given up for every create without effect, and not for lack of memory only.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes (nothing|release\(\w+\)),"
        r" the manager release\(",
        source="B116 kvcache-ai/Mooncake#1297",
    ),
    Bug(
        "gives-up-as-if-nothing-were-free",
        "Short of the limit, a commit gives up all that it needs, and not what it is short of.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes create\(.*,"
        r" the manager release\(",
    ),
    Bug(
        "gives-up-for-the-failing-create-only",
        "Short of memory, a commit gives up what one create needs, and not what the rest need.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes release\(\w+\), the manager"
        r" create\(",
    ),
    Bug(
        "retries-until-the-pool-is-empty",
        "Short of memory, a commit gives up more and tries again until the pool is empty.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes .*, the manager release\(",
        source="B68 ggml-org/llama.cpp#22155",
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
        r"(Commit|Publish|Attach|Fork|Release)\(.*\): outcome: the model says QUARANTINED"
        r" \(offsets_bytes=\(\d+, .*, the manager QUARANTINED \(offsets_bytes=\(\d+,\)\)",
    ),
    Bug(
        "release-barred-by-what-stays",
        "A release is refused for a quarantined mapping that it would only have cut through.",
        r"Release\(.*\): .*the manager (QUARANTINED \(|nothing)",
    ),
    Bug(
        "kept-leaves-out-quarantine",
        "A release does not name the windows it keeps where these are quarantined.",
        r"Release\(.*\): outcome: the model says (Done|Failed)\(.*kept=\(.*kept=\(",
        form="batched",
    ),
    Bug(
        "close-lists-every-window-of-a-handle",
        "A close names every window of the mappings that stay, and not their first.",
        r"Close\(.*\): outcome: the model says Done\(value=\(.*\)\), the manager Done\(value=\(",
    ),
    Bug(
        "neighbour-counts-as-overlapping",
        "A mapping that ends where a range begins counts as lying in the range.",
        r"(Commit|Release)\(.*\): (outcome: .*, the manager QUARANTINED \("
        r"|calls: call 1 of \w+: the model makes \w+\(.*\), the manager nothing)",
    ),
    Bug(
        "reclaim-counts-granules",
        "A reclaim says how many granules it freed, and not how many mappings.",
        r"Reclaim\(.*\): outcome: the model says Done\(value=\d+\), the manager Done\(value=\d+\)",
    ),
    Bug(
        "reclaim-ends-at-a-fault",
        "A reclaim of everything stops behind the first reservation in which a call failed.",
        r"Reclaim\(.*\): calls: call \d+ of reclaim: the model makes query\(.*, the manager"
        r" nothing",
    ),
    Bug(
        "open-question-taken-for-gone",
        "A reclaim whose question stays unanswered takes the mapping for gone.",
        r"Reclaim\(.*\): calls: call \d+ of reclaim: the model makes ",
    ),
    Bug(
        "failed-clear-forgotten-at-the-fence",
        "Where the fence behind the clears fails, a run whose own clear failed is not in doubt.",
        r"(Release|Close)\(.*\): outcome: the model says Failed\(fault=.*CLEAR",
    ),
    Bug(
        "lost-device-spares-what-is-there",
        "When the device is lost, a mapping that was just seen to be there is not quarantined.",
        r"(Release|Close)\(.*\): outcome: the model says Failed\(fault=",
    ),
    Bug(
        "lost-device-skips-the-clean-up",
        "A close that loses the device quarantines nothing of what it had in hand.",
        r"Close\(.*\): outcome: the model says Failed\(fault=",
        source="B13 NVIDIA/nccl#1968",
    ),
    Bug(
        "closed-reservation-still-releases",
        "A release is carried out on a closed reservation that something quarantined keeps.",
        r"Release\(.*\): outcome: the model says STALE ",
        source="B25 sgl-project/sglang#27586",
    ),
    # --- handles ----------------------------------------------------------------------------
    Bug(
        "handle-never-released",
        "What is unmapped and not pooled is not released either.",
        r"(Release|Close)\(.*\): calls: call \d+ of \w+: the model makes release\(\w+\),",
        source="B11 NVIDIA/cuda-python#2344",
    ),
    Bug(
        "failed-release-tried-again",
        "A release that fails is made a second time, although it may have worked.",
        r"\w+\(.*\): calls: call \d+ of \w+: the model makes .*, the manager release\(",
        source="B20 vllm-project/vllm#36651",
    ),
    Bug(
        "failed-release-goes-back-to-the-pool",
        "A pooled handle whose release failed is pooled again, for the next one to release.",
        r"Commit\(.*\): (outcome: the model says Failed\(|state: |calls: )",
        source="B21 fzyzcjy/torch_memory_saver#92",
    ),
    Bug(
        "failed-release-counts-as-done",
        "A handle is gone from the books also where its release failed.",
        r"\w+\(.*\): outcome: the model says Failed\(fault=.*quarantined=True",
        source="B78 NVIDIA/cuda-python#2455",
    ),
    Bug(
        "maps-after-a-failed-create",
        "A commit maps the handles that it got, although there are too few of them.",
        r"(Commit\(.*\): calls: call \d+ of commit: the model makes .*, the manager"
        r" (map|set_access)\(|Fork\(.*\): (exception: StopIteration|calls: ))",
        source="B97 vllm-project/vllm#12981",
    ),
    Bug(
        "nothing-undone-before-the-first-map",
        "A commit that failed before its first map keeps the handles that it had created.",
        r"Commit\(.*\): (calls: call \d+ of commit: the model makes release\(\w+\),"
        r" the manager nothing|state: )",
        source="B03 vllm-project/vllm#34602",
    ),
    # --- mappings ---------------------------------------------------------------------------
    Bug(
        "mapped-before-the-map",
        "A mapping is in the books before its map, and stays there when that fails.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes query\(.*, the manager unmap\(",
        source="B01 pytorch/pytorch#188008",
    ),
    Bug(
        "batch-goes-on-after-a-failed-map",
        "A commit goes on behind a map that failed.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes .*, the manager"
        r" (map|set_access)\(",
        source="B04 ovg-project/kvcached#412",
    ),
    Bug(
        "failed-undo-ignored",
        "What an unmap while undoing comes to is not looked at.",
        r"Commit\(.*\): outcome: the model says Failed\(fault=.*quarantined=True",
        source="B02 pytorch/pytorch#187955",
    ),
    Bug(
        "undo-takes-the-whole-range",
        "A commit that is undone unmaps all of its reservation, and not what it had mapped.",
        r"Commit\(.*\): (exception: DriverMisuse: |calls: call \d+ of commit: the model makes)",
        source="B09 NVIDIA/open-gpu-kernel-modules#948",
    ),
    Bug(
        "part-of-a-handle-mapped",
        "One granule is mapped of every handle, whatever its size.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes map\(.*, the manager map\(",
        source="B55 NVIDIA/cuda-python#2908",
    ),
    Bug(
        "failed-rights-ignored",
        "The answer of set_access is not looked at.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes unmap\(",
        source="B53 ROCm/rocm-systems#10778",
    ),
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
        "rights-given-one-by-one",
        "Every mapping is given its rights by a call of its own.",
        r"Commit\(.*\): calls: call \d+ of commit: the model makes (set_access\((\S+), .*,"
        r" the manager set_access\(\2, |.*, the manager set_access\()",
        source="B120 pytorch/pytorch#130890",
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
    ),
    Bug(
        "forgotten-before-the-unmap",
        "Mappings are gone from the books before their unmap, which may fail.",
        r"\w+\(.*\): (calls: call \d+ of \w+: the model makes |outcome: |state: |exception: )",
        source="B07 NVIDIA/DALI#3545",
    ),
    Bug(
        "failed-unmap-taken-for-done",
        "After an unmap that failed, everything counts as unmapped, and nobody asks.",
        r"\w+\(.*\): calls: call \d+ of \w+: the model makes query\(",
        source="B73 vllm-project/vllm#45565",
    ),
    Bug(
        "one-unmap-counted-as-one-mapping",
        "An unmap of several mappings ends the books of the first of them.",
        r"(Release|Close)\(.*\): (calls: call \d+ of \w+: the model makes |outcome: |state: )",
        source="B76 ROCm/ROCR-Runtime#285",
    ),
    # --- waiting for the device -------------------------------------------------------------
    Bug(
        "release-without-a-fence",
        "A release unmaps without waiting for the work that uses the memory.",
        r"Release\(.*\): (exception: DriverMisuse: unmap under unfinished work"
        r"|calls: call 1 of release: the model makes fence\()",
        source="B63 vllm-project/vllm#45552",
    ),
    Bug(
        "failed-fence-ignored",
        "A close goes on behind a fence that failed.",
        r"Close\(.*\): (exception: DriverMisuse: |calls: call 2 of close: the model makes nothing)",
        source="B64 NVIDIA/cuda-python#2886",
    ),
    Bug(
        "no-fence-after-the-clear",
        "A release unmaps memory while it is still being cleared.",
        r"Release\(.*\): (exception: DriverMisuse: |calls: call \d+ of release: the model makes"
        r" fence\()",
        source="B67 openvm-org/stark-backend#362",
    ),
    # --- ranges and arguments ---------------------------------------------------------------
    Bug(
        "range-freed-before-the-handles",
        "A close gives the addresses back before the handles.",
        r"Close\(.*\): calls: call \d+ of close: the model makes release\(\w+\), the manager"
        r" address_free\(",
        source="B06 kvcache-ai/Mooncake#2380",
    ),
    Bug(
        "range-freed-under-what-stays",
        "A close gives the addresses back although one mapping would not go.",
        r"Close\(.*\): (exception: |calls: call \d+ of close: the model makes nothing, the manager"
        r" address_free\()",
    ),
    Bug(
        "close-takes-mappings-for-windows",
        "A close looks as many windows far as the range has mappings.",
        r"Close\(.*\): calls: call \d+ of close: the model makes ",
        source="B14 sgl-project/sglang#35203",
    ),
    Bug(
        "walk-ends-at-a-hole",
        "A release stops at the first hole in its range.",
        r"Release\(.*\): calls: call \d+ of release: the model makes unmap\(",
        source="B18 NVIDIA/open-gpu-kernel-modules#1354",
    ),
    Bug(
        "size-rounded-by-itself",
        "A commit rounds its size without its offset, and so may miss the window it ends in.",
        r"Commit\(.*\): (outcome: |calls: |state: )",
        source="B56 kvcache-ai/Mooncake#1332",
    ),
    Bug(
        "release-takes-the-page-it-ends-in",
        "A release takes the window that its range ends in, of which others may use the rest.",
        r"Release\(.*\): (outcome: |calls: |state: )",
        source="B57 sgl-project/sglang#38981",
    ),
    Bug(
        "zero-size-reaches-the-driver",
        "A reservation of no bytes is asked of the driver.",
        r"Reserve\(size_bytes=0, .*\): calls: call 1 of reserve: the model makes nothing",
        source="B101 NVIDIA/cuda-python#2910",
    ),
    Bug(
        "second-release-is-silent",
        "A release of what is not committed is a success.",
        r"Release\(.*\): outcome: the model says NOT_COMMITTED .*, the manager Done\(",
        source="B102 ovg-project/kvcached#381",
    ),
    Bug(
        "not-committed-names-rounded-bytes",
        "A refused release names the range rounded to windows, and not the one that was given.",
        r"Release\(.*\): outcome: the model says NOT_COMMITTED \(.*, the manager NOT_COMMITTED \(",
    ),
)
