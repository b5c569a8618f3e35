"""The command as tests run it: in this process, or in one of its own; and what is left of it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from kvvmm_cuda.cli import commands


def kvvmm(*arguments: str) -> Result:
    """In this process; the workers are processes all the same."""
    return CliRunner().invoke(commands.kvvmm, arguments)


def start(*arguments: str) -> subprocess.Popen[str]:
    """In a process of its own, that finds what this one finds, and heeds Ctrl-C."""
    paths = os.pathsep.join(path for path in sys.path if path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child keeps "ignored"
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "kvvmm_cuda.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": paths},
        )
    finally:
        _ = signal.signal(signal.SIGINT, before)


def report(place: str = "out.json") -> Any:
    """What a run has written."""
    return json.loads(Path(place).read_text(encoding="utf-8"))


def left(marker: str) -> list[str]:
    """The other processes that have this text in their environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            if marker.encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has just ended, or is none of ours
    return found


def nothing_left(marker: str) -> bool:
    """Whether none is left, given a moment."""
    for _ in range(50):
        if not left(marker):
            return True
        time.sleep(0.1)
    return False
