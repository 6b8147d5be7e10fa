"""The files of this machine that a command needs in a guest, where nothing else of this machine is seen.

- A binary needs its libraries, as ldd names them, and glibc's unwinder.
- A script needs the program that its first line names.
- Python needs the modules with which it starts and those of its script (`python_modules.py`).
- An argument that is the absolute path of a file needs that file.

Whatever else programs open, a target has to name (`Target.files`). Guests have files where this machine has them.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.files.known_files import known_files
from postcrash.targets import Target, found_program, libraries_of

Content = bytes | Path
"""What a file in a root folder holds: these bytes, or what a file of this machine holds, uncompressed."""
FILES_MAX = 4000
BYTES_MAX = 128 << 20
"""What a target can bring. Guests of QEMU have it in memory."""
_C_LIBRARY, _UNWINDER = "libc.so.6", "libgcc_s.so.1"
"""glibc loads the second when a thread is cancelled, and ends the program if it is not there. ldd does not name it."""
_SCRIPT, _ELF = b"#!", b"\x7fELF"
_START_BYTES = 256
"""BINPRM_BUF_SIZE of Linux, include/uapi/linux/binfmts.h."""
_PYTHON = re.compile(r"python[0-9.]*")
_PYTHON_MODULES = Path(__file__).with_name("python_modules.py")
_PYTHON_TIMEOUT_S = 120


def target_files(target: Target) -> dict[Path, Content]:
    """What guests need for the target's commands and its `files`, by the places in a root folder.

    A program that this machine does not have is left out. Raises UsageError if a script needs something that is not
    there, or if all this is too much, and InfrastructureError.
    """
    found: dict[Path, Content] = {}
    for command in target.commands:
        if os.path.isabs(command[0]) and os.path.isfile(command[0]):
            found |= _command_files(command)
    for named in target.files:
        for file in _below(Path(named), target):
            found |= _file(file)
    _check_size(found, target)
    return found


def with_libraries(program: str) -> dict[Path, Content]:
    """A program of this machine (an absolute path) and its libraries, by their places in a root folder."""
    libraries = _libraries(program)
    unwinders = [Path(file).with_name(_UNWINDER) for file in libraries if Path(file).name == _C_LIBRARY]
    files = [Path(program), *map(Path, libraries), *filter(Path.exists, unwinders)]
    return {_place(file): file for file in files}


def _command_files(command: Sequence[str]) -> dict[Path, Content]:
    """What a command needs: its program, what runs it if it is a script, and the files among its arguments."""
    program, *arguments = command
    named = [Path(word) for word in arguments if os.path.isabs(word) and os.path.isfile(word)]
    line = _first_line(Path(program))
    if line is None:
        return _run_by(program, named[:1]) | _files(named)
    interpreter, script = _interpreter(Path(program), line)
    if _first_line(Path(interpreter)) is not None:
        raise UsageError(f"{program}: {interpreter}, which runs it, is a script too: name a binary in its first line")
    return _run_by(interpreter, [Path(program)]) | _files(named) | {_place(Path(program)): script}


def _run_by(program: str, files: Sequence[Path]) -> dict[Path, Content]:
    """What a binary needs to run. If it is Python, the first of `files` is the script that it runs."""
    is_python = _PYTHON.fullmatch(Path(program).name) is not None
    return with_libraries(program) | (_files(_python_modules(program, *files)) if is_python else {})


def _files(files: Iterable[Path]) -> dict[Path, Content]:
    found: dict[Path, Content] = {}
    for file in files:
        found |= _file(file)
    return found


def _file(file: Path) -> dict[Path, Content]:
    """A file, with its libraries if it is a binary."""
    return with_libraries(str(file)) if _start(file).startswith(_ELF) else {_place(file): file}


def _interpreter(script: Path, line: str) -> tuple[str, Content]:
    """The program that runs a script with this first line, and the script as a guest gets it.

    Guests have no PATH of the user's: a program that `env` would look for is named by its path. Raises UsageError.
    """
    content: Content
    program, *arguments = line.split(maxsplit=1) or [""]
    if Path(program).name != "env":
        found, content = program if os.path.isfile(program) else None, script
    else:
        program = arguments[0].strip() if arguments else ""
        found = found_program(program)
        rest = script.read_bytes().partition(b"\n")[2]
        content = b"#!%b\n%b" % (os.fsencode(found or ""), rest)
    if found is None:
        raise UsageError(f"{script}: the program that its first line names is not there: {program[:200]!r}")
    return found, content


def _first_line(file: Path) -> str | None:
    """What stands behind `#!` in the first line of a script. None if the file is no script."""
    start = _start(file)
    is_script = start.startswith(_SCRIPT)
    return os.fsdecode(start.removeprefix(_SCRIPT).partition(b"\n")[0]).strip() if is_script else None


def _start(file: Path) -> bytes:
    """So much of a file as the kernel looks at before it runs it."""
    try:
        with file.open("rb") as opened:
            return opened.read(_START_BYTES)
    except OSError as error:
        raise InfrastructureError(f"{file}: {error.strerror}") from error


@lru_cache(maxsize=16)
def _python_modules(python: str, *script: Path) -> tuple[Path, ...]:
    """The files of the modules that Python needs for a script. Raises UsageError if the script cannot be read."""
    command = [python, "-s", "-B", str(_PYTHON_MODULES), *map(str, script)]
    try:
        ran = subprocess.run(command, env={}, capture_output=True, text=True, check=True, timeout=_PYTHON_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{python} does not find the modules of a script: {error}") from error
    except subprocess.CalledProcessError as error:
        errors = "; ".join(error.stderr.strip().splitlines()[-1:])
        raise UsageError(f"{python} does not find the modules of {' '.join(map(str, script))}: {errors}") from error
    return tuple(map(Path, json.loads(ran.stdout)))


def _below(file: Path, target: Target) -> Iterator[Path]:
    """The file, or the files in the folder of that name."""
    if not file.exists():
        raise UsageError(f"target {target.name}: files: there is no {file}")
    files = (each for each in file.rglob("*") if each.is_file()) if file.is_dir() else (file,)
    yield from islice(files, FILES_MAX + 1)


def _check_size(files: dict[Path, Content], target: Target) -> None:
    size = sum(each.stat().st_size if isinstance(each, Path) else len(each) for each in files.values())
    if len(files) > FILES_MAX or size > BYTES_MAX:
        limit = f"{FILES_MAX} files with {BYTES_MAX >> 20} MiB are the most"
        raise UsageError(f"target {target.name} brings {len(files)} files with {size >> 20} MiB into guests: {limit}")


def _place(file: Path) -> Path:
    return file.relative_to("/")


def _libraries(program: str) -> list[str]:
    try:
        return libraries_of(program, known_files().ask)
    except OSError as error:
        raise InfrastructureError(f"the libraries of {program}: {error.strerror}") from error
