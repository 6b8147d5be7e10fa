"""What decides the content of a base image: the command that makes it, and the files and the environment that it reads.

All of this is known of the programs in `_READS`, where Debian installs them. They get only those variables of the
user's environment that are listed here. Any other program may read anything: a script, a program of the user's own, or
one that copies a folder into the file system. Then nobody can tell from outside whether it would make the same image
again.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from postcrash.model.pattern import stale
from postcrash.model.units import BLOCK_BYTES
from postcrash.targets.programs import Ask, always_find_out, content_digest_by, found_program, libraries_of
from postcrash.targets.target import Target

_MKE2FS = ("/etc/mke2fs.conf", "/sys/fs/ext4/features/lazy_itable_init")
_READS: Mapping[str, tuple[str, ...]] = {
    "debugfs": (),
    "mke2fs": _MKE2FS,
    "mkfs.ext2": _MKE2FS,
    "mkfs.ext3": _MKE2FS,
    "mkfs.ext4": _MKE2FS,
    "mkfs.btrfs": (),
    "mkfs.exfat": (),
    "mkfs.f2fs": (),
    "mkfs.fat": (),
    "mkfs.jfs": (),
    "mkfs.minix": (),
    "mkfs.nilfs2": (),
    "mkfs.xfs": (),
    "mkntfs": (),
    "mkreiserfs": (),
}
"""Programs by name, with the files that each reads besides those that its arguments name (mke2fs(8), mkfs.xfs(8) …)."""
_REQUESTS = {"set_inode_field", "set_super_value"}
"""Requests of debugfs(8) that read no file of this machine."""
_SYSTEM_FOLDERS = tuple(map(Path, ("/usr/sbin", "/usr/bin", "/sbin", "/bin")))
_NAMED_FROM = (Path(), Path("/usr/share/xfsprogs/mkfs"))
"""Where a file that an argument names can be: mkfs.xfs(8) looks for its options in the second folder, too."""
_VARIABLE = re.compile(r"MKE2FS_\w+|E2FSPROGS_\w+|(LIB)?BLKID_\w+|SOURCE_DATE_EPOCH|DETERMINISTIC_SEED|LD_LIBRARY_PATH")
"""Variables that change what a known program does."""
_ALWAYS = {"E2FSPROGS_FAKE_TIME": "1400000000", "LC_ALL": "C"}
_ELF = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an image is made. Each of `commands` lacks the image's path, which comes last.

    `digest` is SHA-256 of everything that decides the content of the image, but for random numbers and the clock. It is
    None if nobody knows what this is.
    """

    commands: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]
    digest: str | None


class NoProgramError(RuntimeError):
    """A target's mkfs is not installed. The message says how to install it."""


def recipe_of(target: Target, ask: Ask = always_find_out) -> Recipe:
    """How the target's image is made on this machine. Raises NoProgramError, and OSError if a file cannot be read."""
    commands = tuple(_found(command, target) for command in (target.mkfs, target.after_mkfs) if command)
    reads = [None if _reads_more(command) else _reads(command[0]) for command in commands]
    if None in reads:
        return Recipe(commands, {**os.environ, **_ALWAYS}, None)
    environment = {name: value for name, value in sorted(os.environ.items()) if _VARIABLE.fullmatch(name)} | _ALWAYS
    texts = (*(text for command in commands for text in command[1:]), *environment.values())
    named = {path for text in texts for path in _paths_in(text) if os.path.exists(path)}
    if not all(map(Path.is_file, named)):
        return Recipe(commands, environment, None)
    programs = [Path(file) for program, *_ in commands for file in (program, *libraries_of(program, ask))]
    files = [*programs, *(file for each in reads for file in each or () if file.is_file()), *sorted(named)]
    content = [(str(file), content_digest_by(file.absolute(), ask)) for file in files]
    garbage = hashlib.sha256(stale(1, BLOCK_BYTES)).hexdigest()
    decides = (commands, sorted(environment.items()), content, target.disks_mib, target.garbage_mib, garbage)
    return Recipe(commands, environment, hashlib.sha256(json.dumps(decides).encode(errors="replace")).hexdigest())


def _found(command: tuple[str, ...], target: Target) -> tuple[str, ...]:
    """The command with the program's path. Raises NoProgramError."""
    program = found_program(command[0])
    if program is None:
        raise NoProgramError(target.without(command[0]))
    return (program, *command[1:])


def _reads_more(command: tuple[str, ...]) -> bool:
    """Whether the command may read files that none of its arguments names."""
    program, options = Path(command[0]).name, command[1:]
    if program == "debugfs":  # it runs requests, such as `write FILE NAME`
        requests = [text for option, text in pairwise(options) if option == "-R"]
        is_known = all(request.split(" ", 1)[0] in _REQUESTS for request in requests)
        return not is_known or not set(options) - {*requests} <= {"-w", "-R"}
    return program == "mkfs.xfs" and any(each.startswith("-p") for each in options)  # a prototype names files


def _reads(program: str) -> tuple[Path, ...] | None:
    """The files that the program reads of itself. None if nobody knows."""
    file = Path(program).resolve()
    names = {Path(program).name, file.name} & _READS.keys()
    if not names or file.parent not in _SYSTEM_FOLDERS:
        return None
    with file.open("rb") as opened:
        is_script = opened.read(len(_ELF)) != _ELF
    return None if is_script else tuple(Path(each) for name in sorted(names) for each in _READS[name])


def _paths_in(text: str) -> Iterator[Path]:
    """Where files can be that an argument or a variable names: `FILE`, `-dFILE`, `--option=FILE`, `a=FILE,b=FILE`."""
    words = {text, *re.split(r"[=,:\s]", text), text.partition("=")[2]}
    words |= {text[start:] for start in range(2, len(text))} if text.startswith("-") else set()
    words |= {part.partition("=")[2] for part in text.split(",")}
    for word in words - {""}:
        yield from (folder / word for folder in _NAMED_FROM)
