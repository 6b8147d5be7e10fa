"""Calls made a workload that can run: what they need is made before them, as ACE does.

Missing folders and files are made; a file to be created, or a second name to be given, is removed first; a folder to be
created or replaced is emptied. A file that is written over, zeroed or cut is given 32 KiB first if it is empty, and an
attribute to be removed is set if it is not there. All of that is recorded with the rest; there is no set-up.

Sizes are those that files have then. (ACE's program keeps its own account of files, folders and lengths by name and
goes wrong where a rename, a truncation or a removed name confuses it; such workloads of its fail when they run.)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from postcrash.model import Workload, WorkloadBuilder
from postcrash.model.operation import HANDLE
from postcrash.workloads.grammar import ROOT, Call, Grammar, parent

APPEND_BYTES = 32768
UNALIGNED_BYTES = 5000
BEHIND_BYTES = 2000
"""A range that extends the file starts so far before its end."""
OVERLAP_BYTES = 8192
HOLE_BYTES = 8192
CUT_BYTES = 2500
SECTOR_BYTES = 512
MSYNC_BYTES = 8192
ATTRIBUTE = "user.xattr1"
VALUE = "val1"


@dataclass(eq=False, slots=True)
class _Node:
    """A file, a symbolic link or a folder."""

    is_folder: bool = False
    is_file: bool = True
    size: int = 0
    attributes: set[str] = field(default_factory=set)


def settled(name: str, calls: Sequence[Call], grammar: Grammar) -> Workload:
    """The workload of `calls`, with what they need."""
    return _Settler(grammar).workload(name, calls)


class _Settler:
    def __init__(self, grammar: Grammar) -> None:
        self._folders = {*grammar.folders, ROOT}
        self._nodes = {ROOT: _Node(is_folder=True)}
        self._builder = WorkloadBuilder()
        self._held: set[str] = set()

    def workload(self, name: str, calls: Sequence[Call]) -> Workload:
        for call in calls:
            _ACTIONS[call.word](self, call)
        return self._builder.build(name)

    # What calls need

    def _parent(self, path: str) -> None:
        if parent(path) not in self._nodes:
            self._parent(parent(path))
            self._make_folder(parent(path))

    def _need(self, path: str) -> _Node:
        if path in self._nodes and not self._nodes[path].is_file and not self._nodes[path].is_folder:
            self._remove(path)
        if path not in self._nodes:
            self._parent(path)
            if path in self._folders:
                self._make_folder(path)
            else:
                self._make_file(path)
        return self._nodes[path]

    def _filled(self, path: str) -> _Node:
        """A file that is not empty."""
        node = self._need(path)
        if not node.size:
            self._builder.write(path, 0, APPEND_BYTES)
            node.size = APPEND_BYTES
        return node

    def _make_folder(self, path: str) -> None:
        self._builder.mkdir(path)
        self._nodes[path] = _Node(is_folder=True)

    def _make_file(self, path: str) -> None:
        self._builder.creat(path)
        self._nodes[path] = _Node()

    def _remove(self, path: str) -> None:
        """If it is there, with what is in it."""
        if path not in self._nodes:
            return
        self._empty(path)
        if self._nodes.pop(path).is_folder:
            self._builder.rmdir(path)
        else:
            self._builder.unlink(path)

    def _empty(self, path: str) -> None:
        for inside in sorted((name for name in self._nodes if parent(name) == path != name), reverse=True):
            self._remove(inside)

    def _range(self, path: str, word: str) -> tuple[int, int]:
        """Offset and length, of a file that is filled unless the range starts at or past its end."""
        if word in ("append", "hole"):
            end = self._need(path).size
            return (end, APPEND_BYTES) if word == "append" else (end + HOLE_BYTES, UNALIGNED_BYTES)
        size = self._filled(path).size
        if word == "overlap-extending":
            return max(0, size - BEHIND_BYTES), UNALIGNED_BYTES
        return 0, OVERLAP_BYTES if word == "overlap" else UNALIGNED_BYTES

    # Calls

    def creat(self, call: Call) -> None:
        (path,) = call.paths
        self._parent(path)
        self._remove(path)
        self._make_file(path)

    def mkdir(self, call: Call) -> None:
        (path,) = call.paths
        self._parent(path)
        self._remove(path)
        self._make_folder(path)

    def rmdir(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._remove(path)

    def unlink(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._remove(path)

    def falloc(self, call: Call) -> None:
        (path,) = call.paths
        node = self._filled(path)
        offset, length = self._range(path, call.range)
        self._builder.fallocate(path, call.mode, offset, length)
        if call.mode in ("none", "zero-range"):
            node.size = max(node.size, offset + length)

    def write(self, call: Call) -> None:
        self._write(call, self._builder.write)

    def osync(self, call: Call) -> None:
        self._write(call, self._builder.write_osync)

    def store(self, call: Call) -> None:
        self._write(call, self._builder.mmapwrite)

    def dwrite(self, call: Call) -> None:
        """ACE opens the file with O_SYNC too. An end that is no sector's is rounded up."""
        self._write(call, self._builder.dwrite_osync, SECTOR_BYTES)

    def mmapwrite(self, call: Call) -> None:
        """The range is allocated, stored to through a mapping, and its first 8 KiB are made durable by msync."""
        (path,) = call.paths
        node = self._need(path)
        offset, length = self._range(path, call.range)
        self._builder.fallocate(path, "none", offset, length)
        self._builder.mmapwrite(path, offset, length)
        self._builder.msync(path, offset, MSYNC_BYTES)
        node.size = max(node.size, offset + length)

    def _write(self, call: Call, add: Callable[[str, int, int], WorkloadBuilder], multiple: int = 1) -> None:
        (path,) = call.paths
        node = self._need(path)
        offset, length = self._range(path, call.range)
        offset += -offset % multiple
        add(path, offset, length)
        node.size = max(node.size, offset + length)

    def link(self, call: Call) -> None:
        path, to = call.paths
        node = self._need(path)
        self._parent(to)
        self._remove(to)
        self._builder.link(path, to)
        self._nodes[to] = node

    def symlink(self, call: Call) -> None:
        target, path = call.paths
        self._parent(path)
        self._remove(path)
        self._builder.symlink(target, path)
        self._nodes[path] = _Node(is_file=False)

    def rename(self, call: Call) -> None:
        path, to = call.paths
        node = self._need(path)
        self._parent(to)
        self._empty(to)
        self._builder.rename(path, to)
        if self._nodes.get(to) is not node:
            self._move({path: to})

    def exchange(self, call: Call) -> None:
        path, to = call.paths
        self._need(path)
        self._need(to)
        self._builder.exchange(path, to)
        self._move({path: to, to: path})

    def _move(self, places: Mapping[str, str]) -> None:
        """Names, and what is below them, get their new places at once."""
        moved = {}
        for old, new in places.items():
            for name in [name for name in self._nodes if name == old or name.startswith(f"{old}/")]:
                moved[new + name[len(old) :]] = self._nodes.pop(name)
        self._nodes.update(moved)

    def setxattr(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path).attributes.add(ATTRIBUTE)
        self._builder.setxattr(path, ATTRIBUTE, VALUE)

    def removexattr(self, call: Call) -> None:
        (path,) = call.paths
        if ATTRIBUTE not in self._need(path).attributes:
            self.setxattr(call)
        self._builder.removexattr(path, ATTRIBUTE)
        self._nodes[path].attributes.remove(ATTRIBUTE)

    def truncate(self, call: Call) -> None:
        (path,) = call.paths
        node = self._filled(path)
        node.size = 0 if call.range == "aligned" else CUT_BYTES
        self._builder.truncate(path, node.size)

    def extend(self, call: Call) -> None:
        """A hole at the end."""
        (path,) = call.paths
        node = self._need(path)
        node.size += HOLE_BYTES
        self._builder.truncate(path, node.size)

    def held_unlink(self, call: Call) -> None:
        self._held_across(call, self.unlink)

    def held_creat(self, call: Call) -> None:
        """The file's name is given to a new one."""
        self._held_across(call, self.creat)

    def held_rename(self, call: Call) -> None:
        self._held_across(call, self.rename)

    def _held_across(self, call: Call, act: "Callable[[Call], None]") -> None:
        """The file is opened, its name taken away, and what is open is written to and made durable; it stays open."""
        path = call.paths[0]
        node, handle = self._need(path), HANDLE + path
        offset, length = self._range(path, call.range)
        if handle in self._held:
            self._builder.close(handle)
        self._held.add(handle)
        self._builder.open(path)
        act(call)
        self._builder.write(handle, offset, length).fsync(handle)
        node.size = max(node.size, offset + length)

    # Points

    def fsync(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._builder.fsync(path)

    def fdatasync(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._builder.fdatasync(path)

    def msync(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._builder.msync(path)

    def writeback(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._builder.writeback(path)

    def sync(self, _call: Call) -> None:
        self._builder.sync()

    def syncfs(self, _call: Call) -> None:
        self._builder.syncfs()

    def commit(self, _call: Call) -> None:
        self._builder.commit()

    def checkpoint(self, _call: Call) -> None:
        self._builder.checkpoint()


_ACTIONS: Mapping[str, Callable[[_Settler, Call], None]] = {
    "creat": _Settler.creat,
    "mkdir": _Settler.mkdir,
    "rmdir": _Settler.rmdir,
    "falloc": _Settler.falloc,
    "write": _Settler.write,
    "osync": _Settler.osync,
    "store": _Settler.store,
    "dwrite": _Settler.dwrite,
    "mmapwrite": _Settler.mmapwrite,
    "extend": _Settler.extend,
    "held-unlink": _Settler.held_unlink,
    "held-creat": _Settler.held_creat,
    "held-rename": _Settler.held_rename,
    "link": _Settler.link,
    "symlink": _Settler.symlink,
    "unlink": _Settler.unlink,
    "remove": _Settler.unlink,
    "rename": _Settler.rename,
    "exchange": _Settler.exchange,
    "setxattr": _Settler.setxattr,
    "removexattr": _Settler.removexattr,
    "truncate": _Settler.truncate,
    "fsync": _Settler.fsync,
    "fdatasync": _Settler.fdatasync,
    "msync": _Settler.msync,
    "writeback": _Settler.writeback,
    "sync": _Settler.sync,
    "syncfs": _Settler.syncfs,
    "commit": _Settler.commit,
    "checkpoint": _Settler.checkpoint,
}
