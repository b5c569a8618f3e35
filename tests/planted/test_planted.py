"""Bugs planted in a copy of the backend: the comparison has to find each of them.

A comparison that lets a known bug pass proves nothing about the unknown ones.
"""

from pathlib import Path

import pytest

from planted.bugs import BUGS, Bug
from planted.private_bugs import PRIVATE
from planted.table import FORMS, PAGE, SEQUENCES, complete, load, page

from support.planted import PATCHES, PatchFails, apply_patch, examples, planted, search

SECONDS = 120
"""How long a form may look for its bugs, on however slow a machine; most take one."""

EACH_BUG = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
EACH_FORM = pytest.mark.parametrize("form", FORMS)

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
def test_planted_bug_is_found(tmp_path: Path, bug: Bug) -> None:
    sequences = SEQUENCES if bug.form == "swarm" else 10**9
    verdict = search(bug.form, planted(bug.name, tmp_path), seconds=SECONDS, sequences=sequences)
    assert verdict.found is not None, f"not found in {verdict.operations} operations: {bug.wrong}"
    assert bug.explains(verdict.found), verdict.found


@EACH_FORM
def test_planted_nothing_shows_no_divergence(tmp_path: Path, form: str) -> None:
    verdict = search(form, planted(None, tmp_path), seconds=SECONDS, sequences=150)
    assert (verdict.found, verdict.sequences) == (None, 150)


def test_planted_nothing_passes_the_examples(tmp_path: Path) -> None:
    passed, told = examples(planted(None, tmp_path))
    assert passed, told


# --- the bugs and their page --------------------------------------------------------------------


def test_planted_bugs_are_as_many_as_patches() -> None:
    names = sorted(bug.name for bug in BUGS)
    assert names == sorted(path.stem for path in PATCHES.glob("*.patch"))
    assert len(set(names)) == len(names) >= 120
    assert sum(bool(bug.source) for bug in BUGS) >= 45


@EACH_BUG
def test_planted_bug_that_has_a_source_names_a_public_report(bug: Bug) -> None:
    if bug.source:
        known = (PAGE.parent / "public_bugs.md").read_text(encoding="utf-8")
        assert f"| {bug.source.replace(' ', ' | ')} |" in known


def test_planted_bugs_are_all_measured_and_found_by_the_form_of_the_tests() -> None:
    table = load()
    assert list(table) == [bug.name for bug in PRIVATE]
    assert all(complete(entry) for entry in table.values())
    assert [bug.name for bug in PRIVATE if not table[bug.name]["forms"][bug.form]["found"]] == []


def test_planted_bugs_of_our_own_are_mostly_missed_by_the_examples() -> None:
    """What the examples notice needs no comparison, so most of these are what they miss."""
    table = load()
    own = [table[bug.name] for bug in PRIVATE if not bug.source]
    missed = [entry for entry in own if not entry.get("examples")]
    assert len(own) >= 12
    assert len(missed) >= 12
    assert 2 * len(missed) >= len(own)


def test_planted_page_is_what_was_measured() -> None:
    remedy = "PYTHONPATH=.:tests python tests/planted/measure.py draws it anew"
    assert PAGE.read_text(encoding="utf-8") == page(load()), remedy


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
