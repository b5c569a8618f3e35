"""Copies of both packages with a bug planted in them, and processes that run on a copy.

A patch is a unified diff.  Its blocks are looked up by their text, so that it may drift up and down
a file, but every line of context must be there, and in one place only.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from attrs import frozen

import kvvmm_cuda
import kvvmm_model

ROOT = Path(__file__).parents[2]
PLANTED = Path(__file__).parents[1] / "planted"
PATCHES = PLANTED / "patches"
PACKAGES = (kvvmm_model, kvvmm_cuda)

_FILE = re.compile(r"^\+\+\+ b/(\S+)$")
_BLOCK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class PatchFails(Exception):
    """A patch does not fit the code any more: it has to be written anew."""


class Block(NamedTuple):
    """One block of a patch: the file, the line where it was, its text before and after."""

    path: str
    line: int
    old: str
    new: str


def blocks(name: str, patch: str) -> Iterator[Block]:
    """The blocks of a unified diff with ``a/`` and ``b/`` before the paths."""
    path: str | None = None
    line = 0
    old: list[str] = []
    new: list[str] = []
    for text in [*patch.splitlines(), "@@ -0 +0 @@"]:
        file, block = _FILE.match(text), _BLOCK.match(text)
        if file or block or text.startswith(("diff ", "index ", "--- ")):
            if path is not None and (old or new):
                yield Block(path, line, "\n".join(old) + "\n", "\n".join(new) + "\n")
                old, new = [], []
            path = file[1] if file else path
            line = int(block[1]) if block else line
        elif text[:1] in {" ", "-", "+"} and path is not None:
            if text[0] != "+":
                old.append(text[1:])
            if text[0] != "-":
                new.append(text[1:])
        else:
            raise PatchFails(f"{name}: not a line of a unified diff: {text!r}")


def apply_patch(name: str, patch: str, root: Path) -> None:
    """Change the files under a folder; raises ``PatchFails``, with the patch's name."""
    changed = 0
    for path, line, old, new in blocks(name, patch):
        file = root / path
        if not file.is_file():
            raise PatchFails(f"{name}: there is no {path}")
        before = "\n" + file.read_text(encoding="utf-8")
        places = before.count("\n" + old)
        if places != 1 or old == new:
            raise PatchFails(
                f"{name}: the block at line {line} of {path} fits in {places} places, not in one"
            )
        _ = file.write_text(before.replace("\n" + old, "\n" + new)[1:], encoding="utf-8")
        changed += 1
    if not changed:
        raise PatchFails(f"{name}: it changes nothing")


def planted(name: str | None, root: Path) -> Path:
    """Copy both packages, as they are imported here, into a new folder; plant the bug, if any."""
    for package in PACKAGES:
        assert package.__file__ is not None
        _ = shutil.copytree(
            Path(package.__file__).parent,
            root / package.__name__,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    if name is not None:
        patch = PATCHES / f"{name}.patch"
        apply_patch(name, patch.read_text(encoding="utf-8"), root)
    return root


# --- what runs on a copy --------------------------------------------------------------------------


@frozen
class Verdict:
    """What a form came to on a copy.

    ``found`` is the message of the divergence; ``steps`` the length of the sequence that shows it,
    shortened if there was time for that.
    """

    found: str | None
    sequences: int
    operations: int
    seconds: float
    steps: int | None


def _run(
    script: str, root: Path, *arguments: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that sees the copy, and nothing else of ours but the tests."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "COV_", "COVERAGE_"))
    }
    path = os.pathsep.join(map(str, (root, PLANTED.parent)))
    return subprocess.run(
        [sys.executable, "-P", str(PLANTED / script), str(root), *arguments],
        cwd=ROOT,
        env={**inherited, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
        check=False,
    )


def search(
    form: str, root: Path, *, seconds: float, sequences: int = 10**9, shorten_seconds: float = 0
) -> Verdict:
    """Run a form on a copy until it finds a divergence or reaches a bound."""
    bounds = (str(seconds), str(sequences), str(shorten_seconds))
    limit = seconds + 3 * shorten_seconds + 60
    ended = _run("drive.py", root, form, *bounds, seconds=limit)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return Verdict(**json.loads(ended.stdout))


def examples(root: Path) -> tuple[bool, str]:
    """Whether every example test passes on a copy, and what pytest wrote."""
    ended = _run("run_examples.py", root, seconds=180)
    told = ended.stdout + ended.stderr
    assert ended.returncode in {64, 65}, told  # all passed, some failed; all else is no answer
    return ended.returncode == 64, told
