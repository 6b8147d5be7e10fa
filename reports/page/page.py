"""Renders the page of a report: one HTML file that needs no other file and no network.

The summary, the heat map, its evidence and the list of entries need no JavaScript. With it, the page filters them and
makes the story of a finding when it is opened. Everything is escaped, because kernel logs, file names and consoles come
from guests and may hold anything.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from postcrash.model.text import INVOCATION, cut, visible
from postcrash.reports.page.layout import lay_out
from postcrash.reports.page.report import SIGNS, Report, ReportEntry
from postcrash.reports.page.story import Story, story_block
from postcrash.store.records import IdError, check_finding_id

PAGE_BYTES_MAX = 5_000_000
ENTRIES_MAX = 1000
"""The most entries of a page."""
TEXT_MAX = 2000
"""The longest text in a table or an entry, in characters. A story has the whole text."""
LINK_MAX = 160
"""The longest text of a link to an entry."""

_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = ("page.css", "matrix.css", "story.css", "media.css")
_SCRIPTS = ("dom.js", "address.js", "chart.js", "perfetto.js", "story.js", "matrix.js", "page.js")
_STORIES = '<script type="application/json" id="stories">%s</script>'
"""Nothing else on the page can look like this, because all other text is escaped."""


def render(report: Report, stories: Sequence[Story], invocation: str = INVOCATION) -> str:
    """The page of a report. Entries have the stories of their findings, as far as these are among `stories`.

    `invocation` is how postcrash is called with the store that has the findings. The page has at most PAGE_BYTES_MAX
    bytes: stories for which there is no room are left out, the last first.
    """
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
    by_finding = {story.finding.id: story for story in stories}
    findings = dict.fromkeys(entry.finding for entry in shown)
    room = PAGE_BYTES_MAX - len(page.encode())
    block = story_block((by_finding[id] for id in findings if id in by_finding), room, invocation)
    return page.replace(_STORIES % "", _STORIES % block, 1)


def _ids(entries: Sequence[ReportEntry]) -> dict[ReportEntry, str]:
    """The ids of the entries' elements: that of the finding, or a number if there is none or if it was used before."""
    ids: dict[ReportEntry, str] = {}
    used = set()
    for number, entry in enumerate(entries, start=1):
        is_usable = _is_finding_id(entry.finding) and entry.finding not in used
        ids[entry] = entry.finding if is_usable else f"entry-{number}"
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
    """The contents of template files, joined."""
    return Markup("\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names))


def _digest(text: str) -> str:
    """The hash by which the page's Content-Security-Policy allows its own style or script."""
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
