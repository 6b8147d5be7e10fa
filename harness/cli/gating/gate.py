"""`postcrash gate`: everything that must hold before a change goes in."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from postcrash.harness.cli.completion import complete_parts
from postcrash.harness.cli.gating.result_formats import ResultFiles, result_options
from postcrash.harness.cli.options import shard_option, time_option
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import notes, say
from postcrash.harness.files.places import GATE_FILE
from postcrash.harness.findings.bundles.folder import write_bundles
from postcrash.harness.gate.gate import Gate, Watcher, run_gate
from postcrash.harness.gate.planning import PlannedPart
from postcrash.harness.hunting.space_hunt import Shard
from postcrash.model.text import one_line
from postcrash.store.gate_run import Part


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default=Path(GATE_FILE))
@click.option(
    "--part",
    "names",
    multiple=True,
    shell_complete=complete_parts,
    metavar="NAME",
    help="Only this part; can be repeated.",
)
@shard_option("Every N-th workload of each part, beginning with the I-th. `postcrash merge` joins the results.")
@time_option
@click.option("--accept", metavar="WHY", help="Add new failures to the baseline, with this reason.")
@click.option(
    "--accept-upstream",
    is_flag=True,
    help="Add those new failures to the baseline that are known upstream, each with its page as the reason.",
)
@click.option(
    "--bundles",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the finding of each new failure to FOLDER, as `postcrash bundle` does.",
)
@result_options
@click.pass_obj
def gate(
    session: Session,
    file: Path,
    names: Sequence[str],
    shard: Shard,
    seconds_max: float | None,
    accept: str | None,
    accept_upstream: bool,
    bundles: Path | None,
    result_files: ResultFiles,
) -> int:
    """Run all parts of the gate FILE, and fail if something is broken that was not known before.

    FILE says what is run on which file systems and kernels, and what is expected (docs/gate.md). `postcrash init`
    writes one for this machine. Failures that a line of the baseline accepts still run. They do not fail the gate, and
    the gate says so when they are gone. If --time is over, the next run begins with what was left out. A failure that
    is known upstream (docs/findings/) is told as such, and fails the gate until a line accepts it.

    Exit codes: 0 nothing new is broken, 1 something new is, 6 something could not be decided.

    \b
    Examples:
      postcrash init
      postcrash gate
      postcrash gate --part small --time 2m --json gate.json
      postcrash gate --accept "known since 6.1, see the list"
    """
    options = Gate(file, tuple(names), shard, seconds_max, accept, accept_upstream)
    run = run_gate(options, session, Watcher(partial(_progress, session), _print_part, say))
    result_files.write(run, session)
    if bundles is not None:
        new = [failure.finding for part in run.parts for failure in part.new if failure.finding]
        write_bundles(session, new, bundles, say)
    if run.interrupted:
        raise KeyboardInterrupt
    return run.verdict.exit_code


def _progress(session: Session, planned: PlannedPart | None) -> TerminalProgress:
    return TerminalProgress(None if planned is None else planned.workloads.count, session.invocation)


def _print_part(part: Part) -> None:
    """Prints a line for a part that was run to its end, if somebody watches."""
    console = notes()
    if console.is_terminal:
        text = one_line(f"{part.title}: {part.verdict}, {part.seconds:.0f} s")
        console.print(text, markup=False, highlight=False, soft_wrap=True, emoji=False)
