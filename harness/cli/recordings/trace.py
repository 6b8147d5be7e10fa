"""`postcrash trace` and `postcrash import-strace`: write what a program does to a folder as a workload."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from postcrash.harness.cli.options import json_option
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.files.output import say, write_json
from postcrash.harness.files.scratch import scratch
from postcrash.model import ExitCode
from postcrash.recorders.strace import (
    COMMAND,
    ImportedTrace,
    ImportState,
    NotMapped,
    StraceError,
    StraceMissing,
    import_strace,
    prepare,
    run_under_strace,
)
from postcrash.store.json_codec import Json

SHOWN_MAX = 50
"""The most lines about calls that are not mapped, on the terminal and in the workload's file. --json has all."""


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    folder = click.Path(file_okay=False, path_type=Path)
    root = click.option("--root", required=True, type=folder, metavar="DIR", help="The folder that is watched.")
    out_path = click.Path(dir_okay=False, path_type=Path)
    out = click.option(
        "-o", "--out", required=True, type=out_path, metavar="FILE", help="The workload to write (.ops)."
    )
    return root(out(json_option(command)))


@click.command(context_settings={"allow_interspersed_args": False})
@_options
@click.option(
    "--keep", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Keep strace's output in FILE."
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def trace(root: Path, out: Path, json_file: str | None, keep: Path | None, program: Sequence[str]) -> int:
    """Run PROGRAM under strace and write what it does to a folder as a workload.

    The contents of the folder before the run become the set-up. PROGRAM runs on this machine, in the current directory,
    and really changes the folder. Whatever the workload cannot express is listed (docs/strace.md).

    \b
    Example:
      postcrash trace --root data -o insert.ops -- sqlite3 data/my.db "insert into t values (1)"
      postcrash check insert.ops --target ext4-current
    """
    run = _prepared(root, root)
    with scratch() as folder:
        output = keep or folder / "strace.out"
        try:
            code = run_under_strace(program, output, Path.cwd(), stdout=sys.stderr if json_file == "-" else None)
        except StraceMissing as error:
            raise InfrastructureError(f"{error}: apt-get install strace") from error
        imported = _imported(output, run, out, str(Path.cwd()))
    _finish(imported, root, out, json_file)
    if code:
        say(f"{program[0]} ended with exit code {code}")
    return ExitCode.HOLDS


@click.command("import-strace", epilog=f"Run strace like this: {' '.join(COMMAND)} -o TRACE PROGRAM")
@click.argument("file", metavar="TRACE", type=click.Path(dir_okay=False, path_type=Path))
@_options
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A copy of --root as it was before the program ran. Without this option, --root was empty.",
)
def import_strace_output(file: Path, root: Path, out: Path, json_file: str | None, before: Path | None) -> int:
    """Write the system calls in TRACE, made by strace, as a workload.

    Only calls that concern --root, the folder's path as the program saw it, are mapped. Whatever the workload cannot
    express is listed (docs/strace.md).

    \b
    Example:
      postcrash import-strace strace.out --root /srv/data --before copy-of-data -o my.ops
    """
    imported = _imported(file, _prepared(root, before), out, "")
    _finish(imported, root, out, json_file)
    return ExitCode.HOLDS


def _prepared(root: Path, before: Path | None) -> ImportState:
    try:
        return prepare(root, before)
    except OSError as error:
        raise UsageError(f"{error.filename or root}: {error.strerror}") from error


def _imported(file: Path, run: ImportState, out: Path, directory: str) -> ImportedTrace:
    if not file.is_file():
        raise UsageError(f"{file}: it is no file")
    try:
        return import_strace(file, run, out.stem, directory)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    except StraceError as error:
        raise UsageError(str(error)) from error


def _finish(imported: ImportedTrace, root: Path, out: Path, json_file: str | None) -> None:
    differs = _differs(imported)
    left_out = _shown(imported.not_mapped)
    about = [f"What a program did to {os.fspath(root)!r}, by its system calls.", *differs, *left_out]
    text = "".join(f"# {line}\n" for line in about) + imported.to_text()
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InfrastructureError(f"cannot write {out}: {error.strerror}") from error
    write_json(json_file, _to_json(imported, differs))
    if json_file == "-":
        return
    console = Console(soft_wrap=True, highlight=False)
    workload = imported.workload
    console.print(f"[bold]{out}[/]: {len(workload.setup)} operations of set-up, {len(workload.ops)} recorded")
    for line in [*differs, *left_out]:
        console.print(line, markup=False)


def _differs(imported: ImportedTrace) -> list[str]:
    """How the workload differs from any program, one sentence each."""
    sentences = [
        "differs: bytes are the guest's own, so that each one found names its write",
        "differs: each operation opens the file anew and closes it; ext4, for one, writes a truncated file back at the "
        "close that follows",
        "differs: permissions, owners and times are the guest's own",
    ]
    if imported.overlaps:
        sentences.append(
            f"differs: {imported.overlaps} operations took place while other threads ran; the guest runs one after the "
            "other, in the order in which they returned"
        )
    return sentences


def _shown(not_mapped: Sequence[NotMapped]) -> list[str]:
    more = len(not_mapped) - SHOWN_MAX
    rest = [f"not mapped: {more} more, which --json lists"] if more > 0 else []
    return [f"not mapped: {item}" for item in not_mapped[:SHOWN_MAX]] + rest


def _to_json(imported: ImportedTrace, differs: list[str]) -> Json:
    """`written` is the number of a write's bytes in the trace. Null if the trace lacks some, or nothing was written."""
    pairs = zip(imported.workload.ops, imported.sources, strict=True)
    return {
        "setup": [str(operation) for operation in imported.workload.setup],
        "ops": [
            {
                "operation": str(operation),
                "line": source.line,
                "call": source.call,
                "written": None if source.payload is None else len(source.payload),
            }
            for operation, source in pairs
        ],
        "not_mapped": [{"line": item.line, "call": item.call, "reason": item.reason} for item in imported.not_mapped],
        "overlaps": imported.overlaps,
        "differs": differs,
    }
