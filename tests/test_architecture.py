"""Pages and code agree; both sides are built alike; imports stay where they belong.

After a change of tables or codes, ``python -m kvvmm_model.diagram spec`` brings the drawn parts of
the pages back into step.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvvmm_model.diagram import PARTS, rewritten
from kvvmm_model.machine import OPERATIONS
from kvvmm_model.state import State
from kvvmm_model.vocabulary import Refusal

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
SPEC = sorted((ROOT / "spec").glob("*.md"))
PAGES = [README, *SPEC]
PACKAGES = [ROOT / "kvvmm_model", ROOT / "kvvmm_cuda"]
SOURCES = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]

HEADINGS = ["REFUSALS", "STEPS", "LEDGER", "UNWIND"]
ID = re.compile(r"\b[DL]-[0-9]+\b")
NAMED_FILE = re.compile(r"\b(?:kvvmm_model|kvvmm_cuda|tests|spec)/[\w/.]*\w\.(?:py|md)\b")
NAMED_FOLDER = re.compile(r"`((?:kvvmm_model|kvvmm_cuda|tests|spec)/(?:\w+/)*)`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _page(name: str) -> str:
    return _text(ROOT / "spec" / name)


def _ids(paths: list[Path], letter: str) -> set[str]:
    return {name for path in paths for name in ID.findall(_text(path)) if name[0] == letter}


def _defined(page: str, letter: str) -> list[str]:
    """The ids that a page explains: in a heading or in the first column of a table."""
    return re.findall(rf"^(?:## |\| )({letter}-[0-9]+)\b", _page(page), re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


# --- ids ----------------------------------------------------------------------------------------


def test_driver_facts_named_in_code_or_pages_are_explained() -> None:
    defined = _defined("driver.md", "D")
    assert len(defined) == len(set(defined))
    assert _ids([*SOURCES, *PAGES], "D") - set(defined) == set()


def test_driver_facts_explained_are_named_in_code() -> None:
    assert set(_defined("driver.md", "D")) - _ids(SOURCES, "D") == set()


def test_invariants_named_in_code_or_pages_are_explained() -> None:
    sections = re.findall(r"^## (L-[0-9]+)$", _page("invariants.md"), re.MULTILINE)
    assert len(sections) == len(set(sections))
    assert _ids([*SOURCES, *PAGES], "L") - set(sections) == set()


def test_invariants_explained_are_named_in_code() -> None:
    assert _ids([ROOT / "spec" / "invariants.md"], "L") - _ids(SOURCES, "L") == set()


def test_invariants_each_say_where_they_are_checked_and_what_breaks_them() -> None:
    sections = re.split(r"^## L-[0-9]+$", _page("invariants.md"), flags=re.MULTILINE)[1:]
    for section in sections:
        flat = " ".join(section.split())
        assert "*Checked*:" in flat, section
        assert "*Would break it*:" in flat, section


# --- pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_has_a_section_and_a_row(name: str) -> None:
    assert re.search(rf"^## {name}$", _page("operations.md"), re.MULTILINE)
    rows = [line for line in _page("README.md").splitlines() if line.startswith(f"| {name} |")]
    assert len(rows) == 1
    for where in (
        f"(operations.md#{name})",
        f"`kvvmm_model/ops/{name}.py`",
        f"`kvvmm_cuda/ops/{name}.py`",
        f"`tests/examples/test_{name}.py`",
    ):
        assert where in rows[0]


@pytest.mark.parametrize("refusal", Refusal, ids=lambda refusal: refusal.name)
def test_every_refusal_is_described(refusal: Refusal) -> None:
    assert re.search(rf"^\| {refusal.name} \| .+ \|$", _page("operations.md"), re.MULTILINE)


def test_every_event_of_the_ledger_has_a_row() -> None:
    events = {
        name
        for name, method in inspect.getmembers(State, inspect.isfunction)
        if not name.startswith("_") and inspect.signature(method).return_annotation == "State"
    }
    rows = set(re.findall(r"^\| `(\w+)` \|", _page("operations.md"), re.MULTILINE))
    assert rows == events


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name + "/" + page.name)
def test_page_names_only_files_that_exist(page: Path) -> None:
    text = _text(page)
    named = {*NAMED_FILE.findall(text), *NAMED_FOLDER.findall(text)}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name + "/" + page.name)
def test_page_links_only_to_what_exists(page: Path) -> None:
    for target, anchor in LINK.findall(_text(page)):
        found = page.parent / target if target else page
        assert found.exists(), target
        assert not anchor or anchor in _anchors(found), anchor


@pytest.mark.parametrize("page", SPEC, ids=lambda page: page.name)
def test_drawn_parts_are_in_step_with_the_code(page: Path) -> None:
    assert _text(page) == rewritten(_text(page)), "run: python -m kvvmm_model.diagram spec"


def test_every_part_that_can_be_drawn_is_drawn_once() -> None:
    everything = "".join(_text(page) for page in SPEC)
    assert {name: everything.count(f"<!-- {name} -->") for name in PARTS} == dict.fromkeys(PARTS, 1)


# --- code ---------------------------------------------------------------------------------------


def _operation_files(package: Path) -> list[str]:
    return sorted(path.name for path in (package / "ops").glob("*.py"))


def test_both_sides_have_the_same_operation_files() -> None:
    model, backend = PACKAGES
    expected = sorted(["__init__.py", *(f"{name}.py" for name in OPERATIONS)])
    assert _operation_files(model) == _operation_files(backend) == expected


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_has_the_four_headings_in_order(package: Path, name: str) -> None:
    comments = re.findall(r"^\s*# (.*)$", _text(package / "ops" / f"{name}.py"), re.MULTILINE)
    found = [word for line in comments for word in re.findall(r"\b[A-Z]{5,}\b", line)]
    assert list(dict.fromkeys(word for word in found if word in HEADINGS)) == HEADINGS


@pytest.mark.parametrize("package", ["kvvmm_model", "kvvmm_cuda"])
def test_import_needs_no_tool_and_no_cuda(package: str) -> None:
    foreign = ("cattrs", "click", "cuda", "hypothesis", "numpy", "rich")
    program = (
        f"import sys, {package}\n"
        f"print(*sorted(name for name in {foreign!r} if name in sys.modules), end='')"
    )
    done = subprocess.run(  # -P: the installed package where there is one, not the checkout
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == ""


# --- the repository -----------------------------------------------------------------------------

SKIPPED = {"build", "dist", "venv", "findings", "htmlcov", "__pycache__"}
HOSTS = ("pypi" + ".org", "python" + "hosted.org")


def _repository() -> list[Path]:
    """What a checkout holds, without what tools leave in it."""
    inside = [
        path
        for top in ROOT.iterdir()
        if top.name not in SKIPPED and (top.name == ".ci" or not top.name.startswith("."))
        for path in ((top, *top.rglob("*")) if top.is_dir() else (top,))
    ]
    return [path for path in inside if path.is_file() and not SKIPPED & set(path.parts)]


def test_no_file_names_a_package_registry() -> None:
    assert README in _repository()
    found = [
        str(path.relative_to(ROOT))
        for path in _repository()
        if any(host.encode() in path.read_bytes() for host in HOSTS)
    ]
    assert found == []


def test_readme_begins_with_the_two_commands() -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", _text(README), re.DOTALL | re.MULTILINE)
    assert [kind for kind, _ in blocks[:2]] == ["sh", "sh"]
    assert "kvvmm fuzz --driver sim --seconds 30" in blocks[0][1]
    assert "pytest" in blocks[1][1]


def _programs(pages: list[Path]) -> list[str]:
    return [
        program
        for page in pages
        for program in re.findall(r"^```python\n(.*?)^```$", _text(page), re.DOTALL | re.MULTILINE)
    ]


@pytest.mark.parametrize("program", _programs(PAGES))
def test_program_on_a_page_runs(program: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-W", "error", "-c", program]
    if "def test_" in program:  # a test is for pytest, with our plug-in
        file = tmp_path / "test_program.py"
        _ = file.write_text(program, encoding="utf-8")
        plugins = ("-p", "kvvmm_cuda.pytest_plugin", "-p", "no:cacheprovider")
        command = [sys.executable, "-P", "-m", "pytest", "-q", *plugins, str(file)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
