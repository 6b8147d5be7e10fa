"""`postcrash characterize`: the post-crash property table."""

import datetime
from collections.abc import Sequence

import click
from rich.console import Console

from postcrash.harness.cli.completion import complete_properties
from postcrash.harness.cli.options import (
    exploration_options,
    fresh_option,
    json_option,
    kernel_options,
    one_disk_option,
    promised_option,
    targets_option,
)
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.contract import Contract
from postcrash.harness.files.output import command_line, write_json, write_text
from postcrash.harness.findings.finding_details import stories_of
from postcrash.harness.findings.flips import find_needed_writes
from postcrash.harness.findings.last_finding import keep_last
from postcrash.harness.tables.characterize import Question
from postcrash.harness.tables.matrix import labels_in, questions_by_kernel, run_column
from postcrash.model import Verdict, worst
from postcrash.properties import GROUPS, HOTDEP13, Property, UnknownPropertyError, properties_named
from postcrash.properties.adversary import BY_WORKLOAD, CHOICES, Adversary
from postcrash.properties.promises import verdict_on_promises
from postcrash.reports.page.matrix_page import report_of_matrix
from postcrash.reports.page.page import render
from postcrash.reports.page.story import Story
from postcrash.reports.tables import table
from postcrash.reports.tables.matrix import Matrix
from postcrash.targets import TABLE_TARGETS, Target


@click.command()
@targets_option(
    "--fs",
    help_text="Only these targets: names with commas between them, or all for the whole catalogue; can be repeated.",
)
@click.option(
    "--properties",
    "--property",
    shell_complete=complete_properties,
    multiple=True,
    metavar="NAME,…",
    help=f"Properties and groups: all, {', '.join(GROUPS)}; can be repeated.  [default: hotdep13]",
)
@click.option(
    "--adversary",
    type=click.Choice([each.name.lower() for each in CHOICES]),
    callback=lambda _context, _parameter, name: Adversary[name.upper()],
    default=CHOICES[-1].name.lower(),
    show_default=True,
    help=f"The strongest adversary. {'; '.join(f'{each.name.lower()}: {each.shown}' for each in CHOICES)}.",
)
@one_disk_option
@fresh_option
@exploration_options
@click.option("--markdown", metavar="FILE", help="Write the table as Markdown; - is standard output.")
@click.option("--html", metavar="FILE", help="Write the report, a page with every story; - is standard output.")
@click.option(
    "--contract", metavar="FILE", help="Write what holds, for  hunt --expect contract:FILE  on other kernels."
)
@kernel_options
@json_option
@promised_option
@click.pass_obj
def characterize(
    session: Session,
    targets: Sequence[str],
    properties: Sequence[str],
    adversary: Adversary,
    one_disk: bool,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    markdown: str | None,
    html: str | None,
    contract: str | None,
    json_file: str | None,
    promised: bool,
) -> int:
    """Make the table of post-crash properties: targets down, properties across.

    \b
    ✓ holds: every crash state of every workload of the property's family was covered on both disks, and none breaks it
    ✗ violated: a crash state breaks it; `postcrash explain ID` tells the story, `postcrash repro ID` runs it again
    ? undecided: the reason is below the table
    – not there: the kernel does not have the file system, or the target lacks the operation that the property is about
    ° on ✓ and ✗: no document promises it (docs/promises.md)

    --kernel takes several kernels with commas between them; then each cell has a verdict for each of them. A version
    such as 6.12 stands for user-mode Linux of that version, or for its image if only the image has the file system.

    \b
    Examples:
      postcrash characterize
      postcrash characterize --target btrfs --property P1 --property P3
      postcrash characterize --target xfs --json - --html xfs.html
      postcrash characterize --properties osdi14,P2 --model torn
      postcrash characterize --adversary plain
      postcrash characterize --one-disk --target ext4-current
      postcrash characterize --kernel 5.10,6.1,6.12,7.2 --fs all
      postcrash characterize --properties all --target ext4-current --contract ext4.json
    """
    if one_disk:
        adversary = min(adversary, BY_WORKLOAD[-1])
    if contract is not None:
        _require_all_for_contract(session, adversary)
    question = Question(_properties(properties), how, adversary)
    chosen = targets_named(session, targets) or list(TABLE_TARGETS)
    questions = [questions_by_kernel(session, name, chosen, question) for name in kernel_names(session.kernel_name)]
    labels = labels_in(questions)
    columns, findings = [], []
    with TerminalProgress(sum(each.plans for each in questions)) as progress:
        for each in questions:
            column, found = run_column(
                session, each, question, guests, progress, fresh=fresh, labels=labels, finish=find_needed_writes
            )
            columns.append(column)
            findings.extend(found)
    command = command_line()
    matrix = Matrix(tuple(columns), how.model, command, datetime.datetime.now(datetime.UTC).date())
    if not matrix.cells:
        raise NothingSelectedError("no target or no property is selected")
    keep_last(session.store, [cell.witness for cell in matrix.cells if cell.witness])
    stories = stories_of(findings, session)
    _write(session, matrix, stories, markdown=markdown, html=html, json_file=json_file)
    if contract is not None:
        (column,) = matrix.columns
        write_text(contract, Contract.of(column.cells, column.kernels or column.name, how.model).to_text())
    if "-" not in (markdown, html, json_file):
        _print(matrix)
        _write_to_store(session, matrix, stories)
    return _verdict(matrix, promised).exit_code


def _require_all_for_contract(session: Session, adversary: Adversary) -> None:
    if len(kernel_names(session.kernel_name)) > 1:
        raise UsageError("--contract is about one kernel: name one with --kernel")
    if adversary < BY_WORKLOAD[-1]:
        raise UsageError("--contract is about all workloads: leave --adversary out")


def _verdict(matrix: Matrix, promised: bool) -> Verdict:
    """The worst verdict of all cells, or of the promised ones."""
    there = [cell for cell in matrix.cells if cell.workloads]
    if promised:
        return verdict_on_promises((cell.verdict, cell.statements) for cell in there)
    return worst([cell.verdict for cell in there] or [Verdict.UNDECIDED])


def targets_named(session: Session, given: Sequence[str]) -> list[Target]:
    """The targets in lists of names with commas between them, each once. Raises HarnessError."""
    return session.targets(name.strip() for names in given for name in names.split(","))


def kernel_names(given: str | None) -> list[str | None]:
    """The kernels in a list of names with commas between them. None is the kernel that is used without a name."""
    return [None] if given is None else list(dict.fromkeys(name.strip() for name in given.split(",")))


def _properties(names: Sequence[str]) -> tuple[Property, ...]:
    try:
        return properties_named(",".join(names)) if names else HOTDEP13
    except UnknownPropertyError as error:
        raise UsageError(str(error)) from error


def _print(matrix: Matrix) -> None:
    if len(matrix.columns) > 1:
        table.print_matrix(matrix, Console())
    else:
        table.print_table(matrix.cells, Console())


def _write(
    session: Session,
    matrix: Matrix,
    stories: Sequence[Story],
    *,
    markdown: str | None,
    html: str | None,
    json_file: str | None,
) -> None:
    is_matrix = len(matrix.columns) > 1
    write_json(json_file, matrix.to_json() if is_matrix else table.to_json(matrix.cells))
    if markdown is not None:
        write_text(markdown, table.matrix_markdown(matrix) if is_matrix else table.to_markdown(matrix.cells))
    if html is not None:
        report = report_of_matrix(matrix, [story.finding for story in stories])
        write_text(html, render(report, stories, session.invocation))


def _write_to_store(session: Session, matrix: Matrix, stories: Sequence[Story]) -> None:
    name = "matrix" if len(matrix.columns) > 1 else "table"
    places = [session.store.folder / f"{name}.{ending}" for ending in ("md", "html", "json")]
    markdown, html, json_file = map(str, places)
    _write(session, matrix, stories, markdown=markdown, html=html, json_file=json_file)
    Console(soft_wrap=True).print(f"Written: {', '.join(map(str, places))}", highlight=False)
