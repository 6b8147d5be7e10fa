"""Reports made by hand, a matrix and a gate's result with a failure of each sort, and a browser that opens them."""

import datetime
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from postcrash.model import Verdict
from postcrash.properties.promises import Statements
from postcrash.reports.explanation.timeline import timeline
from postcrash.reports.page.gate_page import report_of_gate
from postcrash.reports.page.matrix_page import report_of_matrix
from postcrash.reports.page.needs_page import Vulnerability, report_of_needs
from postcrash.reports.page.page import render
from postcrash.reports.page.report import Report
from postcrash.reports.page.story import Story
from postcrash.reports.tables.matrix import Matrix
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part, Share
from postcrash.store.records import Cell
from postcrash.store.table_rows import Column, NeedsCell, NeedsRow

EVIL = "</script><script>alert(1)</script><!--\"'&`<i>`\x1b\u202e\ud800"
KV = "kv-1.2[sync=on]"
SCRIPT = "#!/bin/bash\n# what it shows\nmkfs.ext4 $DISK\n"


def render_matrix(matrix: Matrix, stories: Sequence[Story]) -> str:
    return render(report_of_matrix(matrix, [story.finding for story in stories]), stories)


def render_gate(run: GateRun, stories: Sequence[Story]) -> str:
    return render(report_of_gate(run), stories)


@pytest.fixture
def story(crash: Any) -> Story:
    """The story of the crash in the conftest above."""
    return Story(crash.finding, timeline(crash.finding, crash.recording, crash.base), SCRIPT)


@pytest.fixture
def cells(crash: Any, make_cell: Callable[..., Cell]) -> list[Cell]:
    return [
        make_cell("ext4-original", "P5", Verdict.VIOLATED, witness=crash.finding.id, reason=crash.finding.message),
        make_cell("ext4-original", "P1"),
        make_cell("ext4-original", "P2", Verdict.VIOLATED, witness="f-ffffffffffffffff", reason="a is short"),
        make_cell("xfs", "P1", Verdict.UNDECIDED, reason="not enough"),
        make_cell("xfs", "P2", Verdict.UNDECIDED, workloads=0, reason="no such operation"),
        make_cell("xfs", "P5", statements=Statements(None, None)),
    ]


@pytest.fixture
def make_matrix() -> Callable[..., Matrix]:
    """A matrix with one column for each list of cells."""

    def made(*columns: Sequence[Cell]) -> Matrix:
        names = [cells[0].kernel if cells else "none" for cells in columns]
        made_columns = [Column(name, tuple(cells), 70, 10**20, 99) for name, cells in zip(names, columns, strict=True)]
        return Matrix(tuple(made_columns), "cache", "postcrash characterize --fs all", datetime.date(2026, 11, 23))

    return made


@pytest.fixture
def needs(crash: Any) -> Report:
    """Two applications on two targets: unsafe with a witness, unsafe by the properties, safe, safe as far as looked."""
    cells = [
        NeedsCell(
            application,
            target,
            real=real,
            modelled=modelled,
            because=because,
            lacking=lacking,
            states=10**6,
            recoveries=70,
            folders=9,
            finding=finding,
        )
        for application, target, real, modelled, because, lacking, finding in (
            (KV, "ext4-current", Verdict.VIOLATED, Verdict.VIOLATED, "no store", ("P1", "P5"), crash.finding.id),
            (KV, "xfs", Verdict.HOLDS, Verdict.VIOLATED, "a key is lost", ("P5",), ""),
            ("replace", "ext4-current", Verdict.HOLDS, Verdict.HOLDS, "", (), ""),
            ("replace", "xfs", Verdict.HOLDS, Verdict.UNDECIDED, "", (), ""),
        )
    ]
    rows = [
        NeedsRow(KV, ("P1 and P5", "S-sequential (first 200)"), False, 40, 31, 200),
        NeedsRow("replace", (), True, 6, 5, 7),
    ]
    lost = ("block 0 (write of store/log, call 7, db/log.cc:87 from db/db.cc:12)", "the name CURRENT (rename, call 9)")
    vulnerability = Vulnerability(KV, "the store does not open", lost, "put a", ("P1", "P5"))
    return report_of_needs(rows, cells, [vulnerability], "Made on 2026-11-23 by postcrash needs", "UML 6.1.176")


@pytest.fixture
def run(crash: Any) -> GateRun:
    """Two targets, two kernels: a new and a known failure, an open question, a part that holds, and a fixed line."""
    finding = crash.finding
    new = Failure(
        cause="c-0000000000000001",
        verdict="violated",
        judge=finding.checker,
        message=finding.message,
        lost=("data of a file",),
        standing="broken: rename",
        finding=finding.id,
        name=finding.workload_name,
        operations=finding.workload_text,
        workloads=3,
        states=Share(failed=2, runs=3),
    )
    known = new.model_copy(update={"cause": "c-0000000000000002", "known": "see the list", "finding": ""})
    undecided = Failure(cause="c-0000000000000003", verdict="undecided", judge="P1, P2", message="too many states")
    place: dict[str, Any] = {
        "name": "small-hunt",
        "kind": "hunt",
        "target": "ext4-original",
        "kernel": "6.1",
        "model": "cache",
    }
    first = Part(
        **place,
        expect="practice",
        verdict="violated",
        workloads=12,
        states=str(10**20),
        states_total=str(10**20),
        tested={"P1": 9, "P5": 12},
        failures=(known, new),
        notes=("not on this file system: exchange",),
    )
    other: dict[str, Any] = {"expect": "practice", "states": "5", "states_total": "5"}
    return GateRun(
        version="1.0",
        started="2026-11-23T12:00:00Z",
        seconds=61.5,
        file="gate.toml",
        baseline="known.txt",
        parts=(
            first,
            Part(**place | {"kernel": "6.12"}, **other, verdict="violated", failures=(known,)),
            Part(**place | {"target": "xfs"}, **other, verdict="undecided", failures=(undecided,)),
            Part(
                **place | {"name": "table", "kind": "properties", "target": "xfs", "model": "torn"},
                **other,
                verdict="holds",
            ),
        ),
        fixed=(FixedLine(line=7, cause="c-00000000000000ff", why="fixed upstream"),),
    )


@pytest.fixture
def evil_story(story: Story) -> Story:
    """A story in which every text is hostile. The timeline stays, as it has no text."""
    explanation = story.finding.explanation
    assert explanation is not None
    writes = tuple(replace(write, what=EVIL, name=EVIL, flags=EVIL) for write in explanation.epochs[0].writes)
    evil_sides: dict[str, Any] = {"path": EVIL, **dict.fromkeys(("found", "allowed", "reference"), (EVIL,))}
    hostile = replace(
        explanation,
        operations=tuple(replace(operation, text=EVIL) for operation in explanation.operations),
        epochs=(replace(explanation.epochs[0], ended=EVIL, writes=writes), *explanation.epochs[1:]),
        lost=(replace(explanation.lost[0], what=EVIL),),
        named_by=EVIL,
        unsent=(EVIL,),
        failure=EVIL,
        comparison=tuple(replace(path, **evil_sides) for path in explanation.comparison),
        reference=EVIL,
        objections=(EVIL,),
        evidence=tuple(replace(evidence, title=EVIL, text=EVIL) for evidence in explanation.evidence),
    )
    texts: dict[str, Any] = dict.fromkeys(
        ("checker", "message", "target", "kernel", "model", "workload_name", "workload_text"), EVIL
    )
    finding = replace(story.finding, **texts, state=EVIL, explanation=hostile)
    return replace(story, finding=finding, script=EVIL, no_script=EVIL)


TIMEOUT_MS = 60_000
"""On a busy machine the browser may wait for a CPU."""
BROWSER = "chromium-headless-shell"


@dataclass
class Reader:
    """Opens reports in Chromium, from files, and writes down what they may not do."""

    browser: Browser
    folder: Path
    complaints: list[str] = field(default_factory=list)

    def open(self, html: str, address: str = "", **context: Any) -> Page:
        """The page of the report `html`, in a window of its own, at the address `address` (`#…`)."""
        page = self.browser.new_context(**context).new_page()
        page.set_default_timeout(TIMEOUT_MS)
        file = self.folder / "report.html"
        file.write_text(html, encoding="utf-8")
        page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._look_at(request.url, file))
        page.goto(f"{file.as_uri()}{address}")
        return page

    def _look_at(self, url: str, file: Path) -> None:
        if url.partition("#")[0] != file.as_uri():
            self.complaints.append(f"request: {url[:100]}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which(BROWSER)
    if path is None:
        pytest.fail(f"{BROWSER} is not installed: run  make setup")
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    """A reader. The test fails if a page asks for something, throws, or writes to the console."""
    made = Reader(browser, tmp_path)
    yield made
    for context in browser.contexts:
        context.close()
    assert made.complaints == []
