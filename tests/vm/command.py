"""The command line as tests run it.

A new interpreter imports modules for most of a second. So one process has imported every command, and `postcrash` runs
in a fork of it. `COMMAND` starts a new interpreter, for tests that look at the process itself.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO

import click

from postcrash.harness.cli.main import cli, main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/rename-replace.ops"
COMMAND = [sys.executable, "-c", "from postcrash.harness.cli.main import main; main()"]
TIMEOUT_S = 550
Ended = subprocess.CompletedProcess[str]


class CommandServer:
    """A process that has every command imported, and runs one at a time in a fork of itself."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, words: tuple[str, ...], environment: dict[str, str]) -> Ended:
        """Run `postcrash WORDS` in the folder. Raises TimeoutError when it does not end."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
            asked = {"folder": str(folder.resolve()), "words": words, "environment": environment, "files": files}
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            code = json.loads(self._process.stdout.readline())
            if code is None:
                raise TimeoutError(f"postcrash {' '.join(words)} does not end in {TIMEOUT_S} s: {_text(err)}")
            return Ended(["postcrash", *words], code, _text(out), _text(err))


@cache
def _server() -> CommandServer:
    return CommandServer()


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def postcrash(folder: Path, *arguments: str, **environment: str) -> Ended:
    """Run the command line in `folder`, with lines of 120 columns.

    With variables of its own, it runs in a new interpreter, because some modules read them when they are imported.
    """
    variables = {**os.environ, "COLUMNS": "120", **environment}
    if not environment:
        return _server().run(folder, arguments, variables)
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def one_line(result: Ended, code: int) -> str:
    """The single line that a failed run must end with."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def leftovers(folder: Path) -> list[Path]:
    """Half-written files in a store."""
    return [path for path in folder.rglob("*") if path.name.startswith(".") and path.name != ".postcrash"]


def serve() -> None:
    """Fork for each line of standard input, run the command there, and print its exit code, or null if it hung."""
    with click.Context(cli) as context:
        for name in cli.list_commands(context):
            cli.get_command(context, name)
    # Forks collect no garbage among what is imported, which they would copy by looking at it.
    gc.freeze()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(**json.loads(line))
            main()
        print(json.dumps(_wait(child)), flush=True)


def _become(folder: str, words: list[str], environment: dict[str, str], files: list[str]) -> None:
    """Make this process one that a shell would have started."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, file in enumerate([os.devnull, *files]):
        opened = os.open(file, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.argv[:] = ["-c", *words]


def _wait(child: int) -> int | None:
    """The exit code of the child; None if it had to be killed because it did not end."""
    ended = signal.sigtimedwait([signal.SIGCHLD], TIMEOUT_S)
    if ended is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return None if ended is None else os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve()
