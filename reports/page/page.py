"""The page of a report: one HTML file that needs no other file and no network.

Without JavaScript, the summary, the heat map, what it rests on and the list of entries are there. With it, the page
filters them and makes the story of a finding when it is opened. Everything is escaped, because kernel logs, file names
and consoles come from guests and may hold anything.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from postcrash.model.text import INVOCATION, cut, visible
from postcrash.reports.page.gate_page import report_of_gate
from postcrash.reports.page.layout import lay_out
from postcrash.reports.page.matrix_page import report_of_matrix
from postcrash.reports.page.report import SIGNS, Report, ReportEntry
from postcrash.reports.page.story import Story, story_block
from postcrash.reports.tables.matrix import Matrix
from postcrash.store.gate_run import GateRun
from postcrash.store.records import IdError, check_finding_id

PAGE_BYTES_MAX = 5_000_000
ENTRIES_MAX = 1000
"""How many entries a page has at most."""
TEXT_MAX = 2000
"""The longest text in a table or an entry, in characters. A story has the whole text."""
LINK_MAX = 160
"""The longest text of a link to an entry."""

_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = ("page.css", "matrix.css", "story.css", "media.css")
_SCRIPTS = ("dom.js", "address.js", "chart.js", "perfetto.js", "story.js", "matrix.js", "page.js")
_STORIES = '<script type="application/json" id="stories">%s</script>'
"""Nothing else on the page can look like this, because all other text is escaped."""


def render_matrix(matrix: Matrix, stories: Sequence[Story], invocation: str = INVOCATION) -> str:
    """The page of a table or matrix. A ✗ leads to the story of its witness, if this is among `stories`.

    `invocation` is how postcrash is called with the store that has the findings, here and on all pages.
    """
    return _rendered(report_of_matrix(matrix, [story.finding for story in stories]), stories, invocation)


def render_gate(run: GateRun, stories: Sequence[Story], invocation: str = INVOCATION) -> str:
    """The page of a gate's result. A failure has the story of its finding, if this is among `stories`."""
    return _rendered(report_of_gate(run), stories, invocation)


def render_needs(report: Report, stories: Sequence[Story], invocation: str = INVOCATION) -> str:
    """The page of a report of needs. A ✗ leads to the story of its witness, if this is among `stories`."""
    return _rendered(report, stories, invocation)


def _rendered(report: Report, stories: Sequence[Story], invocation: str) -> str:
    """The page has at most PAGE_BYTES_MAX bytes: stories for which there is no room are left out, the last first."""
    entries = report.entries
    shown = entries[:ENTRIES_MAX]
    style, script = (_joined(names) for names in (_STYLES, _SCRIPTS))
    page = _template().render(
        report=report,
        invocation=invocation,
        layout=lay_out(report.heat_map),
        shown=shown,
        omitted=len(entries) - len(shown),
        ids=_ids(shown),
        signs=SIGNS,
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
        no_stories=Markup(_STORIES % ""),
    )
    told = {story.finding.id: story for story in stories}
    wanted = dict.fromkeys(entry.finding for entry in shown)
    room = PAGE_BYTES_MAX - len(page.encode())
    block = story_block((told[id] for id in wanted if id in told), room, invocation)
    return page.replace(_STORIES % "", _STORIES % block, 1)


def _ids(entries: Sequence[ReportEntry]) -> dict[ReportEntry, str]:
    """The ids of the entries' elements: the finding's, or a number if it has none or if it was used before."""
    ids: dict[ReportEntry, str] = {}
    used = set()
    for number, entry in enumerate(entries, start=1):
        is_good = _is_finding_id(entry.finding) and entry.finding not in used
        ids[entry] = entry.finding if is_good else f"entry-{number}"
        used.add(entry.finding)
    return ids


def _is_finding_id(text: str) -> bool:
    try:
        check_finding_id(text)
    except IdError:
        return False
    return True


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(code=code, cut=cut)
    environment.globals.update(LINK_MAX=LINK_MAX, TEXT_MAX=TEXT_MAX)
    return environment.get_template("page.html.j2")


@lru_cache
def _joined(names: Sequence[str]) -> Markup:
    """The contents of template files, one after the other."""
    return Markup("\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def _digest(text: str) -> str:
    """What the page's Content-Security-Policy knows its own style or script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def code(text: str) -> Markup:
    """`text`, escaped, with text between backticks marked as code."""
    parts = [escape(visible(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(visible(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def _finalize(value: object) -> object:
    """The value of an expression of the template, before it is escaped."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
