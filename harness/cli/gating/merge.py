"""`postcrash merge` and `postcrash diff`: results of gates, put together and compared."""

from collections.abc import Sequence
from pathlib import Path

import click

from postcrash.harness.cli.gating.result_formats import ResultFiles, result_options
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import say
from postcrash.harness.findings.bundles.folder import import_bundles
from postcrash.harness.gate.merging import load_result, merged
from postcrash.model import ExitCode
from postcrash.reports.gate.difference import differences, different_questions


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--bundles",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Put the findings of the bundles in FOLDER into the store first, so that --html has their stories.",
)
@result_options
@click.pass_obj
def merge(session: Session, files: Sequence[str], bundles: Path | None, result_files: ResultFiles) -> int:
    """Put the results of all shards of a gate together: FILES that `postcrash gate --shard I/N --json FILE` wrote.

    The exit code is that of the whole gate. It is an error if a shard is missing, or if shards rest on different
    kernels or files. If a shard was interrupted, the gate is not HOLDS.

    \b
    Example:
      postcrash merge gate-1.json gate-2.json --junit gate.xml
      postcrash merge gate-*.json --bundles bundles --html gate.html
    """
    try:
        run = merged([load_result(file) for file in files])
    except ValueError as error:
        raise UsageError(str(error)) from error
    if bundles is not None:
        import_bundles(session.store, bundles, say)
    result_files.write(run, session)
    return run.verdict.exit_code


@click.command()
@click.argument("old")
@click.argument("new")
def diff(old: str, new: str) -> int:
    """Say what changed from one run of a gate to another: OLD and NEW are files that `gate --json FILE` wrote.

    One line for each change: + a new failure, - one that is gone, ~ another verdict. A line with ? is about a failure
    of only one run. The other run cannot tell, because it was not run to its end, or not decided. The runs may be of
    two kernels or two commits. If they were asked different things, a note says so. Exit code 1 if there is a line,
    0 if there is none.

    \b
    Example:
      postcrash diff before.json after.json
    """
    runs = load_result(old), load_result(new)
    for note in different_questions(*runs):
        say(f"the runs are not alike: {note}")
    found = differences(*runs)
    for difference in found:
        click.echo(difference)
    return ExitCode.VIOLATED if found else ExitCode.HOLDS
