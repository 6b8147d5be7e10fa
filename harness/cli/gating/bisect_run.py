"""`postcrash bisect-run`, the program for `git bisect run`."""

import subprocess
import sys
from collections.abc import Sequence

import click

from postcrash.harness.errors import HarnessError, InfrastructureError, UsageError
from postcrash.harness.files.output import say
from postcrash.model import ExitCode

GOOD, BAD, SKIP, STOP = 0, 1, 125, 128
"""Exit codes for `git bisect run` (git-bisect(1)): any code above 127 ends the bisection."""
_ANSWERS = {
    ExitCode.HOLDS: GOOD,
    ExitCode.VIOLATED: BAD,
    ExitCode.UNDECIDED: SKIP,
    ExitCode.INFRASTRUCTURE: SKIP,
}
"""A command that is interrupted, or that cannot be right on any commit, ends the bisection."""


@click.command("bisect-run", context_settings={"ignore_unknown_options": True})
@click.option("--build", metavar="COMMAND", help="What builds the kernel of a commit: a shell command.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def bisect_run(context: click.Context, build: str | None, command: Sequence[str]) -> int:
    """Build, run a postcrash COMMAND, and exit as `git bisect run` wants it.

    Exit codes: 0 the commit is good (the command holds), 1 it is bad (violated), 125 nobody knows: it does not build or
    boot, or the verdict is undecided; 128 the command itself is wrong, or was interrupted, which ends the bisection.

    \b
    Examples:
      git bisect start v6.2 v6.1
      git bisect run postcrash bisect-run --build 'make ARCH=um -j4 linux' -- \\
          check bug.ops --target ext4-current --kernel ./linux
      git bisect run postcrash bisect-run --build 'make ARCH=um -j4 linux' -- gate --part small
    """
    try:
        return _answer(build, command, str(context.find_root().params["store"]))
    except (HarnessError, OSError) as error:
        say(str(error))
    except KeyboardInterrupt:
        say("interrupted")
    return STOP  # any other code would say something of the commit


def _answer(build: str | None, command: Sequence[str], store: str) -> int:
    if not command:
        raise UsageError("which command? For example: postcrash bisect-run --build make -- gate")
    if build is not None and (status := subprocess.run(build, shell=True, stdin=subprocess.DEVNULL).returncode):
        say(f"{build!r} ends with status {status}: this commit is skipped")
        return SKIP
    program = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    try:
        status = subprocess.run([*program, "--store", store, *command], stdin=subprocess.DEVNULL).returncode
    except OSError as error:
        raise InfrastructureError(f"{program[0]}: {error.strerror}") from error
    return _ANSWERS.get(ExitCode(status), STOP) if status in list(ExitCode) else STOP
