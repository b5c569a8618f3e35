"""The result of a run as JUnit XML: a test case for the run, and one for each finding."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from attrs import frozen

from kvvmm_model.conformance.report import Around, closing_line
from kvvmm_model.conformance.results import Finding, Result
from kvvmm_model.conformance.worker_campaign import Casualty
from kvvmm_model.trace import in_words

__all__ = ["as_junit"]

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@frozen
class _Case:
    """One test case; ``kind`` is empty if it passed, else the element that says how it did not."""

    name: str
    kind: str = ""
    message: str = ""
    text: str = ""


def as_junit(result: Result, around: Around, *, timed: bool = True) -> str:
    """The document; without ``timed``, the same for two runs that did the same."""
    cases = list(_cases(result, around))
    kinds = [case.kind for case in cases]
    counts = {
        "tests": len(cases),
        "failures": kinds.count("failure"),
        "errors": kinds.count("error"),
        "skipped": kinds.count("skipped"),
    }
    seconds = {"time": f"{result.seconds:.3f}"} if timed else {}
    told = {key: str(value) for key, value in counts.items()}
    root = ET.Element("testsuites", told)
    suite = ET.SubElement(root, "testsuite", {"name": "kvvmm", **told, **seconds})
    for number, case in enumerate(cases):
        took = {} if number else seconds
        name = {"classname": f"kvvmm.{result.form}", "name": _clean(case.name)}
        element = ET.SubElement(suite, "testcase", name | took)
        if case.kind:
            said = ET.SubElement(element, case.kind, {"message": _clean(case.message)})
            said.text = _clean(case.text)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode() + "\n"


def _clean(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _cases(result: Result, around: Around) -> Iterator[_Case]:
    """The run itself passes if it counts: what it found are cases of their own."""
    line = closing_line(result, around.casualties)
    run = f"seed {result.seed}"
    gave_up = around.casualties is not None and around.casualties.gave_up
    if result.void or result.interrupted or gave_up:
        why = result.void or ("interrupted" if result.interrupted else "too many workers ended")
        yield _Case(run, "error", why, line)
    else:
        yield _Case(run)
    if result.finding is not None:
        yield _of_finding(result.finding, around.trace)
    for number, casualty in enumerate(_ended(around), start=1):
        yield _of_casualty(number, casualty, around.traces[number - 1])
    for earlier in around.earlier:
        kind = {0: "", 2: "skipped"}.get(earlier.code, "failure")
        yield _Case(f"earlier: {earlier.name}", kind, earlier.verdict, earlier.words)


def _ended(around: Around) -> list[Casualty]:
    return [] if around.casualties is None else around.casualties.ended


def _of_finding(finding: Finding, trace: str | None) -> _Case:
    divergence = finding.divergence
    text = "\n".join([divergence.detail, *in_words(finding.sequence), f"trace: {trace}"])
    return _Case(f"divergence: {divergence.kind}", "failure", str(divergence), text)


def _of_casualty(number: int, casualty: Casualty, trace: str | None) -> _Case:
    lines = [] if casualty.sequence is None else in_words(casualty.sequence)
    text = "\n".join([*lines, f"trace: {trace}"])
    words = casualty.words
    return _Case(f"worker {number}: {words}", "failure", f"the process {words}", text)
