"""The HTML page is whole and self-contained, and what guests write cannot break it."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from typing import Any

import pytest

from postcrash.model import Verdict
from postcrash.reports.store.explained import Evidence, ExplainedOperation, PathComparison
from postcrash.reports.store.records import Cell
from postcrash.reports.tables.page import code, render

VOID = {"meta"}
EVIL = "<script>alert(1)</script>\"'&`<i>`\x1b\u202e\ud800"


class Outline(HTMLParser):
    """Checks that tags are balanced, and collects what a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id" and value:
                self.ids.add(value)
            if name == "href" and value:
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(page: str) -> Outline:
    parsed = Outline()
    parsed.feed(page)
    parsed.close()
    assert parsed.open == []
    return parsed


@pytest.fixture
def cells(crash: Any, make_cell: Callable[..., Cell]) -> list[Cell]:
    return [
        make_cell("ext4-original", "P5", Verdict.VIOLATED, witness=crash.finding.id, reason=crash.finding.message),
        make_cell("ext4-original", "P1"),
        make_cell("ext4-original", "P2", Verdict.VIOLATED, witness="f-ffffffffffffffff"),
        make_cell("xfs", "P1", Verdict.UNDECIDED, reason="not enough"),
    ]


def test_violated_cells_lead_to_their_witness(crash: Any, cells: list[Cell]) -> None:
    parsed = outline(render(cells, [crash.finding]))
    assert f"#{crash.finding.id}" in parsed.links
    assert {link.removeprefix("#") for link in parsed.links} <= parsed.ids


def test_the_story_is_told(crash: Any, cells: list[Cell]) -> None:
    page = " ".join(re.sub(r"<[^>]*>", " ", render(cells, [crash.finding])).split())
    for expected in (
        "P5 on ext4-original",
        "rename B A (operation 5): A is 5000 bytes long",
        "commit in progress",
        "✗ lost write B 0 5000 (bytes 0 to 5000), zeros sectors 1000 to 1016, operation 6",
        "epoch 2 ends: flush, under way at the crash",
        "bytes 0 to 5000: those of write B 0 5000",
        "differs from HotDep&#39;13, Table 1, or OSDI&#39;14, Table 1: ext4-original P2: published ✓ (Linux 3.2)",
        f"postcrash repro {crash.finding.id}",
        "1,180,591,620,717,411,303,424",
        "xfs P1 not enough",
        "safe rename",
    ):
        assert expected in page, expected


@pytest.mark.parametrize("title", ["Post-crash properties", "a & b"])
def test_the_title_stands_in_the_head_and_above_the_page(cells: list[Cell], title: str) -> None:
    page = render(cells, [], title=title)
    for element in ("title", "h1"):
        assert re.findall(rf"<{element}>(.*)</{element}>", page) == [escape(title)]


def test_the_page_needs_nothing_else(crash: Any, cells: list[Cell]) -> None:
    page = render(cells, [crash.finding])
    parsed = outline(page)
    assert parsed.tags.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert "src" not in parsed.attributes
    assert not any(name.startswith("on") for name in parsed.attributes)
    assert all(link.startswith("#") for link in parsed.links)
    assert "url(" not in page and "@import" not in page and "http" not in page.replace("http-equiv", "")
    assert "prefers-color-scheme: dark" in page


def test_hostile_text_stays_text(crash: Any, make_cell: Callable[..., Cell]) -> None:
    cells = [make_cell(EVIL, EVIL, Verdict.VIOLATED, witness=EVIL, reason=EVIL, kernel=EVIL, model=EVIL)]
    explanation = replace(
        crash.finding.explanation,
        operations=(ExplainedOperation(1, EVIL, "returned"),),
        lost=(replace(crash.finding.explanation.lost[0], what=EVIL),),
        failure=EVIL,
        comparison=(PathComparison(EVIL, (EVIL,), (EVIL,), (EVIL,), True),),
        evidence=(Evidence(EVIL, EVIL),),
    )
    texts = dict.fromkeys(("id", "checker", "message", "target", "kernel", "model", "workload_name", "state"), EVIL)
    finding = replace(crash.finding, **texts, explanation=explanation)
    bare = replace(finding, explanation=None, workload_text=EVIL)
    page = render(cells, [finding, bare], title=EVIL)
    parsed = outline(page)
    assert parsed.tags.isdisjoint({"script", "i"})
    assert not set("\x1b\u202e\ud800") & set(page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    page.encode()


def test_a_page_without_findings_and_one_without_cells(crash: Any, cells: list[Cell]) -> None:
    assert "Witnesses" not in render(cells, [])
    assert '<table class="verdicts"' not in render([], [crash.finding])
    outline(render([], []))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a` b", "<code>a</code> b"),
        ("`a < b`, `c`", "<code>a &lt; b</code>, <code>c</code>"),
        ("a ` b", "a ` b"),
        ("", ""),
    ],
)
def test_backticks_are_code(text: str, html: str) -> None:
    assert str(code(text)) == html
