"""The command line: `postcrash COMMAND`."""

import io
import os
import signal
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

import postcrash
from postcrash.harness.errors import HarnessError, UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import QUIET, kept_evidence, say
from postcrash.harness.files.places import STORE_DEFAULT
from postcrash.harness.findings.last_finding import forget_last
from postcrash.model import ExitCode
from postcrash.model.numbers import allow_large_numbers
from postcrash.model.text import visible
from postcrash.model.validation import unknown_name
from postcrash.reports.explanation import explanation
from postcrash.store.store import DISK_FULL, NotInStoreError, StoreError, os_error_text

_SECTIONS = {
    "Is everything here": {"doctor": "doctor:doctor", "kernels": "kernels:kernels"},
    "Judge a file system": {
        **{name: f"judging.{name}:{name}" for name in ("check", "hunt", "characterize", "corpus")},
    },
    "Judge a program": {
        "audit": "programs.audit:audit_command",
        "needs": "programs.needs:needs_command",
        "synchrony": "programs.synchrony:synchrony",
    },
    "Gate a change": {
        **{name: f"gating.{name}:{name}" for name in ("init", "gate", "merge")},
        **{"diff": "gating.merge:diff", "bisect-run": "gating.bisect_run:bisect_run"},
    },
    "Take a finding": {
        **{name: f"findings.{name}:{name}" for name in ("explain", "repro", "minimize", "report", "bundle", "certify")},
    },
    "Work with other tools": {
        **{"trace": "recordings.trace:trace", "import-strace": "recordings.trace:import_strace_output"},
        **{"import": "recordings.import_log:import_log", "export": "recordings.export_log:export_log"},
        "import-xfstests": "recordings.import_xfstests:import_xfstests",
    },
}
"""The commands as `--help` arranges them: the module of harness/cli/, and the name in it."""
SENTENCE_MAX = 10_000
"""The most characters of a command's first sentence, and of a line of a manual page: none is cut."""
_SEEKING = {"gate", "merge"} | {
    name for title, commands in _SECTIONS.items() if title.startswith("Judge") for name in commands
}
"""The commands that look for findings: if one fails, `last` must not stand for what an earlier one found."""
_COMMANDS = {name: place for commands in _SECTIONS.values() for name, place in commands.items()}


class _Commands(click.Group):
    """Commands whose modules are imported when they are asked for, because all of them take half a second.

    After an error, the guest's console goes into a file of the store, because it is long.
    """

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].partition(":")
        command = getattr(import_module(f"postcrash.harness.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-") and not context.resilient_parsing:
            context.fail(unknown_name("command", name, _COMMANDS))
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in _SECTIONS.items():
            commands = [(name, self.get_command(context, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl(
                    [(name, command.get_short_help_str(SENTENCE_MAX)) for name, command in commands if command]
                )

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (click.ClickException, click.exceptions.Exit):  # a wrong command line, or --help: nothing was looked for
            raise
        except Exception as error:
            if context.invoked_subcommand in _SEEKING:
                with suppress(HarnessError):
                    forget_last(context.params["store"])
            if isinstance(error, HarnessError) and error.evidence.strip():
                error.add_note(kept_evidence(context.params["store"], error))
            raise


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(postcrash.__version__, prog_name="postcrash")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=STORE_DEFAULT,
    show_default=True,
    help="Folder with results; made if it is not there.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print results and errors only: no progress, no notes.")
@click.pass_context
def cli(context: click.Context, store: Path, quiet: bool) -> None:
    """After a power cut, what can be on this disk?

    postcrash runs workloads on real file systems in a guest, records every block write, works out every disk content
    that a power cut could leave, has the real kernel recover each, and judges what it finds.

    \b
    Start with:
      postcrash doctor                                      is everything here?
      postcrash check examples/rename-replace.ops --target ext4-original
      postcrash characterize                                the table of HotDep'13, on this kernel

    Exit codes: 0 holds, 1 violated, 2 interrupted, 3 infrastructure, 4 usage,
    5 nothing selected, 6 undecided.
    """
    context.obj = Session(store, explainer=explanation)
    context.meta[QUIET] = quiet


def main() -> NoReturn:
    """Run the command line. Every expected failure prints a line for each thing that is wrong, and has an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    allow_large_numbers()  # counts of crash states are exact
    try:
        code = _run()
    except OSError:  # standard error cannot be written, so that nobody can be told why
        _silence(2)
        code = ExitCode.INFRASTRUCTURE
    sys.exit(code)


def _run() -> int:
    """Run the command. A failure of our own must not exit with a verdict: Python's 1 would say VIOLATED."""
    try:
        code = int(cli.main(standalone_mode=False) or ExitCode.HOLDS)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except SystemExit as end:  # click raises this when a command line was completed, and for a pipe that is closed
        return ExitCode.HOLDS if end.code == 0 else _unwritten("the pipe is closed")
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.ClickException as error:
        _show(error)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        say("interrupted; what was finished is kept, and the same command goes on from there")
        return ExitCode.INTERRUPTED
    except HarnessError as error:
        say("; ".join([str(error), *getattr(error, "__notes__", ())]))
        for other in error.others if isinstance(error, UsageError) else ():
            say(other)
        return error.exit_code
    except StoreError as error:
        say(str(error))
        return ExitCode.USAGE if isinstance(error, NotInStoreError) else ExitCode.INFRASTRUCTURE
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None:  # no file, so it is about standard output
            return _unwritten(error.strerror or str(error))
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            say(f"{error.filename}: {os_error_text(error)}")
            return ExitCode.INFRASTRUCTURE
        click.echo(visible(traceback.format_exc()), err=True, nl=False)
        say(f"a defect of postcrash itself: {error!r}")
        return ExitCode.INFRASTRUCTURE


def _show(error: click.ClickException) -> None:
    """Print what click has to say of the command line, whose words it may repeat. Click itself drops their colours."""
    message = io.StringIO()
    error.show(message)
    click.echo(visible(message.getvalue()), err=True, nl=False)


def _unwritten(reason: str) -> ExitCode:
    """Say that results could not be written."""
    _silence(1)
    say(f"not all results could be written: {reason}")
    return ExitCode.INFRASTRUCTURE


def _silence(stream: int) -> None:
    """Drop what is buffered for a standard stream, so that Python does not try to write it when it ends."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
