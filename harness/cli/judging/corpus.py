"""`postcrash corpus`: judge every workload of a folder on several targets and kernels."""

import datetime
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from postcrash.harness.cli.judging.characterize import kernel_names, targets_named
from postcrash.harness.cli.options import (
    expect_option,
    exploration_options,
    fresh_option,
    json_option,
    kernel_options,
    kinds_options,
    one_disk_option,
    targets_option,
    time_option,
)
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import PRACTISED, Expectation
from postcrash.harness.expectations.known_objections import load_known
from postcrash.harness.files.output import command_line, write_json, write_text
from postcrash.harness.files.workload_files import loaded_from
from postcrash.harness.findings.last_finding import keep_last
from postcrash.harness.hunting.corpus import CorpusQuestion, kernels_of_name, run_column
from postcrash.reports.tables.corpus import CorpusTable, corpus_markdown, print_corpus


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@targets_option(default=("ext4-current,btrfs,xfs,f2fs",), show_default=True)
@kinds_options
@one_disk_option
@expect_option(PRACTISED)
@fresh_option
@exploration_options
@partial(time_option, minimizes=False)
@click.option("--markdown", metavar="FILE", help="Write the table as Markdown; - is standard output.")
@kernel_options
@json_option
@click.pass_obj
def corpus(
    session: Session,
    folder: Path,
    targets: Sequence[str],
    kinds: frozenset[str],
    one_disk: bool,
    expected: Expectation,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    seconds_max: float | None,
    markdown: str | None,
    json_file: str | None,
) -> int:
    """Run every workload of FOLDER and judge every crash state that each can leave: one table of verdicts.

    Workloads are the files whose names end in .ops (docs/workloads.md). A workload that is named after a file system,
    such as xfs-121.ops, is run only on targets with this file system. `commit`, `sync` and `checkpoint` are added at
    the end of each. What is undecided then is run once more without `checkpoint`. Each is run on a disk that completes
    writes at once and on one that holds them back; a cell has the worse verdict.

    \b
    ✓ holds: every crash state was covered, and no judge objects
    ✗ violated: `postcrash explain ID` tells the story, `postcrash repro ID` runs it again
    ? undecided, – not on this file system: the reason is below the table
    ?ˡ undecided, but it holds without checkpoint at the end

    --kernel takes several kernels with commas between them; then each cell has a verdict for each of them. A file
    known.toml in FOLDER says which findings are known (corpus/fstests/README.md). After an interruption, or when its
    --time is over, the same command goes on where it was. Workloads that were not run by then are undecided.

    \b
    Examples:
      postcrash corpus corpus/fstests --budget 300,20s
      postcrash corpus my-bugs --target xfs,xfs-wsync --kernel 6.1,7.2 --fsck --markdown bugs.md
    """
    if expected.compares:
        raise UsageError(
            f"--expect {expected.name} compares kernels or targets, as the table does: choose another level"
        )
    until = None if seconds_max is None else time.monotonic() + seconds_max
    workloads = loaded_from(folder)
    known = load_known(folder, Path(markdown).parent if markdown not in (None, "-") else Path())
    disks = how.disks(one=one_disk)
    question = CorpusQuestion(
        workloads, targets_named(session, targets), expected=expected, kinds=kinds, how=how, known=known, disks=disks
    )
    kernels = [kernels_of_name(session, name, question) for name in kernel_names(session.kernel_name)]
    with TerminalProgress(len(kernels) * len(disks) * sum(1 for _ in question.pairs)) as progress:
        columns = tuple(
            run_column(session, each, question, guests, progress, fresh=fresh, until=until) for each in kernels
        )
    run_names = {workload.name for workload, _ in question.pairs}
    table = CorpusTable(
        columns,
        tuple(workload.name for workload in workloads if workload.name in run_names),
        targets=tuple(target.name for target in question.targets),
        level=expected.name,
        model=how.model,
        command=command_line(),
        date=datetime.datetime.now(datetime.UTC).date(),
    )
    keep_last(session.store, table.findings)
    write_json(json_file, table.to_json())
    if markdown is not None:
        write_text(markdown, corpus_markdown(table))
    if "-" not in (markdown, json_file):
        print_corpus(table, Console())
    return table.verdict.exit_code
