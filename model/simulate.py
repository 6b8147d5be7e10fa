"""An abstract file system in memory: the tree after each operation of a workload, if there is no crash.

These are not modelled: permissions, space, time stamps, link counts of directories. Symbolic links are never followed:
an operation through one is refused with ELOOP.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import cast

from postcrash.model.argument import MIB, SHIFTS, is_naturally_aligned
from postcrash.model.operation import HANDLE, PROGRAM_FORMS, Operation
from postcrash.model.segments import (
    ZERO,
    Segments,
    clipped,
    merged,
    overwritten,
    resized,
    shifted,
    spliced,
    write_of,
    written,
)
from postcrash.model.tree import ROOT_PATH, Entry, EntryType, Tree, is_below
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.model.workload import Workload

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
SYMLINK_MODE = 0o777
ROOT_INODE = 1
DEVICES = {"char": "1:3", "block": "7:0"}
"""Numbers of the devices that mknod makes. Nothing opens these devices."""
MOVED_BYTES_MIN = 8
"""Bytes of a write that stand where it did not put them are known in runs of so many (model/wire/src/pattern.rs)."""
FILE_BYTES_MAX = 64 * MIB
"""Of a file: after a crash no more of one is read (harness/guests/agent/src/walk.rs)."""

Changes = Mapping[str, Entry | None]


class SimulationError(ValueError):
    """An operation cannot succeed at its place. `errno_name` is what the kernel would answer (`ENOENT`).

    `reason` may say more.
    """

    def __init__(self, operation: Operation, errno_name: str, reason: str = "") -> None:
        place = f"line {operation.line}: " if operation.line else ""
        more = f": {reason}" if reason else ""
        super().__init__(f"{place}`{operation}` would fail with {errno_name}{more}")
        self.operation = operation
        self.errno_name = errno_name


class _Refusal(Exception):
    """The current operation fails with this errno name, and perhaps for this reason."""


def simulate(workload: Workload) -> list[Tree]:
    """The trees before the first and after each of `workload.operations`: one more than there are operations.

    An inode's number is the position of the operation that made it, counted from 2. So it is the same in every tree.
    Raises `SimulationError` at the first operation that cannot succeed.
    """
    trees = [Tree([Entry(ROOT_PATH, "dir", DIRECTORY_MODE, inode=ROOT_INODE)])]
    for inode, operation in enumerate(workload.operations, ROOT_INODE + 1):
        if operation.word in PROGRAM_FORMS:
            raise SimulationError(operation, "ENOSYS", "what a program does is not known before it runs")
        try:
            changes = _HANDLERS[operation.word](trees[-1], operation, inode)
        except _Refusal as refusal:
            raise SimulationError(operation, *refusal.args) from None
        trees.append(trees[-1].changed(changes))
    return trees


# Looking up


def _check_parent(tree: Tree, path: str) -> None:
    """Refuse `path` if a component before the last one is not a directory."""
    parts = path.split("/")[:-1]
    for count in range(1, len(parts) + 1):
        entry = tree.get("/".join(parts[:count]))
        if entry is None:
            raise _Refusal("ENOENT")
        if entry.type != "dir":
            raise _Refusal("ELOOP" if entry.type == "symlink" else "ENOTDIR")


def _existing(tree: Tree, path: str) -> Entry:
    if path.startswith(HANDLE):
        return _held(tree, path)
    _check_parent(tree, path)
    entry = tree.get(path)
    if entry is None:
        raise _Refusal("ENOENT")
    return entry


def _held(tree: Tree, handle: str) -> Entry:
    if handle not in tree.held:
        raise _Refusal("EBADF", f"{handle} is not open")
    return tree.held[handle]


def _check_new(tree: Tree, path: str) -> None:
    _check_parent(tree, path)
    if path in tree:
        raise _Refusal("EEXIST")


def _opened(tree: Tree, path: str) -> Entry:
    """A file or directory. Symbolic links are not followed. Special files are refused: to open a fifo would wait."""
    entry = _existing(tree, path)
    if entry.type == "symlink":
        raise _Refusal("ELOOP")
    if entry.type not in ("file", "dir"):
        raise _Refusal("EPERM", "special files are not opened")
    return entry


def _file(tree: Tree, path: str) -> Entry:
    entry = _opened(tree, path)
    if entry.type == "dir":
        raise _Refusal("EISDIR")
    return entry


# Changing


def _every_name(tree: Tree, entry: Entry) -> dict[str, Entry | None]:
    """Maps all names and handles of an inode to `entry`, its new state."""
    if tree[entry.path].nlink in (None, 1) and not tree.held:
        return {entry.path: entry}
    return {name: replace(entry, path=name) for name in _names(tree, entry.inode)}


def _names(tree: Tree, inode: int) -> list[str]:
    """All paths and handles of an inode."""
    return [*tree.names(inode), *(handle for handle, entry in tree.held.items() if entry.inode == inode)]


def _without_name(tree: Tree, entry: Entry) -> dict[str, Entry | None]:
    """Take away one name of an inode that is not a directory."""
    assert entry.nlink is not None
    others = _every_name(tree, replace(entry, nlink=entry.nlink - 1))
    return {**others, entry.path: None}


def _moved(tree: Tree, old: str, new: str) -> tuple[Changes, Changes]:
    """What moving `old` and everything below it takes away, and what it puts in."""
    paths = [path for path in tree.paths() if path == old or is_below(path, old)]
    put = {new + path[len(old) :]: replace(tree[path], path=new + path[len(old) :]) for path in paths}
    return dict.fromkeys(paths), put


# Directory operations


def _make(kind: EntryType, mode: int, nlink: int | None) -> Callable[[Tree, Operation, int], Changes]:
    def handler(tree: Tree, operation: Operation, inode: int) -> Changes:
        _check_new(tree, operation.path)
        return {operation.path: Entry(operation.path, kind, mode, nlink, inode, target=operation.to)}

    return handler


def _mknod(tree: Tree, operation: Operation, inode: int) -> Changes:
    _check_new(tree, operation.path)
    kind = cast(EntryType, operation.mode)
    return {operation.path: Entry(operation.path, kind, FILE_MODE, 1, inode, target=DEVICES.get(kind, ""))}


def _rmdir(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _existing(tree, operation.path)
    if entry.type != "dir":
        raise _Refusal("ENOTDIR")
    _check_empty(tree, operation.path)
    return {operation.path: None}


def _check_empty(tree: Tree, directory: str) -> None:
    if any(is_below(path, directory) for path in tree.paths()):
        raise _Refusal("ENOTEMPTY")


def _link(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _existing(tree, operation.path)
    _check_new(tree, operation.to)
    if entry.nlink is None:
        raise _Refusal("EPERM")
    if not entry.nlink and not entry.is_linkable:
        raise _Refusal("ENOENT", "the file has lost its last name")
    linked = replace(entry, nlink=entry.nlink + 1, is_linkable=False)
    return {name: replace(linked, path=name) for name in (*_names(tree, entry.inode), operation.to)}


def _unlink(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _existing(tree, operation.path)
    if entry.type == "dir":
        raise _Refusal("EISDIR")
    return _without_name(tree, entry)


def _rename(tree: Tree, operation: Operation, _inode: int) -> Changes:
    old, new = operation.path, operation.to
    _check_parent(tree, old)
    _check_parent(tree, new)
    entry = _existing(tree, old)
    if is_below(new, old):
        raise _Refusal("EINVAL")
    replaced = tree.get(new)
    if replaced is not None and replaced.inode == entry.inode:
        return {}
    taken, put = _moved(tree, old, new)
    removed = _replaced(tree, entry, replaced) if replaced else {}
    return {**removed, **taken, **put}


def _replaced(tree: Tree, entry: Entry, replaced: Entry) -> dict[str, Entry | None]:
    if replaced.type != "dir":
        if entry.type == "dir":
            raise _Refusal("ENOTDIR")
        return _without_name(tree, replaced)
    if is_below(entry.path, replaced.path):
        raise _Refusal("ENOTEMPTY")
    if entry.type != "dir":
        raise _Refusal("EISDIR")
    _check_empty(tree, replaced.path)
    return {replaced.path: None}


def _exchange(tree: Tree, operation: Operation, _inode: int) -> Changes:
    first, second = operation.path, operation.to
    _check_parent(tree, first)
    _check_parent(tree, second)
    _existing(tree, first)
    _existing(tree, second)
    if is_below(first, second) or is_below(second, first):
        raise _Refusal("EINVAL")
    taken_first, put_second = _moved(tree, first, second)
    taken_second, put_first = _moved(tree, second, first)
    return {**taken_first, **taken_second, **put_first, **put_second}


# Handles


def _open(tree: Tree, operation: Operation, _inode: int) -> Changes:
    return _hold(tree, operation, _file(tree, operation.path))


def _tmpfile(tree: Tree, operation: Operation, inode: int) -> Changes:
    _check_parent(tree, operation.path)
    return _hold(tree, operation, Entry("", "file", FILE_MODE, 0, inode, is_linkable=True))


def _hold(tree: Tree, operation: Operation, entry: Entry) -> Changes:
    handle = HANDLE + operation.path
    if handle in tree.held:
        raise _Refusal("EEXIST", f"{handle} is open already")
    return {handle: replace(entry, path=handle)}


def _close(tree: Tree, operation: Operation, _inode: int) -> Changes:
    return {_held(tree, operation.path).path: None}


# Contents and attributes


def _with_content(tree: Tree, entry: Entry, segments: Segments) -> Changes:
    size = segments[-1].end if segments else 0
    if size > FILE_BYTES_MAX:
        raise _Refusal("EFBIG", f"no more than {FILE_BYTES_MAX} bytes of a file are read after a crash")
    _check_recognisable(segments)
    return _every_name(tree, replace(entry, segments=segments, size=size))


def _check_recognisable(segments: Segments) -> None:
    """Refuse contents that no observation could show: moved bytes that can no longer be told from others."""
    for start, end, source in segments:
        write = write_of(source)
        if write is None or not write[1]:
            continue
        edges = {
            start,
            end,
            min(end, start - start % SECTOR_BYTES + SECTOR_BYTES),
            max(start, (end - 1) // SECTOR_BYTES * SECTOR_BYTES),
        }
        if any(after - before < MOVED_BYTES_MIN for before, after in pairwise(sorted(edges))):
            raise _Refusal(
                "EINVAL", f"fewer than {MOVED_BYTES_MIN} bytes of a write in a sector, moved, are not known again"
            )


def _write(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _file(tree, operation.path)
    assert operation.tag is not None
    segments = overwritten(entry.segments, *operation.byte_range, written(operation.tag))
    return _with_content(tree, entry, segments)


def _untorn_write(tree: Tree, operation: Operation, inode: int) -> Changes:
    """Which lengths a file takes is not known here."""
    start, end = operation.byte_range
    if not is_naturally_aligned(start, end - start):
        raise _Refusal("EINVAL", "LENGTH is no power of two, or OFFSET is no multiple of LENGTH")
    return _write(tree, operation, inode)


def _append(tree: Tree, operation: Operation, inode: int) -> Changes:
    entry = _file(tree, operation.path)
    return _write(tree, replace(operation, offset=entry.size), inode)


def _truncate(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _file(tree, operation.path)
    assert operation.length is not None
    return _with_content(tree, entry, resized(entry.segments, operation.length))


def _fallocate(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _file(tree, operation.path)
    start, end = operation.byte_range
    if operation.mode in SHIFTS:
        return _with_content(tree, entry, _spliced(entry, start, end, operation.mode == "insert-range"))
    grows = operation.mode in ("none", "zero-range")
    zeroes = operation.mode in ("zero-range", "zero-range-keep-size", "punch-hole")
    segments = resized(entry.segments, max(entry.size, end)) if grows else entry.segments
    size = max(entry.size, end) if grows else entry.size
    if zeroes and start < size:
        segments = overwritten(segments, start, min(end, size), ZERO)
    return _with_content(tree, entry, segments)


def _spliced(entry: Entry, start: int, end: int, inserts: bool) -> Segments:
    """The content after a range of zeros was put in, or after a range was taken out."""
    if start % BLOCK_BYTES or end % BLOCK_BYTES:
        raise _Refusal("EINVAL", f"the range is not one of whole blocks of {BLOCK_BYTES} bytes")
    if (start if inserts else end) >= entry.size:
        raise _Refusal("EINVAL", "the range reaches the end of the file")
    return spliced(entry.segments, start, end, inserts)


def _reflink(tree: Tree, operation: Operation, _inode: int) -> Changes:
    part, to = _shared(tree, operation)
    start, end = part[0].start, part[-1].end
    grown = resized(to.segments, max(to.size, start))
    segments = merged((*clipped(grown, 0, start), *part, *clipped(grown, end, max(to.size, end))))
    return _with_content(tree, to, segments)


def _dedupe(tree: Tree, operation: Operation, _inode: int) -> Changes:
    part, to = _shared(tree, operation)
    if clipped(to.segments, part[0].start, part[-1].end) != part:
        raise _Refusal("EINVAL", "the bytes differ")
    return {}


def _shared(tree: Tree, operation: Operation) -> tuple[Segments, Entry]:
    """The bytes that are shared, at their new place, and the file that gets them.

    Source: generic_remap_file_range_prep, fs/remap_range.c.
    """
    entry, to = _file(tree, operation.path), _file(tree, operation.to)
    assert operation.to_offset is not None
    start, end = operation.byte_range
    by = operation.to_offset - start
    if end > entry.size:
        raise _Refusal("EINVAL", f"the range reaches beyond the end of {operation.path}")
    if end % BLOCK_BYTES and (end < entry.size or end + by < to.size):
        raise _Refusal("EINVAL", f"neither whole blocks of {BLOCK_BYTES} bytes nor up to both files' ends")
    if entry.inode == to.inode and abs(by) < end + -end % BLOCK_BYTES - start:
        raise _Refusal("EINVAL", "the ranges overlap")
    return merged(shifted(clipped(entry.segments, start, end), by)), to


def _setxattr(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _opened(tree, operation.path)
    xattrs = {**dict(entry.xattrs), operation.name: operation.value.encode().hex()}
    return _every_name(tree, replace(entry, xattrs=tuple(sorted(xattrs.items()))))


def _removexattr(tree: Tree, operation: Operation, _inode: int) -> Changes:
    entry = _opened(tree, operation.path)
    xattrs = tuple(pair for pair in entry.xattrs if pair[0] != operation.name)
    if xattrs == entry.xattrs:
        raise _Refusal("ENODATA")
    return _every_name(tree, replace(entry, xattrs=xattrs))


# Persistence operations and environment events change nothing that can be seen


def _check_opened(tree: Tree, operation: Operation, _inode: int) -> Changes:
    _opened(tree, operation.path)
    return {}


def _check_file(tree: Tree, operation: Operation, _inode: int) -> Changes:
    _file(tree, operation.path)
    return {}


def _nothing(_tree: Tree, _operation: Operation, _inode: int) -> Changes:
    return {}


_HANDLERS: Mapping[str, Callable[[Tree, Operation, int], Changes]] = {
    "mkdir": _make("dir", DIRECTORY_MODE, None),
    "rmdir": _rmdir,
    "creat": _make("file", FILE_MODE, 1),
    "mknod": _mknod,
    "open": _open,
    "tmpfile": _tmpfile,
    "close": _close,
    "write": _write,
    "append": _append,
    "dwrite": _write,
    "awrite": _untorn_write,
    "mmapwrite": _write,
    "truncate": _truncate,
    "fallocate": _fallocate,
    "reflink": _reflink,
    "dedupe": _dedupe,
    "link": _link,
    "symlink": _make("symlink", SYMLINK_MODE, 1),
    "unlink": _unlink,
    "rename": _rename,
    "exchange": _exchange,
    "setxattr": _setxattr,
    "removexattr": _removexattr,
    "fsync": _check_opened,
    "fdatasync": _check_opened,
    "msync": _check_file,
    "sync": _nothing,
    "syncfs": _nothing,
    "write-osync": _write,
    "write-odsync": _write,
    "dwrite-osync": _write,
    "awrite-odsync": _untorn_write,
    "writeback": _check_file,
    "commit": _nothing,
    "checkpoint": _nothing,
    "drop-caches": _nothing,
    "sleep": _nothing,
}
