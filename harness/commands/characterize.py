"""`postcrash characterize`: the post-crash property table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from postcrash.harness.budget import Budget
from postcrash.harness.characterize import Question, make_plans
from postcrash.harness.characterize import characterize as run
from postcrash.harness.commands.options import exploration_options, json_option, kernel_options
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.naming import named
from postcrash.harness.output import write_json, write_text
from postcrash.harness.progress import TerminalProgress
from postcrash.harness.session import Session
from postcrash.model import worst
from postcrash.properties import GROUPS, HOTDEP13, Property, UnknownPropertyError, properties_named
from postcrash.reports import page, table
from postcrash.reports.records import Cell, Finding
from postcrash.targets import TABLE_TARGETS


@click.command()
@click.option("--target", "targets", multiple=True, metavar="NAME", help="Only this target; can be repeated.")
@click.option(
    "--properties",
    "--property",
    multiple=True,
    metavar="NAMES",
    help=f"Properties and groups, with commas: all, {', '.join(GROUPS)}. [default: hotdep13]",
)
@exploration_options
@click.option("--markdown", metavar="FILE", help="Write the table as Markdown; - is standard output.")
@click.option("--html", metavar="FILE", help="Write a page with the table and every witness; - is standard output.")
@kernel_options
@json_option
@click.pass_obj
def characterize(
    session: Session,
    targets: Sequence[str],
    properties: Sequence[str],
    model: str,
    guests: int | None,
    budget: Budget,
    bound: int | None,
    samples: int | None,
    seed: int,
    depth: int,
    fresh: bool,
    held: int | None,
    markdown: str | None,
    html: str | None,
    json_file: str | None,
) -> int:
    """Make the table of post-crash properties: targets down, properties across.

    \b
    ✓ holds: every crash state of every workload of the property's family was covered, and none breaks it
    ✗ violated: a crash state breaks it; `postcrash explain ID` tells the story, `postcrash repro ID` runs it again
    ? undecided: the reason is below the table

    \b
    Examples:
      postcrash characterize
      postcrash characterize --target btrfs --property P1 --property P3
      postcrash characterize --target xfs --json - --html xfs.html
      postcrash characterize --properties osdi14,P2 --model torn
    """
    chosen = [session.target(name) for name in targets] or list(TABLE_TARGETS)
    question = Question(
        targets=[(target, session.base(target)) for target in dict.fromkeys(chosen)],
        properties=_properties(properties),
        kernel=session.kernel.label,
        model=model,
        budget=replace(budget, bound=bound, samples=samples),
        seed=seed,
        depth=depth,
        held=held,
    )
    with TerminalProgress(len(make_plans(question))) as progress:
        cells, findings = run(question, session.crew(guests), session.store, progress, fresh=fresh)
    if not cells:
        raise NothingSelectedError("no target or no property is selected")
    findings = named(findings, session.store)
    _write(cells, findings, markdown, html, json_file)
    if "-" not in (markdown, html, json_file):
        table.print_table(cells, Console())
        _write_to_store(session.store.folder, cells, findings)
    return worst(cell.verdict for cell in cells).exit_code


def _properties(names: Sequence[str]) -> tuple[Property, ...]:
    try:
        return properties_named(",".join(names)) if names else HOTDEP13
    except UnknownPropertyError as error:
        raise UsageError(str(error)) from error


def _write(
    cells: list[Cell], findings: list[Finding], markdown: str | None, html: str | None, json_file: str | None
) -> None:
    write_json(json_file, table.to_json(cells))
    if markdown is not None:
        write_text(markdown, table.to_markdown(cells))
    if html is not None:
        write_text(html, page.render(cells, findings))


def _write_to_store(folder: Path, cells: list[Cell], findings: list[Finding]) -> None:
    places = [folder / f"table.{ending}" for ending in ("md", "html", "json")]
    _write(cells, findings, *map(str, places))
    Console(soft_wrap=True).print(f"Written: {', '.join(map(str, places))}", highlight=False)
