"""`postcrash init`: the first file of a gate."""

from pathlib import Path

import click

from postcrash.harness.cli.options import kernel_option
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_text
from postcrash.harness.files.places import GATE_FILE, cache_folder
from postcrash.harness.gate.baseline import add_lines
from postcrash.harness.gate.initial_configuration import KNOWN_FILE, initial_configuration
from postcrash.harness.gate.schema import SCHEMA_FILE, schema
from postcrash.harness.guests.kernels.stock import Stock


@click.command()
@click.option("--force", is_flag=True, help=f"Write {GATE_FILE} anew if it is there.")
@kernel_option
@click.pass_obj
def init(session: Session, force: bool) -> None:
    """Write postcrash.toml, the file of a gate, into the current folder.

    It names the file systems that this machine can run, the kernel of --kernel or the one that was built in this
    folder, and the workloads that are here. Without either, it names the installed kernel, and the newest two that
    were fetched or added and have these file systems. postcrash-known.txt, the list of known failures, is made too,
    unless it is there. The schema that editors need to complete postcrash.toml goes into the store.

    \b
    Example:
      postcrash init && postcrash gate
    """
    file = Path(GATE_FILE)
    if file.exists() and not force:
        raise UsageError(f"{file} is there already: --force writes it anew")
    place = session.store.folder / SCHEMA_FILE
    stocked = [kernel.name for kernel in Stock(cache_folder()).all()]
    text = initial_configuration(session, Path(), place.as_posix(), stocked)
    write_text(str(place), schema(stocked))
    if not Path(KNOWN_FILE).exists():
        add_lines(Path(KNOWN_FILE), ())
    write_text(str(file), text)
    click.echo(f"Written: {file}. Next: {session.invocation} gate")
