"""The pictures of the pages: that they are what their scripts draw, and what a drawing shows."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kvvmm_model.language import LanguageError
from kvvmm_model.picture import COLOURS, draw, main, panels, pictures
from kvvmm_model.vocabulary import Done, Failed, Refused

SPEC = Path(__file__).parents[2] / "spec"
SHOWN = {
    name: script
    for page in sorted(SPEC.glob("*.md"))
    for name, script in pictures(page.read_text(encoding="utf-8")).items()
}
SHARED = "reserve 2; commit 0..1; publish 1; seal p1; reserve 2; attach r2 p1 0  # two see one\n"


def _shapes(svg: str) -> list[tuple[str, str]]:
    """What is drawn: the kind of each shape, and of a text what it says."""
    root = ET.fromstring(svg)  # noqa: S314 - our own
    return [
        (each.get("class", ""), each.text or "")
        for each in root.iter()
        if each.get("class") or each.tag.endswith("}text")
    ]


def _kinds(svg: str) -> list[str]:
    return [kind for kind, _ in _shapes(svg)]


def _texts(svg: str) -> list[str]:
    return [text for _, text in _shapes(svg) if text]


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_committed_picture_is_what_its_script_draws(name: str) -> None:
    drawn = (SPEC / name).read_text(encoding="utf-8")
    assert drawn == draw(SHOWN[name]), "run: python -m kvvmm_model.picture spec"


def test_every_picture_of_the_pages_has_a_script() -> None:
    assert {path.name for path in SPEC.glob("*.svg")} == set(SHOWN)


def test_sharing_page_script_is_done_to_the_end() -> None:
    shown = panels(SHOWN["sharing.svg"])
    assert len(shown) == 10
    assert all(isinstance(panel.outcome, Done) for panel in shown)
    assert shown[-1].state.ledger.charged == 0


def test_sharing_page_fault_is_in_doubt_until_reclaim() -> None:
    shown = panels(SHOWN["sharing_fault.svg"])
    assert isinstance(shown[1].outcome, Failed)
    assert [panel.state.ledger.charged for panel in shown] == [2, 2, 1, 0]


def test_panel_of_shared_memory_shows_rights_references_and_prefix() -> None:
    svg = draw(SHARED)
    kinds, texts = _kinds(svg), _texts(svg)
    assert kinds.count("cell") == 3  # two windows and one handle
    assert kinds.count("hatch") == 2
    assert kinds.count("prefix") == 2  # at its owner, and below the memory
    assert kinds.count("free") == 2
    assert texts.count("R") == 2
    assert "\N{MULTIPLICATION SIGN}3" in texts
    assert "charged 1   mapped 2   held 0" in texts
    assert "1. two see one" in texts


def test_panel_shows_one_colour_for_a_handle_wherever_it_is() -> None:
    assert draw(SHARED).count(f'fill="{COLOURS[0]}"') == 3
    assert draw(SHARED).count(f'fill="{COLOURS[1]}"') == 0


def test_panel_shows_an_unsealed_prefix_broken() -> None:
    svg = draw("reserve 2; commit 0..1; publish 1  # not yet\n")
    assert _kinds(svg).count("prefix unsealed") == 2
    assert "p1, not sealed" in _texts(svg)


def test_panel_leaves_out_a_bracket_where_the_owner_has_other_memory() -> None:
    released = draw(SHARED + "release r1 0..1  # away\n").partition("2. away")[2]
    assert released.count('class="prefix"') == 1  # below the memory alone


def test_panel_shows_what_is_in_doubt_framed() -> None:
    svg = draw("reserve 2; commit 0..1; fault unmap; fault query; release 0..1  # asked\n")
    assert _kinds(svg).count("doubt") == 1
    assert "failed: unmap: UNKNOWN" in _texts(svg)


def test_panel_shows_a_quarantined_handle_framed() -> None:
    svg = draw("reserve 2; commit 0..1; fault release; release 0..1  # asked\n")
    assert _kinds(svg).count("doubt") == 1


def test_panel_shows_the_pool_and_a_refusal() -> None:
    svg = draw("world retention=1\nreserve 2; commit 0..1; release 0..1; close r7  # away\n")
    texts = _texts(svg)
    assert "pool" in texts
    assert "refused: STALE" in texts
    assert isinstance(panels("close r7  # x")[0].outcome, Refused)


def test_panel_of_a_larger_handle_is_as_wide_as_its_windows() -> None:
    svg = draw("world policy=run\nreserve 4; commit 0..2  # one of two\n")
    widths = re.findall(r'class="cell"[^>]* width="(\d+)"', svg)
    assert len(widths) == 2
    assert len(set(widths)) == 1
    assert int(widths[0]) > 100


def test_lines_without_operations_make_no_panel() -> None:
    assert panels("# nothing\n\nworld limit=4\n") == []


def test_text_is_escaped() -> None:
    assert "&lt;b&gt; &amp; c" in draw("reserve 1  # <b> & c\n")


def test_script_that_says_nothing_is_pointed_at() -> None:
    with pytest.raises(LanguageError):
        _ = draw("reserve 1; comit 0..1  # typo\n")


def test_drawing_a_folder_writes_the_pictures_of_its_pages(tmp_path: Path) -> None:
    page = f"<!-- picture -->\n![two](two.svg)\n\n```text\n{SHARED}```\n<!-- /picture -->\n"
    _ = (tmp_path / "page.md").write_text(page, encoding="utf-8")
    main(str(tmp_path))
    assert (tmp_path / "two.svg").read_text(encoding="utf-8") == draw(SHARED)
