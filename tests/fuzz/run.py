"""Fuzzes the readers of what comes from elsewhere (docs/fuzzing.md). `make fuzz` runs it.

The exit code is 1 if a reader breaks its promise. The input is then kept in the folder .fuzz.
"""

import hashlib
import importlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import click

from .plain import run_plain
from .planted import PLANTED
from .target import FuzzTarget
from .trial import FAULT_CODE, FAULT_FILE, Trial, input_of, objection

KEPT = Path(".fuzz")
_MEMORY_FOLDER = Path("/dev/shm")


@dataclass(frozen=True)
class Run:
    """How one target went: how many inputs it got, in how much time, and the fault and its input if there is one."""

    target: FuzzTarget
    inputs: int
    seconds: float
    told: str = ""
    fault: str | None = None
    content: bytes = b""

    def __str__(self) -> str:
        rate = self.inputs / max(self.seconds, 0.001)
        told = f"{self.inputs:>9,} inputs in {self.seconds:6.1f} s, {rate:>7,.0f} a second"
        return f"{self.target.name:<16} {told}{self.told}"


def fuzz(target: FuzzTarget, *, inputs: int | None = None, seconds: int = 0, seed: int = 1) -> Run:
    """Fuzz one target: with guidance for so many seconds, or without for so many `inputs`."""
    with tempfile.TemporaryDirectory(prefix="postcrash-", dir=_memory_folder()) as name:
        folder = Path(name)
        begun = time.monotonic()
        if inputs is None:
            guided = _guided()
            status = guided.run_guided(target, folder, seconds, seed)
            tried, told = guided.statistics(folder)
        else:
            status, tried, told = run_plain(target, folder, inputs, seed), inputs, ""
        fault = _fault(target, status, folder)
        content = input_of(target, folder).read_bytes() if fault and input_of(target, folder).exists() else b""
        return Run(target, tried, time.monotonic() - begun, told, fault, content)


def _guided() -> ModuleType:
    """The module with guidance, which needs atheris. There is no atheris for the newest Python."""
    try:
        return importlib.import_module(".guided", __package__)
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error}: there is no fuzzing with guidance, only --inputs") from error


def _memory_folder() -> Path | None:
    """In memory if possible, because each input is written to a file."""
    return _MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None


def _fault(target: FuzzTarget, status: int, folder: Path) -> str | None:
    """What the target's process with this status, as of `os.waitpid`, ended with. None if all was well."""
    if status == 0:
        return None
    if os.waitstatus_to_exitcode(status) == FAULT_CODE:
        return (folder / FAULT_FILE).read_text(encoding="utf-8")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        return f"it takes more than {target.cpu_seconds:g} s of a CPU"
    last = (folder / "errors").read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
    return f"the process ended with {os.waitstatus_to_exitcode(status)}: " + " | ".join(last)


def _replayed(target: FuzzTarget, file: Path) -> Run:
    with tempfile.TemporaryDirectory(prefix="postcrash-") as name:
        Trial(target, Path(name))
        place = input_of(target, Path(name))
        place.write_bytes(file.read_bytes())
        return Run(target, 1, 0, fault=objection(target, place))


def _keep(run: Run) -> Path:
    KEPT.mkdir(exist_ok=True)
    place = KEPT / f"{run.target.name}-{hashlib.sha256(run.content).hexdigest()[:16]}"
    place.write_bytes(run.content)
    return place


@click.command()
@click.option("--target", "names", multiple=True, metavar="NAME", help="Only these readers; without it, all of them.")
@click.option("--seconds", default=600, show_default=True, help="How long each reader is fuzzed with guidance.")
@click.option("--inputs", type=int, help="Instead: how many inputs each reader gets, without guidance.")
@click.option("--seed", default=1, show_default=True, help="Of the random changes.")
@click.option("--replay", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Instead: this one input.")
def main(names: Sequence[str], seconds: int, inputs: int | None, seed: int, replay: Path | None) -> None:
    """Give readers of files and messages damaged inputs, and look for answers that they must not give.

    \b
    Example:
      make fuzz ARGS="--target recording --seconds 60"
    """
    with nullcontext() if inputs or replay else _guided().instrumented():
        table = importlib.import_module(".table", __package__)
    known = {**table.TARGETS, **PLANTED}
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no reader {name!r} (known: {', '.join(table.TARGETS)})")
    failed = False
    for target in [known[name] for name in names] or table.TARGETS.values():
        run = _replayed(target, replay) if replay else fuzz(target, inputs=inputs, seconds=seconds, seed=seed)
        click.echo(str(run))
        if run.fault is not None:
            kept = replay or _keep(run)
            click.echo(f"  {run.fault}\n  input: {kept} (--target {target.name} --replay {kept})")
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
