"""Measures how each form finds each planted bug, and draws the page; run by hand, from the root.

``PYTHONPATH=.:tests python tests/planted/measure.py [--jobs N] [BUG ...]``: without names, what has
not been measured yet; with names, these again.  It may be stopped at any time, and goes on later.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from planted.private_bugs import PRIVATE
from planted.table import (
    FORMS,
    PAGE,
    SECONDS,
    SEQUENCES,
    SHORTEN_SECONDS,
    Measured,
    Search,
    complete,
    load,
    page,
    save,
)

from support.planted import examples, planted, search

Job = Callable[[], tuple[str, str, Search | bool]]


def searching(name: str, form: str) -> Job:
    """One form's search for one bug."""

    def job() -> tuple[str, str, Search]:
        with tempfile.TemporaryDirectory() as folder:
            verdict = search(
                form,
                planted(name, Path(folder) / "copy"),
                seconds=SECONDS[form],
                sequences=SEQUENCES if form == "swarm" else 10**9,
                shorten_seconds=SHORTEN_SECONDS,
            )
        return (
            name,
            form,
            Search(
                found=verdict.found is not None,
                sequences=verdict.sequences,
                operations=verdict.operations,
                seconds=verdict.seconds,
                steps=verdict.steps,
            ),
        )

    return job


def trying_examples(name: str) -> Job:
    """Whether an example test notices a bug."""

    def job() -> tuple[str, str, bool]:
        with tempfile.TemporaryDirectory() as folder:
            passed, _ = examples(planted(name, Path(folder) / "copy"))
        return name, "examples", not passed

    return job


def measure(names: Iterable[str], workers: int) -> None:
    """Measure what is missing of these bugs; everything is kept as soon as it is known."""
    table = load()
    jobs: list[Job] = []
    for name in names:
        entry = table.setdefault(name, Measured(forms={}))
        jobs += [searching(name, form) for form in FORMS if form not in entry["forms"]]
        jobs += [trying_examples(name)] * ("examples" not in entry)
    with ThreadPoolExecutor(workers) as pool:
        for ended in as_completed([pool.submit(job) for job in jobs]):
            try:
                name, what, result = ended.result()
            except (AssertionError, subprocess.TimeoutExpired) as error:
                say(str(error))  # it stays unmeasured
                continue
            keep(table[name], what, result)
            save(table)
            say(f"{name} {what}: {result}")
    if all(complete(table.get(bug.name, Measured(forms={}))) for bug in PRIVATE):
        _ = PAGE.write_text(page(table), encoding="utf-8")


def say(text: str) -> None:
    """Tell how far it is."""
    _ = sys.stdout.write(text + "\n")
    _ = sys.stdout.flush()


def keep(entry: Measured, what: str, result: Search | bool) -> None:
    """Add one result."""
    if isinstance(result, bool):
        entry["examples"] = result
        return
    entry["forms"][what] = result
    steps = result["steps"]
    if steps is not None:
        entry["shortest"] = min(steps, entry.get("shortest", steps))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    _ = parser.add_argument("--jobs", type=int, default=1)
    _ = parser.add_argument("bugs", nargs="*", choices=[[], *(bug.name for bug in PRIVATE)])
    arguments = parser.parse_args()
    named: list[str] = list(arguments.bugs)
    if named:
        table = load()
        for name in named:
            _ = table.pop(name, None)
        save(table)
    measure(named or [bug.name for bug in PRIVATE], arguments.jobs)


if __name__ == "__main__":
    main()
