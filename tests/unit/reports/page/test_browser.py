"""The page in a real browser: what it shows, and what clicks, filters, keys, addresses, paper and phones do.

The fixture `reader` fails a test whose page asks for anything, throws, or writes to the console.
"""

import json
import urllib.parse
from collections.abc import Callable
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from postcrash.model import Verdict
from postcrash.reports.page.page import PAGE_BYTES_MAX, render
from postcrash.reports.page.report import Report
from postcrash.reports.page.story import Story
from postcrash.reports.tables.matrix import Matrix
from postcrash.store.explanation_data import PathComparison
from postcrash.store.gate_run import GateRun
from postcrash.store.records import Cell

from .conftest import SCRIPT, Reader, render_gate, render_matrix

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
MANY = 300
SECONDS_MAX = 2


@pytest.fixture
def table(cells: list[Cell], make_matrix: Callable[..., Matrix], story: Story) -> str:
    return render_matrix(make_matrix(cells), [story])


@pytest.fixture
def gate(run: GateRun, story: Story) -> str:
    return render_gate(run, [story])


@pytest.fixture
def needs_page(needs: Report, story: Story) -> str:
    return render(needs, [story])


def shown(page: Page) -> Locator:
    return page.locator(".entry:visible")


def address_of(page: Page) -> str:
    """What stands behind the # of the page's address, as the page itself knows it: `page.url` hears of it later."""
    return str(page.evaluate("location.hash")).removeprefix("#")


def state(page: Page) -> dict[str, str]:
    """What the page's address says."""
    return dict(urllib.parse.parse_qsl(address_of(page)))


def check_shows(page: Page, title: str, squares: int, entries: int) -> None:
    """The page has its title, the cells of its map, and its findings."""
    assert page.title() == title
    expect(page.locator("h1")).to_have_text(title)
    expect(page.locator("#map tbody td a")).to_have_count(squares)
    expect(shown(page)).to_have_count(entries)


def seconds_of_work(page: Page) -> float:
    """How long the processor worked until the page was there. Other work on the machine makes no difference."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.reload()
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def test_it_shows_what_it_should(reader: Reader, table: str, gate: str) -> None:
    check_shows(reader.open(table), "Post-crash properties", 6, 3)
    page = reader.open(gate)
    check_shows(page, "Gate", 4, 4)
    expect(page.locator(".headline")).to_have_text("✗ 1 new failure, 1 undecided")
    expect(page.locator(".tiles li")).to_have_text(
        ["1 ✗ new", "1 ? undecided", "2 (✗) known", "1 fixed", "about 10^20 crash states covered"]
    )
    expect(page.get_by_text("line 7 (c-00000000000000ff): fixed upstream")).to_be_visible()
    expect(shown(page).first).to_contain_text("rename B A (operation 5)")


def test_applications_are_shown_with_the_lines_of_their_sources(reader: Reader, needs_page: str, story: Story) -> None:
    page = reader.open(needs_page)
    check_shows(page, "What applications need, and what file systems give", 4, 2)
    expect(page.locator("label", has=page.locator("select[name=judge]"))).to_contain_text("Application")
    shown(page).first.locator("summary").click()
    expect(page.locator(f"#{story.finding.id} .story")).to_have_count(1)
    page.get_by_role("link", name="1 vulnerabilities in the sources").click()
    expect(shown(page)).to_have_count(1)
    shown(page).locator("summary").click()
    expect(shown(page)).to_contain_text("db/log.cc:87 from db/db.cc:12")


def test_a_wrong_title_and_a_request_are_noticed(reader: Reader, table: str) -> None:
    with pytest.raises(AssertionError):
        check_shows(reader.open(table.replace("<title>Post", "<title>Past")), "Post-crash properties", 6, 3)
    assert reader.complaints == []
    evil = '<img src="http://127.0.0.1:9/x.png">'
    reader.open(table.replace("<main>", f"<main>{evil}"))
    assert reader.complaints.pop(0).startswith("console: Loading the image")
    without = table.replace("Content-Security-Policy", "None")
    reader.open(without.replace("<main>", f"<main>{evil}")).wait_for_timeout(200)
    assert "request: http://127.0.0.1:9/x.png" in reader.complaints
    reader.complaints.clear()


def test_a_cell_opens_its_evidence_and_this_the_story(reader: Reader, table: str, story: Story) -> None:
    page = reader.open(table)
    page.get_by_label("P5, ext4-original: broken").click()
    evidence = page.locator("#evidence")
    expect(evidence).to_contain_text("P5 on ext4-original, UML 6.1.176")
    expect(evidence).to_contain_text("broken: rule (fs(5)): It is so.")
    expect(evidence).to_contain_text("1,180,591,620,717,411,303,424")
    evidence.get_by_role("link", name="✗ P5: rename B A").click()
    expect(page.locator(f"#{story.finding.id} .story")).to_be_in_viewport()
    page.get_by_label("Close the evidence").click()
    expect(evidence).to_be_hidden()
    assert state(page) == {"open": story.finding.id}


def test_a_story_is_told(reader: Reader, table: str, story: Story) -> None:
    page = reader.open(table, f"#{story.finding.id}")
    told = page.locator(".story")
    expect(told.locator(".operations li")).to_have_text(
        [
            *("creat A set-up", "append A 4096 set-up", "creat B returned", "write B 0 5000 returned"),
            *("rename B A returned", "commit in progress", "⚡ crash, during the operation above", "sync not started"),
        ]
    )
    expect(told.locator(".columns .writes li")).to_have_text(
        ["✗ lostwrite B 0 5000 (bytes 0 to 5000), zeros sectors 1000 to 1016, operation 6"]
    )
    expect(told.locator("tr.differs")).to_contain_text("✗ differs A")
    expect(told.locator("tr.differs [data-label=found]")).to_have_text("file, 5000 bytesbytes 0 to 5000: zeros")
    expect(told).to_contain_text("epoch 2 ends: flush, under way at the crash")
    expect(told.get_by_text("EXT4-fs warning (device ubdb): odd")).to_be_visible()


def test_a_comparison_has_the_other_side_beside_what_was_found(
    reader: Reader, story: Story, make_matrix: Callable[..., Matrix]
) -> None:
    """With what other judges say of the state."""
    assert story.finding.explanation is not None
    path = PathComparison("A", ("not there",), ("fifo",), (), True, ("file, 7 bytes",))
    told = replace(
        story.finding.explanation, comparison=(path,), reference="kernel:6.1", objections=("durability: no",)
    )
    compared = replace(story, finding=replace(story.finding, explanation=told))
    page = reader.open(render_matrix(make_matrix([]), [compared]), f"#{story.finding.id}")
    table = page.locator("table.comparison")
    expect(table.locator("thead th")).to_contain_text(["path", "found", "on kernel:6.1", "without a crash"])
    expect(table.locator("tr.differs td")).to_have_text(["not there", "file, 7 bytes", "fifo"])
    expect(page.locator(".story")).to_contain_text("kernel:6.1 never shows what was found.")
    expect(page.locator(".story .failure")).to_have_text("✗ durability: no")


def test_it_says_which_of_the_lost_writes_matter(
    reader: Reader, story: Story, make_matrix: Callable[..., Matrix]
) -> None:
    id, other = story.finding.id, "f-0000000000000001"
    tried = replace(story.finding, id=other, needed=((1008, 8), (9000, 8)))
    without = replace(story.finding, id="f-0000000000000002", needed=((1016, 8), (992, 8)))
    stories = [story, *(replace(story, finding=finding) for finding in (tried, without))]
    page = reader.open(render_matrix(make_matrix([]), stories), f"#open={id},{other},{without.id}")
    passes = [page.locator(f"#{each} .columns .matters") for each in (id, other, without.id)]
    assert [found.count() for found in passes] == [0, 1, 0]
    expect(passes[1]).to_have_text("✓ with this write kept, it passes")
    hint = page.get_by_text("which of them matter: postcrash repro --flip")
    expect(hint).to_have_count(1)
    expect(hint).to_contain_text(id)


def test_pictures_have_everything_on_one_axis(reader: Reader, table: str, story: Story) -> None:
    page = reader.open(table, f"#{story.finding.id}")
    lanes, disk = page.locator(".chart svg").all()
    texts = lanes.locator("text").all_text_contents()
    assert {"epoch 1", "epoch 2", "⚡ crash", "FUA", "F"} <= set(texts)
    assert "4 write B 0 50004 write B 0 5000 (returned)" in texts
    for status, count in (("lost", 1), ("kept", 1), ("stable", 2), ("torn", 0)):
        assert lanes.locator(f"rect.write.{status}").count() == count
        assert disk.locator(f"rect.write.{status}").count() == count
    assert lanes.locator("rect.fua").count() == 1 and lanes.locator("rect.flush").count() == 2
    assert disk.locator("rect.strip").count() == 3
    crash = lanes.locator("line.crash").bounding_box()
    bars = [bar.bounding_box() for bar in lanes.locator("rect.write, rect.operation").all()]
    assert crash is not None
    assert all(bar is not None and bar["x"] + bar["width"] <= crash["x"] + 2 for bar in bars)


def test_downloads_are_in_the_links(reader: Reader, table: str, story: Story) -> None:
    page = reader.open(table, f"#{story.finding.id}")
    links = page.locator(".downloads a")
    expected = {
        "ops": story.finding.workload_text,
        "json": json.dumps(story.finding.to_json(), separators=(",", ":")) + "\n",
        "sh": SCRIPT,
        "trace.json": None,
    }
    assert links.count() == len(expected)
    for link, (ending, text) in zip(links.all(), expected.items(), strict=True):
        assert link.get_attribute("download") == f"{story.finding.id}.{ending}"
        href = link.get_attribute("href") or ""
        assert href.startswith("data:")
        assert text is None or urllib.parse.unquote(href.partition(",")[2]) == text
    with page.expect_download() as download:
        links.first.click()
    assert download.value.path().read_text() == story.finding.workload_text


def test_filters_choose_cells_and_findings(reader: Reader, gate: str) -> None:
    page = reader.open(gate)
    page.get_by_label("Target").select_option("xfs")
    expect(shown(page)).to_have_count(1)
    expect(page.locator("#count")).to_have_text("1 of 4 findings")
    expect(page.locator("#map thead th:visible")).to_have_count(3)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Property").select_option("P2")
    expect(shown(page)).to_contain_text(["too many states"])
    expect(page.locator("#map tbody tr:visible")).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Kernel").select_option("6.12")
    expect(shown(page)).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    page.locator(".tiles").get_by_role("link", name="2 known").click()
    expect(shown(page)).to_have_count(2)
    assert state(page) == {"standing": "known"}
    expect(page.locator("#map td.dim a")).to_have_count(3)


@pytest.fixture
def wide_table(make_cell: Callable[..., Cell], make_matrix: Callable[..., Matrix]) -> str:
    """Two properties of 22 places: targets stand down, and kernels beside each other."""
    kernels = "6.1", "7.2"
    columns = (
        [make_cell(f"t{n}", name, kernel=kernel) for n in range(11) for name in ("P1", "P5")] for kernel in kernels
    )
    return render_matrix(make_matrix(*columns), [])


def test_filters_choose_lines_and_columns_of_many_places(reader: Reader, wide_table: str) -> None:
    page = reader.open(wide_table)
    groups, columns = (page.locator(f"#map thead tr:{place}-child th:visible") for place in ("first", "last"))
    lines = page.locator("#map tbody tr:visible")
    rests = page.locator("#rests tbody tr:not([hidden])")
    expect(groups).to_contain_text(["P1", "P5"])
    expect(columns).to_have_text(["target", "6.1", "7.2", "6.1", "7.2"])
    expect(lines).to_have_count(11)
    page.locator("select[name=kernel]").select_option("7.2")
    expect(columns).to_have_text(["target", "7.2", "7.2"])
    expect(groups.first).to_have_attribute("colspan", "1")
    page.locator("select[name=judge]").select_option("P5")
    expect(groups).to_contain_text(["P5"])
    expect(columns).to_have_text(["target", "7.2"])
    expect(rests).to_have_count(11)
    page.locator("select[name=target]").select_option("t4")
    expect(lines).to_have_count(1)
    expect(rests).to_contain_text(["P5t47.2"])
    page.get_by_role("button", name="Clear").click()
    expect(groups.first).to_have_attribute("colspan", "2")
    page.get_by_label("P5, t3, 6.1: kept").click()
    expect(page.locator("#evidence h3")).to_have_text("P5 on t3, 6.1")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(":focus")).to_have_attribute("aria-label", "P1, t3, 7.2: kept")


def test_every_view_has_an_address(reader: Reader, gate: str, story: Story) -> None:
    page = reader.open(gate)
    page.get_by_label("Target").select_option("ext4-original")
    page.get_by_label("Standing").select_option("new")
    page.locator(".entry:visible summary").first.click()
    page.locator("#map td:visible a").first.click()
    page.get_by_role("searchbox").fill("rename")
    address = f"#{address_of(page)}"
    assert {"target", "standing", "open", "cell", "text"} == set(state(page))
    again = reader.open(gate, address)
    expect(shown(again)).to_have_count(1)
    expect(again.locator(f"#{story.finding.id} .story")).to_be_visible()
    expect(again.locator("#evidence")).to_be_visible()
    expect(again.get_by_label("Target")).to_have_value("ext4-original")
    expect(again.get_by_role("searchbox")).to_have_value("rename")


def test_back_and_forward_go_through_the_views(reader: Reader, gate: str) -> None:
    page = reader.open(gate)
    page.get_by_label("Target").select_option("xfs")
    page.locator(".entry:visible summary").click()
    page.go_back()
    expect(page.locator(".entry[open]")).to_have_count(0)
    expect(shown(page)).to_have_count(1)
    page.go_back()
    expect(shown(page)).to_have_count(4)
    page.go_forward()
    expect(page.get_by_label("Target")).to_have_value("xfs")
    expect(shown(page)).to_have_count(1)


@pytest.mark.parametrize(
    "address", ["#nowhere", "#cell=cell-99&open=f-1,x", "#%", "#cell=stories", "#target=none", "#="]
)
def test_a_wrong_address_does_no_harm(reader: Reader, gate: str, address: str) -> None:
    page = reader.open(gate, address)
    expect(page.locator("#evidence")).to_be_hidden()
    expect(page.locator(".entry[open]")).to_have_count(0)
    page.locator(".tiles a").first.click()
    expect(shown(page)).to_have_count(1)


def test_keys(reader: Reader, gate: str) -> None:
    page = reader.open(gate)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("see/the")
    expect(page.get_by_role("searchbox")).to_have_value("see/the")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")
    page.locator("#map td a").first.focus()
    for key, label in (
        ("ArrowRight", "small-hunt, ext4-original, 6.12: known 1"),
        ("ArrowRight", "small-hunt, xfs, 6.1: undecided 1"),
        ("ArrowDown", "small-hunt, xfs, 6.1: undecided 1"),
        ("ArrowLeft", "small-hunt, ext4-original, 6.12: known 1"),
        ("ArrowUp", "small-hunt, ext4-original, 6.12: known 1"),
    ):
        page.keyboard.press(key)
        expect(page.locator(":focus")).to_have_attribute("aria-label", label)
    page.keyboard.press("Enter")
    expect(page.locator("#evidence h3")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#evidence")).to_be_hidden()
    expect(page.locator(":focus")).to_have_attribute("aria-label", "small-hunt, ext4-original, 6.12: known 1")
    summary = page.locator(".entry summary").first
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".entry[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".entry[open]")).to_have_count(0)
    expect(summary).to_be_focused()


def test_tab_comes_to_the_map_once(reader: Reader, gate: str) -> None:
    page = reader.open(gate)
    page.get_by_role("button", name="Clear").focus()
    visited = []
    for _ in range(4):
        page.keyboard.press("Tab")
        visited.append(page.evaluate("document.activeElement.closest('#map, .scroll, details, body').tagName"))
    assert visited == ["DIV", "TABLE", "DETAILS", "DETAILS"]


def test_on_paper_everything_that_is_shown_is_open(reader: Reader, gate: str) -> None:
    page = reader.open(gate, "#standing=new")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".entry:visible")).to_have_count(1)
    expect(page.locator(".story")).to_be_visible()
    expect(page.locator("#rests")).to_be_visible()
    expect(page.locator("#filters")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    expect(page.locator("details[open]:visible")).to_have_count(0)
    assert page.pdf().startswith(b"%PDF")


def test_a_phone_shows_it_without_moving_sideways(reader: Reader, gate: str, story: Story) -> None:
    page = reader.open(gate, f"#cell=cell-1&open={story.finding.id}", **PHONE)
    assert page.evaluate("document.scrollingElement.scrollWidth") == 390
    assert page.locator(".chart .scroll").first.evaluate("(box) => box.scrollWidth > box.clientWidth")
    page.locator(".tiles a").first.tap()
    expect(shown(page)).to_have_count(1)


def test_dark_and_light(reader: Reader, table: str) -> None:
    def ground(page: Page) -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = reader.open(table, color_scheme="dark")
    dark = ground(page)
    page.get_by_role("button", name="Show the page light").click()
    light = ground(page)
    assert light != dark
    assert ground(reader.open(table, color_scheme="light")) == light
    page.get_by_role("button", name="Show the page dark").click()
    assert ground(page) == dark
    page.emulate_media(media="print")
    assert ground(page) == "rgba(0, 0, 0, 0)"


def test_without_javascript_the_summary_and_the_table_are_there(reader: Reader, table: str, story: Story) -> None:
    page = reader.open(table, java_script_enabled=False, color_scheme="dark")
    check_shows(page, "Post-crash properties", 6, 3)
    expect(page.locator("#filters")).to_be_hidden()
    page.locator(f"#{story.finding.id} summary").click()
    expect(page.get_by_text(f"postcrash explain {story.finding.id}")).to_be_visible()


def test_hostile_stories_do_nothing(reader: Reader, evil_story: Story, make_matrix: Callable[..., Matrix]) -> None:
    long = replace(evil_story, finding=replace(evil_story.finding, id="f-0000000000000001", message="`x" * 5_000))
    page = reader.open(render_matrix(make_matrix([]), [evil_story, long]), f"#{evil_story.finding.id}")
    page.locator(".entry:not([open]) summary").click()
    expect(page.locator(".story")).to_have_count(2)
    assert page.locator("script").count() == 2 and page.locator(".story i").count() == 0
    text = page.locator("body").inner_text()
    assert "</script><script>alert(1)</script>" in text and "\\x1b\\u202e\\ud800" in text
    assert not set("\x1b\u202e\ud800") & set(page.content())
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_story_has_no_heading_with_nothing_below(
    reader: Reader, story: Story, cells: list[Cell], make_matrix: Callable[..., Matrix]
) -> None:
    """Nobody knows what a program leaves without a crash, and nothing may have been sent to the disk."""
    headings = ("After recovery: found beside allowed", "Requests up to the crash, flush by flush")
    assert story.finding.explanation is not None
    nothing = replace(story.finding.explanation, epochs=(), lost=(), comparison=())
    for explanation, count in ((story.finding.explanation, 1), (nothing, 0)):
        told = replace(story, finding=replace(story.finding, explanation=explanation))
        page = reader.open(render_matrix(make_matrix(cells), [told]), f"#{story.finding.id}")
        expect(page.get_by_text("Workload, and how far it was")).to_have_count(1)
        for heading in headings:
            expect(page.get_by_text(heading)).to_have_count(count)


def test_a_story_without_a_recording_or_an_explanation(
    reader: Reader, story: Story, make_matrix: Callable[..., Matrix]
) -> None:
    bare = Story(replace(story.finding, id="f-0000000000000001", explanation=None), no_script="no disk")
    stories = [replace(story, timeline=None), bare]
    page = reader.open(render_matrix(make_matrix([]), stories), f"#open={bare.finding.id},{story.finding.id}")
    expect(page.locator(".story")).to_have_count(2)
    expect(page.locator(".chart")).to_have_count(0)
    expect(page.get_by_text("There is no shell script: no disk")).to_be_visible()
    expect(page.locator("pre.workload")).to_contain_text("rename B A")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(
    reader: Reader, gate: str, table: str, needs_page: str, story: Story, scheme: str
) -> None:
    for html in (gate, table, needs_page):
        page = reader.open(html, f"#cell=cell-1&open={story.finding.id}", color_scheme=scheme, bypass_csp=True)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()


def test_hundreds_of_findings_open_at_once(
    reader: Reader, make_cell: Callable[..., Cell], make_matrix: Callable[..., Matrix], story: Story
) -> None:
    stories = [
        replace(story, finding=replace(story.finding, id=f"f-{number:016x}", target=f"fs-{number}"))
        for number in range(MANY)
    ]
    cells = [
        make_cell(f"fs-{number}", "P5", Verdict.VIOLATED, witness=each.finding.id, reason=each.finding.message)
        for number, each in enumerate(stories)
    ]
    html = render_matrix(make_matrix(cells), stories)
    assert len(html.encode()) < PAGE_BYTES_MAX
    page = reader.open(html)
    assert seconds_of_work(page) < SECONDS_MAX
    page.get_by_role("searchbox").fill(stories[-1].finding.id)
    expect(shown(page)).to_have_count(1)
    shown(page).locator("summary").click()
    expect(page.locator(".story")).to_have_count(1)
