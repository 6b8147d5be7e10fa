"""`postcrash explain ID`: the story of one finding."""

import click
from rich.console import Console

from postcrash.harness.commands.options import json_option
from postcrash.harness.output import write_json
from postcrash.harness.session import Session
from postcrash.model import ExitCode
from postcrash.reports.explanation_text import render_text


@click.command()
@click.argument("id")
@json_option
@click.pass_obj
def explain(session: Session, id: str, json_file: str | None) -> int:
    """Tell what happened in finding ID.

    \b
    Shows the operations and how far they had got, the requests of the disk by epoch with those that the crash lost,
    and the tree that was found beside the one that the operations make.
    """
    finding = session.store.finding(id)
    write_json(json_file, finding.to_json())
    if json_file != "-" and finding.explanation is not None:
        render_text(finding.explanation, Console())
    return ExitCode.HOLDS
