"""The page is one whole file, what guests write cannot break it, and it says all without JavaScript but the stories."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from postcrash.model import Verdict
from postcrash.reports.page import page as page_module
from postcrash.reports.page.matrix_page import report_of_matrix
from postcrash.reports.page.page import LINK_MAX, TEXT_MAX, code, render
from postcrash.reports.page.story import Story
from postcrash.reports.tables.matrix import Matrix
from postcrash.store.gate_run import GateRun
from postcrash.store.records import Cell

from .conftest import EVIL, render_gate, render_matrix

VOID = {"meta", "input"}
MakeMatrix = Callable[..., Matrix]


class Outline(HTMLParser):
    """Checks that tags are balanced, and collects what a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id" and value:
                self.ids.append(value)
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


def text_of(page: str) -> str:
    """What the page says without JavaScript."""
    without = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", without).split()))


def stories_of(page: str) -> dict[str, Any]:
    (block,) = re.findall(r'<script type="application/json" id="stories">(.*)</script>', page)
    return dict(json.loads(block))


@pytest.fixture
def table(cells: list[Cell], make_matrix: MakeMatrix, story: Story) -> str:
    return render_matrix(make_matrix(cells), [story])


def test_every_link_leads_to_something(table: str, run: GateRun, story: Story) -> None:
    for page in (table, render_gate(run, [story])):
        parsed = outline(page)
        assert len(parsed.ids) == len(set(parsed.ids))
        assert {link.removeprefix("#") for link in parsed.links if "=" not in link} <= set(parsed.ids)
        assert f"#{story.finding.id}" in parsed.links


def test_without_javascript_the_summary_the_map_and_what_it_rests_on_are_there(table: str) -> None:
    text = text_of(table)
    for expected in (
        "✗ 2 promises broken, 1 undecided",
        "2 ✗ broken 0 ✗° not provided 1 ? undecided 1 ✓ kept 1 ✓° provided about 10^20 crash states covered",
        "Made on 2026-11-23 by postcrash characterize --fs all",
        "property ext4-original xfs P1 ordered directory operations ✓ ?",
        "P5 ext4-original UML 6.1.176 ✗ broken broken: rule (fs(5)): It is so. a power cut alone 1,180,591,620,717,4",
        "P5, safe rename",
        "differs from HotDep'13, Table 1, or OSDI'14, Table 1 ext4-original P2: published ✓ (Linux 3.2)",
        "– xfs P2 on UML 6.1.176: no such operation",
        "rename B A (operation 5): A is 5000 bytes long",
        "postcrash repro f-e630f1067e33f6de",
        "? undecided P1 xfs, UML 6.1.176 not enough",
    ):
        assert expected in text, expected


def test_the_story_is_in_the_block(table: str, story: Story) -> None:
    block = stories_of(table)
    (told,) = block["stories"].values()
    assert json.loads(told["finding"]) == story.finding.to_json()
    assert "\n".join(block["lines"][number] for number in told["script"]) + "\n" == story.script


@pytest.mark.parametrize("title", ["Post-crash properties", "a & b"])
def test_the_title_stands_in_the_head_and_above_the_page(make_matrix: MakeMatrix, title: str) -> None:
    page = render(replace(report_of_matrix(make_matrix([]), []), title=title), [])
    for element in ("title", "h1"):
        assert re.findall(rf"<{element}>(.*)</{element}>", page) == [escape(title)]


def test_the_page_needs_nothing_else(table: str) -> None:
    parsed = outline(table)
    assert set(parsed.tags).isdisjoint({"link", "img", "iframe", "object", "base"})
    assert "src" not in parsed.attributes and "style" not in parsed.attributes
    assert not any(name.startswith("on") for name in parsed.attributes)
    assert all(link.startswith("#") for link in parsed.links)
    assert "@import" not in table and set(re.findall(r"url\(([^)]*)\)", table)) <= {"#hatch", "#dots"}
    assert set(re.findall(r"https?://[^\"' ]*", table)) == {"http://www.w3.org/2000/svg"}


def test_the_policy_allows_the_page_s_own_script_and_style_only(table: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', table)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for element in ("script", "style"):
        (own,) = re.findall(rf"<{element}>(.*?)</{element}>", table, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def test_hostile_text_stays_text(
    evil_story: Story, make_cell: Callable[..., Cell], make_matrix: MakeMatrix, table: str
) -> None:
    cell = make_cell(EVIL, EVIL, Verdict.VIOLATED, witness=EVIL, reason=EVIL, kernel=EVIL, model=EVIL)
    evil = replace(evil_story, finding=replace(evil_story.finding, id=EVIL))
    report = report_of_matrix(replace(make_matrix([cell]), command=EVIL), [evil.finding, evil_story.finding])
    page = render(replace(report, title=EVIL), [evil, evil_story])
    parsed = outline(page)
    assert parsed.tags.count("script") == outline(table).tags.count("script")
    assert "i" not in parsed.tags
    assert not set("\x1b\u202e\ud800") & set(page)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert len(stories_of(page)["stories"]) == 2
    page.encode()


def test_hostile_text_of_a_gate_stays_text(run: GateRun) -> None:
    evil = EVIL.replace("\ud800", "")
    failure = (
        run.parts[0]
        .failures[0]
        .model_copy(update=dict.fromkeys(("judge", "message", "standing", "name", "operations", "known"), evil))
    )
    names = dict.fromkeys(("name", "target", "kernel", "model", "expect"), evil)
    part = run.parts[0].model_copy(update={**names, "failures": (failure,), "notes": (evil,), "tested": {evil: 1}})
    page = render_gate(run.model_copy(update={"parts": (part,), "file": evil, "baseline": evil}), [])
    assert outline(page).tags.count("script") == 2
    assert not set("\x1b\u202e") & set(page)


def test_long_texts_are_cut_outside_of_stories(
    make_cell: Callable[..., Cell], make_matrix: MakeMatrix, story: Story
) -> None:
    long = replace(story, finding=replace(story.finding, message="x" * 10_000))
    cell = make_cell(verdict=Verdict.VIOLATED, witness=story.finding.id, reason="x" * 10_000)
    page = render_matrix(make_matrix([cell]), [long])
    assert set(map(len, re.findall(r"x{50,}", page))) == {LINK_MAX, TEXT_MAX, 10_000}


def test_what_is_too_much_for_a_page_is_left_out(
    monkeypatch: pytest.MonkeyPatch, make_cell: Callable[..., Cell], make_matrix: MakeMatrix, story: Story
) -> None:
    monkeypatch.setattr(page_module, "ENTRIES_MAX", 3)
    monkeypatch.setattr(page_module, "PAGE_BYTES_MAX", len(render_matrix(make_matrix([]), [])) + 20_000)
    stories = [replace(story, finding=replace(story.finding, id=f"f-{number:016x}")) for number in range(9)]
    cells = [
        make_cell(prop=f"P{number}", verdict=Verdict.VIOLATED, witness=each.finding.id)
        for number, each in enumerate(stories)
    ]
    page = render_matrix(make_matrix(cells), stories)
    parsed = outline(page)
    assert sum(id.startswith("f-") for id in parsed.ids) == 3
    assert "6 more are not on this page" in text_of(page)
    assert 0 < len(stories_of(page)["stories"]) < 3
    assert len(page.encode()) <= page_module.PAGE_BYTES_MAX


def test_a_page_of_nothing(make_matrix: MakeMatrix, story: Story) -> None:
    assert "Findings" not in render_matrix(make_matrix([]), [])
    alone = render_matrix(make_matrix([]), [story])
    outline(alone)
    assert 'id="map"' not in alone and f'id="{story.finding.id}"' in alone


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
