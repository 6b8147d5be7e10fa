"""`postcrash init`: the first file of a gate."""

from pathlib import Path

import click

from postcrash.harness.commands.options import kernel_options
from postcrash.harness.errors import UsageError
from postcrash.harness.gate.configuration import FILE, SCHEMA_FILE, schema
from postcrash.harness.gate.first import first_file
from postcrash.harness.output import write_text
from postcrash.harness.session import Session


@click.command()
@click.option("--force", is_flag=True, help=f"Write {FILE} anew if it is there.")
@kernel_options
@click.pass_obj
def init(session: Session, force: bool) -> None:
    """Write postcrash.toml, the file of a gate, into the current folder.

    It names the file systems that this machine can run, a kernel that was built in this folder, and the workloads that
    are here. The schema that editors need to complete it goes into the store.

    \b
    Example:
      postcrash init && postcrash gate
    """
    file = Path(FILE)
    if file.exists() and not force:
        raise UsageError(f"{file} is there already: --force writes it anew")
    place = session.store.folder / SCHEMA_FILE
    text = first_file(session, Path(), place.as_posix())
    write_text(str(place), schema())
    write_text(str(file), text)
    click.echo(f"Written: {file}. Next: postcrash gate")
