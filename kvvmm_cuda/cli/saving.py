"""The files of a run: where they go, and what stands in them.

An artifact directory has ``report.json``, ``junit.xml``, ``table.txt``, and in ``findings/`` for
each finding ``NAME.trace.json``, ``NAME.txt`` in words and, if it interrupted a worker,
``NAME.journal``.
"""

import json
from pathlib import Path

from attrs import evolve, frozen

from kvvmm_cuda.cli.options import Asked
from kvvmm_cuda.cli.printing import casualty_text, finding_text
from kvvmm_model.conformance.junit import as_junit
from kvvmm_model.conformance.report import Around, Machine, as_json, repeatable
from kvvmm_model.conformance.results import Result
from kvvmm_model.conformance.worker_campaign import Casualty
from kvvmm_model.trace import dump

__all__ = ["SUFFIX", "Places", "places", "save_findings", "save_results"]

SUFFIX = ".trace.json"


@frozen
class Places:
    """Where files go; None: they do not."""

    report: Path | None
    junit: Path | None
    table: Path | None
    trace: Path
    findings: Path | None
    deterministic: bool

    def casualty(self, number: int, casualty: Casualty) -> Path:
        """Beside the trace of a divergence, with a name of its own."""
        stem = self.trace.name.removesuffix(".json").removesuffix(".trace")
        return self.trace.with_name(
            f"{stem}-{'hung' if casualty.death.hung else 'died'}-{number}{SUFFIX}"
        )


def places(asked: Asked, form: str, seed: int) -> Places:
    """What was asked for by name; the rest in the artifact directory, which is made here."""
    root = asked.artifacts
    findings = None if root is None else root / "findings"
    if findings is not None:
        findings.mkdir(parents=True, exist_ok=True)
    default = Path(f"kvvmm-{form}-{seed}{SUFFIX}")
    if findings is not None:
        default = findings / f"{form}-{seed}{SUFFIX}"

    def place(given: Path | None, name: str) -> Path | None:
        return root / name if given is None and root is not None else given

    return Places(
        report=place(asked.report, "report.json"),
        junit=place(asked.junit, "junit.xml"),
        table=place(None, "table.txt"),
        trace=default if asked.trace is None else asked.trace,
        findings=findings,
        deterministic=asked.deterministic,
    )


def save_findings(result: Result, around: Around, where: Places) -> Around:
    """Write what fails, as traces; the answer says where they are."""
    trace = None
    if result.finding is not None:
        trace = str(where.trace)
        text = dump(result.finding.sequence, str(result.finding.divergence))
        _write(where.trace, text)
        _words(where, where.trace, finding_text(result.finding, trace))
    ended = [] if around.casualties is None else around.casualties.ended
    saved = [_save_casualty(each, number, where) for number, each in enumerate(ended, start=1)]
    return evolve(around, trace=trace, traces=tuple(saved))


def _save_casualty(casualty: Casualty, number: int, where: Places) -> str | None:
    if casualty.sequence is None or casualty.found is None:
        return None
    place = where.casualty(number, casualty)
    _write(place, dump(casualty.sequence, f"the process {casualty.words}"))
    _words(where, place, casualty_text(casualty, str(place)) + f"\n\n{casualty.stack}")
    if where.findings is not None:
        _write(_beside(place, ".journal"), casualty.found.text.rstrip("\n"))
    return str(place)


def save_results(
    result: Result, machine: Machine, around: Around, table: str, where: Places
) -> None:
    """Write the reports that were asked for."""
    if where.report is not None:
        report = as_json(result, machine, around)
        kept = repeatable(report) if where.deterministic else report
        _write(where.report, json.dumps(kept, indent=1))
    if where.junit is not None:
        _write(where.junit, as_junit(result, around, timed=not where.deterministic).rstrip("\n"))
    if where.table is not None:
        _write(where.table, table)


def _words(where: Places, trace: Path, text: str) -> None:
    if where.findings is not None:
        _write(_beside(trace, ".txt"), text.strip("\n"))


def _beside(trace: Path, suffix: str) -> Path:
    return trace.with_name(trace.name.removesuffix(".json").removesuffix(".trace") + suffix)


def _write(place: Path, text: str) -> None:
    _ = place.write_text(text + "\n", encoding="utf-8")
