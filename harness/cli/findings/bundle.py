"""`postcrash bundle ID`: a finding as one file, which another machine replays."""

import shlex
from pathlib import Path

import click
from rich.console import Console

from postcrash.harness.cli.completion import complete_findings
from postcrash.harness.cli.options import json_option, kernel_options
from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import replacing, write_json
from postcrash.harness.findings.bundles.bundle import write_bundle
from postcrash.harness.findings.last_finding import id_named
from postcrash.model import ExitCode
from postcrash.model.text import INVOCATION


@click.command()
@click.argument("id", metavar="ID|last", shell_complete=complete_findings)
@click.option("-o", "--output", metavar="FILE", help="Write the bundle to FILE; by default to ID.tar.gz.")
@kernel_options
@json_option
@click.pass_obj
def bundle(session: Session, id: str, output: str | None, json_file: str | None) -> int:
    """Write finding ID with all that is needed to see it again to one file.

    The file holds the finding, its recording and its base image, so that a machine with another kernel, another mkfs
    and an empty store replays it. `repro`, `explain`, `minimize` and `report` take the file in place of an id. For
    people without postcrash there is a shell script in it, where there can be one. docs/report.md says what else
    it tells of this machine. `last` in place of ID is the first finding that the last command named.

    \b
    Example:
      postcrash bundle f-1a2b3c4d5e6f7a8b -o finding.tar.gz
      postcrash repro finding.tar.gz
    """
    finding = session.store.finding(id_named(session.store, id))
    place = Path(output or f"{finding.id}.tar.gz")
    try:
        with replacing(place) as file:
            left_out = write_bundle(session, finding, file)
        size = place.stat().st_size
    except OSError as error:
        raise InfrastructureError(f"cannot write {place}: {error.strerror or error}") from error
    write_json(json_file, {"id": finding.id, "bundle": str(place), "bytes": size})
    if json_file != "-":
        console = Console(soft_wrap=True)
        console.print(f"{place}: {size} bytes, {finding.checker} on {finding.target}", markup=False, highlight=False)
        for what in left_out:
            console.print(f"without {what}", markup=False, highlight=False)
        again = shlex.join([INVOCATION, "repro", str(place)])
        console.print(f"again, anywhere: {again}", markup=False, highlight=False)
    return ExitCode.HOLDS
