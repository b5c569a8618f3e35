"""Bugs planted in a copy of the backend: the swarm has to find them, and most examples do not.

A comparison that lets a known bug pass proves nothing about the unknown ones.
"""

import re
from pathlib import Path

import pytest

from planted.bugs import BUGS, Bug

from support.planted import PATCHES, PatchFails, apply_patch, examples, planted, swarm

SEQUENCES = 5_000
"""How far the swarm goes for a bug; nearly all are met much earlier."""

EACH_BUG = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)

SOURCE = "one\ntwo\nthree\n"
PATCH = """\
--- a/package/file.py
+++ b/package/file.py
@@ -1,2 +1,2 @@
 one
-two
+zwei
"""


@EACH_BUG
def test_planted_bug_is_found_by_the_swarm(tmp_path: Path, bug: Bug) -> None:
    verdict = swarm(planted(bug.name, tmp_path), SEQUENCES)
    assert verdict.found is not None, f"not found in {verdict.operations} operations: {bug.wrong}"
    assert re.match(rf"step \d+ {bug.shows}", verdict.found), verdict.found


@EACH_BUG
def test_planted_bug_passes_the_examples_where_it_says_so(tmp_path: Path, bug: Bug) -> None:
    passed, told = examples(planted(bug.name, tmp_path))
    assert passed is bug.examples_miss, told


def test_planted_nothing_shows_no_divergence(tmp_path: Path) -> None:
    verdict = swarm(planted(None, tmp_path), 300)
    assert (verdict.found, verdict.sequences) == (None, 300)


def test_planted_nothing_passes_the_examples(tmp_path: Path) -> None:
    passed, told = examples(planted(None, tmp_path))
    assert passed, told


def test_planted_bugs_are_as_many_as_patches() -> None:
    names = sorted(bug.name for bug in BUGS)
    assert names == sorted(path.stem for path in PATCHES.glob("*.patch"))
    assert len(set(names)) == len(names) >= 16
    assert sum(bug.examples_miss for bug in BUGS) * 2 >= len(BUGS)


# --- patches ------------------------------------------------------------------------------------


def patched(tmp_path: Path, source: str, patch: str) -> str:
    file = tmp_path / "package" / "file.py"
    file.parent.mkdir()
    _ = file.write_text(source, encoding="utf-8")
    apply_patch("some-bug", patch, tmp_path)
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("above", ["", "zero\n", "zero\n" * 50])
def test_planted_patch_fits_wherever_its_text_is(tmp_path: Path, above: str) -> None:
    assert patched(tmp_path, above + SOURCE, PATCH) == above + "one\nzwei\nthree\n"


@pytest.mark.parametrize("source", ["one\n2\nthree\n", " one\ntwo\n", "none\ntwo\n", "one\n two\n"])
def test_planted_patch_that_does_not_fit_is_named(tmp_path: Path, source: str) -> None:
    with pytest.raises(PatchFails, match=r"^some-bug: .* line 1 of package/file\.py .* 0 places"):
        _ = patched(tmp_path, source, PATCH)


def test_planted_patch_that_fits_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(PatchFails, match=r"^some-bug: .* in 2 places"):
        _ = patched(tmp_path, SOURCE * 2, PATCH)


@pytest.mark.parametrize(
    "patch", ["", PATCH.replace("zwei", "two"), PATCH.replace("file", "other"), PATCH + "\nEnd\n"]
)
def test_planted_patch_that_changes_nothing_is_named(tmp_path: Path, patch: str) -> None:
    with pytest.raises(PatchFails, match=r"^some-bug: "):
        _ = patched(tmp_path, SOURCE, patch)
