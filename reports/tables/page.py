"""The HTML page: the property table and every witness, in one file that needs no other file.

Everything is escaped, because kernel logs, file names and consoles come from guests and may hold anything.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from postcrash.model import Verdict
from postcrash.properties import PROPERTIES
from postcrash.reports.explanation import explanation_text
from postcrash.reports.store.records import Cell, Finding
from postcrash.reports.tables import grid
from postcrash.reports.tables.matrix import LEGEND, Matrix
from postcrash.reports.text import visible

TITLE = "Post-crash properties"

_TEMPLATES = Path(__file__).parent / "templates"


def render(cells: Sequence[Cell], findings: Sequence[Finding], title: str = TITLE, matrix: Matrix | None = None) -> str:
    """The page for `cells`, which may be those of `matrix`, with a section for each of `findings`.

    A ✗ cell links to its witness if the witness is on the page.
    """
    return _template().render(
        title=title,
        matrix=matrix,
        grids=grid.grids(cells),
        findings=findings,
        finding_ids={finding.id for finding in findings},
        properties={known.name: known for known in PROPERTIES},
        words={verdict: verdict.name.lower() for verdict in Verdict},
    )


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
    environment.filters["code"] = code
    environment.globals.update(
        certificate=grid.certificate,
        certificate_headings=grid.CERTIFICATE_HEADINGS,
        certificate_numbers=grid.certificate_numbers,
        differs_mark=grid.DIFFERS_MARK,
        note=grid.note,
        matrix_legend=LEGEND,
        names_note=explanation_text.names_note,
        nothing_lost=explanation_text.NOTHING_LOST,
        unsent=explanation_text.UNSENT,
        otherwise_published=grid.otherwise_published,
        place=explanation_text.place,
        published_heading=grid.published_heading,
        published_notes=grid.published_notes,
        standing=grid.standing,
        standing_mark=grid.standing_mark,
        symbol_of=grid.symbol,
        totals=grid.totals,
        unpromised_legend=grid.UNPROMISED_LEGEND,
        when=explanation_text.when,
    )
    return environment.get_template("page.html.j2")


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
