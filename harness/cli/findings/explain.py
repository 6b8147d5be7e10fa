"""`postcrash explain ID`: the story of one finding."""

import click
from rich.console import Console

from postcrash.harness.cli.completion import complete_findings
from postcrash.harness.cli.options import json_option
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_json
from postcrash.harness.findings.bundles.import_bundle import finding_named
from postcrash.harness.findings.finding_details import stories_of, with_block_names
from postcrash.model import ExitCode
from postcrash.model.text import visible
from postcrash.reports.explanation.explanation_text import render_text
from postcrash.reports.explanation.perfetto import trace_events
from postcrash.store.consoles import console_file
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding

NO_CRASH = "Two guests were lost while they ran the workload: there is no crash state. The recording ends there."


@click.command()
@click.argument("id", metavar="ID|last|BUNDLE", shell_complete=complete_findings)
@click.option(
    "--perfetto",
    metavar="FILE",
    help="Write when everything happened as a trace that Perfetto opens.",
)
@json_option
@click.pass_obj
def explain(session: Session, id: str, perfetto: str | None, json_file: str | None) -> int:
    """Tell what happened in finding ID.

    `last` in place of ID is the first finding that the last command named.
    BUNDLE is a finding as a file (`postcrash bundle`). It is put into the store first.
    Shows the operations and how far they had got, the requests of the disk by epoch, the requests that the crash lost,
    and the tree that was found beside the tree that the operations make.

    \b
    Examples:
      postcrash explain f-1a2b3c4d5e6f7a8b
      postcrash explain f-1a2b3c4d5e6f7a8b --perfetto trace.json
    """
    (finding,) = with_block_names([finding_named(session, id)], session.store)
    write_json(json_file, finding.to_json())
    if perfetto is not None:
        write_json(perfetto, _trace_events(session, finding))
    if "-" not in (json_file, perfetto):
        if finding.is_of_run:
            Console(soft_wrap=True).print(f"{finding.checker}: {finding.message}", markup=False, highlight=False)
            Console(soft_wrap=True).print(NO_CRASH, markup=False, highlight=False)
        if finding.explanation is not None:
            render_text(finding.explanation, Console(), finding.needed)
        elif finding.casualty is not None:
            Console(soft_wrap=True).print(f"console: {console_file(finding.casualty)} in the store", highlight=False)
        Console(soft_wrap=True).print(_found_on(finding), markup=False, highlight=False)
        print_link(finding, session.invocation)
    return ExitCode.HOLDS


def _trace_events(session: Session, finding: Finding) -> Json:
    """The finding's timeline. Raises UsageError where it has none."""
    (story,) = stories_of([finding], session)
    if story.timeline is None or story.finding.explanation is None:
        raise UsageError(f"{finding.id} has no timeline: its recording is gone, or it has no crash state")
    title = f"{finding.id}: {finding.checker} on {finding.target}"
    return trace_events(title, story.finding.explanation, story.timeline)


def _found_on(finding: Finding) -> str:
    build = f" ({finding.built.description})" if finding.built is not None else ""
    return visible(f"found on: {finding.target}, {finding.kernel}{build}")


def print_link(finding: Finding, invocation: str) -> None:
    """Print where the smallest workload that breaks the same judge is, if it has been looked for."""
    if finding.minimal is not None:
        which = "this one" if finding.minimal == finding.id else f"{invocation} explain {finding.minimal}"
        line = f"smallest workload that breaks {finding.checker}: {which}"
        Console(soft_wrap=True).print(line, markup=False, highlight=False)
