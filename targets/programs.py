"""Programs of this machine that targets need: where they are, and the libraries that they load."""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

Ask = Callable[[str, tuple[Path, ...], Callable[[], str]], str]
"""Answers a question about files. The last argument finds the answer out, unless it is known of the files as they are.

Raises OSError if one of the files is not there.
"""
_LIBRARY = re.compile(r"(?<!\S)(/\S+) (?:\(0x|=> )")
"""Files that ldd names by path: libraries and the program's loader. ldd may show the system's loader instead."""
_LOADER_FILES = (Path("/etc/ld.so.cache"), Path("/etc/ld.so.preload"))
"""What the loader reads to find libraries. The first changes whenever a library is installed (ldconfig(8))."""


def always_find_out(question: str, files: tuple[Path, ...], find_out: Callable[[], str]) -> str:
    """Knows no answer. See `Ask`."""
    return find_out()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest_by(path: Path, ask: Ask) -> str:
    """SHA-256 of a file's content. Raises OSError."""
    return ask("sha256", (path,), lambda: file_digest(path))


def program_path() -> str:
    """Where programs are looked for: as the user says, and where those for administrators are."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def found_program(name: str) -> str | None:
    """The path of the program that is called `name`, or is at this path. None if there is none."""
    return shutil.which(name, path=program_path())


def placed(command: Sequence[str], folder: Path) -> tuple[str, ...]:
    """The command with absolute paths where it has paths from `folder`: the program, and words that begin with a dot.

    A program without a slash is one of this machine, and stays as it is.
    """
    return tuple(
        os.path.normpath(folder.absolute() / word)
        if word.startswith(("./", "../")) or (number == 0 and "/" in word)
        else word
        for number, word in enumerate(command)
    )


def libraries_of(program: str, ask: Ask = always_find_out) -> list[str]:
    """The files that ldd names for `program`.

    It is asked again if the program, what the loader reads or a folder of libraries changes, or a library is gone.
    Raises OSError if it cannot be run.
    """
    path = os.environ.get("LD_LIBRARY_PATH", "")
    folders = (Path(folder or ".") for folder in re.split("[:;]", path)) if path else ()
    files = (Path(program), *filter(Path.exists, (*_LOADER_FILES, *folders)))
    found = ask(f"ldd {path}", files, lambda: "\n".join(_ldd(program))).splitlines()
    return found if all(map(os.path.exists, found)) else _ldd(program)


def _ldd(program: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    result = subprocess.run(["ldd", program], env=environment, capture_output=True, text=True, check=False)
    return _LIBRARY.findall(result.stdout)
