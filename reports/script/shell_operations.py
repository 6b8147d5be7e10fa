"""Translates operations of a workload to shell commands: xfs_io, coreutils, setfattr, and perl for the rest.

Commands run in the root directory of the file system. Each operation that writes has a byte of its own.
"""

import re
import shlex
from collections.abc import Callable

from postcrash.model import Operation, Tree
from postcrash.model.operation import HANDLE
from postcrash.model.segments import ZERO, write_of
from postcrash.model.simulate import DEVICES
from postcrash.model.tree import parent

OTHER_FILE = ".other"
"""A file besides the workload's. An fsync of it commits the journal. The agent of a recording has such a file too."""
STALE_BYTE = 0xFF
"""The byte that fills the disk before mkfs."""
PAGE_BYTES = 4096
"""msync(2) may start at multiples of this."""
_FIRST_BYTE = 0x61
_TAGS_MAX = STALE_BYTE - 1
_FALLOCATE = {
    "none": "falloc",
    "keep-size": "falloc -k",
    "zero-range": "fzero",
    "zero-range-keep-size": "fzero -k",
    "punch-hole": "fpunch",
    "collapse-range": "fcollapse",
    "insert-range": "finsert",
}
_PLAIN = re.compile(r"[A-Za-z1-9][A-Za-z0-9_.]*")
_HARMLESS = re.compile(r"[A-Za-z0-9_./]+")
"""A path that means the same within double quotes of the shell, and is no option."""
_EXCHANGE = "perl -e 'exit(syscall(316, -100, $ARGV[0], -100, $ARGV[1], 2) != 0)'"
"""renameat2 with RENAME_EXCHANGE, by its number on x86-64, because mv --exchange came only with coreutils 9.5."""

_SOCKET = "perl -e 'exit(syscall(133, $ARGV[0], 0140644, 0) != 0)'"
"""mknod by its number on x86-64, because mknod(1) makes no sockets."""
_UNNAMED = (
    """perl -e '$| = 1; sysopen F, shift, 0x410002, 0644 or die $!; print "/proc/$$/fd/", fileno F, "\\n"; <STDIN>'"""
)
"""Opens a file with O_RDWR and O_TMPFILE of x86-64, prints its path, and holds it open."""


def _calls(*requests: int) -> str:
    """A command that makes these ioctl calls on the other file. They pass on eight bytes, each to the next."""
    calls = " && ".join(f"ioctl(F, {request:#x}, $t)" for request in requests)
    return f'perl -e \'open F, "+<", "{OTHER_FILE}"; my $t = pack "Q", 0; {calls} or die $!\''


_BTRFS_COMMIT = _calls(0x80089418, 0x40089416)
"""BTRFS_IOC_START_SYNC, BTRFS_IOC_WAIT_SYNC."""
_CHECKPOINTS = {
    "btrfs": _BTRFS_COMMIT,
    **dict.fromkeys(("ext2", "ext3", "ext4"), _calls(0x4004662B)),
    "f2fs": _calls(0xF507),
    "nilfs2": _calls(0x80086E8A),
}
"""EXT4_IOC_CHECKPOINT, F2FS_IOC_WRITE_CHECKPOINT, NILFS_IOCTL_SYNC. Other file systems have no call of their own."""
_FREEZE_OR_SYNC = ("xfs_io -x -c freeze -c thaw .", "sync -f .")


class NoCommandError(ValueError):
    """A workload or a finding cannot be expressed as a script. The text gives the reason."""


def byte_of(source: str) -> int:
    """Returns the byte in a script's files for bytes of `source` (model/segments.py).

    Raises NoCommandError if this byte is not known.
    """
    write = write_of(source)
    if write is not None and write[0] < _TAGS_MAX:
        return 1 + (_FIRST_BYTE - 1 + write[0]) % _TAGS_MAX
    if write is not None:
        raise NoCommandError(f"only {_TAGS_MAX} operations can write bytes that can be told apart")
    if source not in (ZERO, "stale"):
        raise NoCommandError(f"bytes are {source}: a script cannot say what they are")
    return STALE_BYTE if source == "stale" else 0


def quoted(path: str) -> str:
    """Quotes a path for the shell, so that it is never an option. A handle is the path of the open descriptor."""
    if path.startswith(HANDLE):
        return f"/proc/self/fd/${_variable(path.removeprefix(HANDLE))}"
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _variable(path: str) -> str:
    """Returns the variable with the descriptor of the file opened as `path`."""
    return "held_" + re.sub(r"[^A-Za-z0-9]", lambda other: f"_{ord(other[0]):x}_", path)


def commands(operation: Operation, before: Tree, fstype: str) -> list[str]:
    """Returns shell commands, one a line, that do `operation` on the tree `before`. Raises NoCommandError."""
    return _COMMANDS[operation.word](operation, before, fstype)


def _xfs_io(operation: Operation, *words: str, options: str = "") -> list[str]:
    arguments = "".join(f' -c "{word}"' for word in words)
    return [f"xfs_io{options}{arguments} {quoted(operation.path)}"]


def _pwrite(operation: Operation, offset: int, options: str = "", flags: str = "") -> list[str]:
    byte = byte_of(f"write:{operation.tag}")
    written = f"pwrite -q{flags} -S {byte:#04x} -b {operation.length} {offset} {operation.length}"
    return _xfs_io(operation, written, options=options)


def _write(options: str = "", flags: str = "") -> "_Command":
    def command(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
        return _pwrite(operation, operation.offset or 0, options, flags)

    return command


def _append(operation: Operation, before: Tree, _fstype: str) -> list[str]:
    return _pwrite(operation, before[operation.path].size)


def _mmapwrite(operation: Operation, before: Tree, _fstype: str) -> list[str]:
    offset, length = operation.offset or 0, operation.length or 0
    end, size = offset + length, before[operation.path].size
    grow = [f"truncate {end}"] if size < end else []
    byte = byte_of(f"write:{operation.tag}")
    return _xfs_io(operation, *grow, f"mmap -rw 0 {end}", f"mwrite -S {byte:#04x} {offset} {length}")


def _msync(operation: Operation, before: Tree, _fstype: str) -> list[str]:
    size, offset = before[operation.path].size, operation.offset or 0
    start = offset - offset % PAGE_BYTES
    end = size if operation.length is None else min(size, offset + operation.length)
    return _xfs_io(operation, f"mmap -rw 0 {end}", f"msync -s {start} {end - start}") if start < end else [":"]


def _rename(operation: Operation, before: Tree, _fstype: str) -> list[str]:
    target = before.get(operation.to)
    if target is not None and target.inode == before[operation.path].inode:
        return [
            ":"
        ]  # rename(2): "If oldpath and newpath are existing hard links referring to the same file […] nothing"
    return [f"mv -fT {quoted(operation.path)} {quoted(operation.to)}"]


def _symlink(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
    return [f"ln -sT -- {shlex.quote(operation.to)} {quoted(operation.path)}"]


def _mknod(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
    if operation.mode == "socket":
        return [f"{_SOCKET} {quoted(operation.path)}"]
    numbers = DEVICES[operation.mode].replace(":", " ") if operation.mode in DEVICES else ""
    return [f"mknod -m 644 {quoted(operation.path)} {operation.mode[:1].replace('f', 'p')} {numbers}".rstrip()]


def _tmpfile(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
    """No redirection has O_TMPFILE, so perl opens the file, and the shell opens what perl has open."""
    folder = parent(operation.path)
    return [
        f"coproc {_UNNAMED} {quoted(folder)}",
        'read -r place <&"${COPROC[0]}"',
        f'exec {{{_variable(operation.path)}}}<>"$place"',
        "exec {COPROC[1]}>&-",
        "wait",
    ]


def _link(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
    followed = "L" if operation.is_held else ""
    return [f"ln -{followed}T {quoted(operation.path)} {quoted(operation.to)}"]


def _shared(word: str) -> "_Command":
    def command(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
        numbers = f"{operation.offset} {operation.to_offset} {operation.length}"
        return [f"xfs_io -c {_with_file(word, operation.path, numbers)} {quoted(operation.to)}"]

    return command


def _with_file(word: str, path: str, numbers: str) -> str:
    """A command of xfs_io about a second file, quoted for the shell. xfs_io itself splits it at blanks.

    Raises NoCommandError if the path has a blank, because xfs_io has no quotes.
    """
    if path.startswith(HANDLE):
        return f'"{word} {quoted(path)} {numbers}"'
    if re.search(r"\s", path):
        raise NoCommandError(f"xfs_io's {word} cannot be given {path!r}, because it has a blank")
    path = f"./{path}" if path.startswith("-") else path
    if _HARMLESS.fullmatch(path):
        return f'"{word} {path} {numbers}"'
    return shlex.quote(f"{word} {path} {numbers}")


def _setxattr(operation: Operation, _before: Tree, _fstype: str) -> list[str]:
    value = operation.value if _PLAIN.fullmatch(operation.value) else f"0x{operation.value.encode().hex()}"
    option = f" -v {value}" if operation.value else ""
    return [f"setfattr -n {shlex.quote(operation.name)}{option} {quoted(operation.path)}"]


def _commit(_operation: Operation, _before: Tree, fstype: str) -> list[str]:
    if fstype == "btrfs":
        return [_BTRFS_COMMIT]
    return [f"touch {OTHER_FILE}", f"xfs_io -c fsync {OTHER_FILE}"]


def _checkpoint(_operation: Operation, _before: Tree, fstype: str) -> list[str]:
    """Use the first of the agent's ways that works (harness/guests/agent/src/checkpoint.rs)."""
    own = [_CHECKPOINTS[fstype]] if fstype in _CHECKPOINTS else []
    return [" || ".join((*own, *_FREEZE_OR_SYNC))]


def _one(make: Callable[[Operation], str]) -> "_Command":
    """The command of an operation that depends only on its own arguments."""
    return lambda operation, _before, _fstype: [make(operation)]


_Command = Callable[[Operation, Tree, str], list[str]]
_COMMANDS: dict[str, _Command] = {
    "mkdir": _one(lambda op: f"mkdir {quoted(op.path)}"),
    "rmdir": _one(lambda op: f"rmdir {quoted(op.path)}"),
    "creat": _one(lambda op: f": >{quoted(op.path)}"),
    "mknod": _mknod,
    "tmpfile": _tmpfile,
    "open": _one(lambda op: f"exec {{{_variable(op.path)}}}<>{quoted(op.path)}"),
    "close": _one(lambda op: f"exec {{{_variable(op.path.removeprefix(HANDLE))}}}>&-"),
    "write": _write(""),
    "append": _append,
    "dwrite": _write(" -d"),
    "awrite": _write(" -d", " -V 1 -A"),
    "mmapwrite": _mmapwrite,
    "truncate": _one(lambda op: _xfs_io(op, f"truncate {op.length}")[0]),
    "fallocate": _one(lambda op: _xfs_io(op, f"{_FALLOCATE[op.mode]} {op.offset} {op.length}")[0]),
    "reflink": _shared("reflink"),
    "dedupe": _shared("dedupe"),
    "link": _link,
    "symlink": _symlink,
    "unlink": _one(lambda op: f"unlink {quoted(op.path)}"),
    "rename": _rename,
    "exchange": _one(lambda op: f"{_EXCHANGE} {quoted(op.path)} {quoted(op.to)}"),
    "setxattr": _setxattr,
    "removexattr": _one(lambda op: f"setfattr -x {shlex.quote(op.name)} {quoted(op.path)}"),
    "fsync": _one(lambda op: _xfs_io(op, "fsync")[0]),
    "fdatasync": _one(lambda op: _xfs_io(op, "fdatasync")[0]),
    "msync": _msync,
    "sync": _one(lambda _: "sync"),
    "syncfs": _one(lambda _: "sync -f ."),
    "write-osync": _write(" -s"),
    "write-odsync": _write(flags=" -V 1 -D"),
    "dwrite-osync": _write(" -d -s"),
    "awrite-odsync": _write(" -d", " -V 1 -A -D"),
    "writeback": _one(lambda op: _xfs_io(op, f"sync_range -b -w -a {op.offset or 0} {op.length or 0}")[0]),
    "commit": _commit,
    "checkpoint": _checkpoint,
    "drop-caches": _one(lambda _: "for _ in 1 2 3 4; do echo 3 >/proc/sys/vm/drop_caches; done"),
    "sleep": _one(lambda op: f"sleep {op.seconds}"),
}
