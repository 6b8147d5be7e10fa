"""Makes calls into a workload that can run, by making what they need before them, as ACE does.

Missing folders and files are made; a file to be created, or a second name to be given, is removed first; a folder to be
created or replaced is emptied. A file that is written over, zeroed or cut is given 32 KiB first if it is empty, and an
attribute to be removed is set if it is not there. Where all of that is done is a choice of its own (`Setup`).

Sizes are those that files have then. (ACE's program keeps its own account of files, folders and lengths by name and
goes wrong where a rename, a truncation or a removed name confuses it; such workloads of its fail when they run.)
"""

from collections.abc import Callable, Mapping, Sequence

from postcrash.model import Workload, WorkloadBuilder
from postcrash.model.operation import HANDLE
from postcrash.model.units import BLOCK_BYTES, SECTOR_BYTES
from postcrash.workloads import sizes
from postcrash.workloads.grammar import Call, Grammar, Setup
from postcrash.workloads.needs import NeedfulFiles


def runnable_workload(name: str, calls: Sequence[Call], grammar: Grammar, setup: Setup = "new") -> Workload:
    """The workload of `calls`, with what they need. Where nothing of that can come first, all set-ups are alike."""
    new = _WorkloadMaker(grammar)
    workload = new.workload(name, calls)
    if setup == "new" or not new.prerequisites:
        return workload
    maker = _WorkloadMaker(grammar)
    maker.begin(new.prerequisites, is_logged=setup == "logged")
    return maker.workload(name, calls)


class _WorkloadMaker(NeedfulFiles):
    def workload(self, name: str, calls: Sequence[Call]) -> Workload:
        for call in calls:
            _ACTIONS[call.word](self, call)
            self._touched.update(call.paths)
        return self._builder.build(name)

    def _range(self, path: str, word: str) -> tuple[int, int]:
        """Offset and length, of a file that is filled unless the range starts at or past its end."""
        if word in ("append", "hole"):
            end = self._need(path).size
            return (end, sizes.APPEND_BYTES) if word == "append" else (end + sizes.HOLE_BYTES, sizes.UNALIGNED_BYTES)
        if word == "inside":
            return self._ending_inside(path), sizes.INSIDE_BYTES
        size = self._filled(path).size
        if word == "overlap-extending":
            return max(0, size - sizes.BEHIND_BYTES), sizes.UNALIGNED_BYTES
        if word == "last-block":
            return (size - 1) // BLOCK_BYTES * BLOCK_BYTES, BLOCK_BYTES
        return 0, sizes.FROM_THE_START[word]

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
        if call.mode in sizes.SPLICES:
            self._long(path)
        offset, length = self._range(path, call.range)
        self._builder.fallocate(path, call.mode, offset, length)
        if call.mode in ("none", "zero-range"):
            node.size = max(node.size, offset + length)
        node.size += sizes.SPLICES.get(call.mode, 0) * length

    def reflink(self, call: Call) -> None:
        """Whole blocks at the start of both files."""
        path, to = call.paths
        if self._nodes.get(to) is self._need(path):
            self._remove(to)
        node = self._need(to)
        self._long(path)
        self._builder.reflink(path, 0, to, 0, sizes.OVERLAP_BYTES)
        node.size = max(node.size, sizes.OVERLAP_BYTES)

    def _long(self, path: str) -> None:
        """A file of more than OVERLAP_BYTES."""
        node = self._need(path)
        if node.size <= sizes.OVERLAP_BYTES:
            self._builder.write(path, 0, sizes.APPEND_BYTES)
            node.size = sizes.APPEND_BYTES

    def write(self, call: Call) -> None:
        self._write(call, self._builder.write)

    def osync(self, call: Call) -> None:
        self._write(call, self._builder.write_osync)

    def odsync(self, call: Call) -> None:
        self._write(call, self._builder.write_odsync)

    def direct(self, call: Call) -> None:
        self._write(call, self._builder.dwrite, SECTOR_BYTES)

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
        self._builder.msync(path, offset, sizes.MSYNC_BYTES)
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
        self._make_symlink(path, target)

    def mknod(self, call: Call) -> None:
        (path,) = call.paths
        self._parent(path)
        self._remove(path)
        self._make_special(path, call.mode)

    def rename(self, call: Call) -> None:
        self._need(call.paths[0])
        self._rename(*call.paths)

    def _rename(self, path: str, to: str) -> None:
        node = self._nodes[path]
        self._parent(to)
        self._empty(to)
        if to in self._nodes and "folder" in (node.kind, self._nodes[to].kind) and node.kind != self._nodes[to].kind:
            self._remove(to)
        self._builder.rename(path, to)
        if self._nodes.get(to) is not node:
            self._move({path: to})

    def exchange(self, call: Call) -> None:
        """Two files with contents, or two folders with a file in each."""
        for path in call.paths:
            if path in self._folders:
                self._need(path)
                self._need(f"{path}/foo")
            else:
                self._filled(path)
        path, to = call.paths
        self._builder.exchange(path, to)
        self._move({path: to, to: path})

    def replace(self, call: Call) -> None:
        """A new file with contents takes the place of one that has some, or a folder that of another one."""
        path, to = call.paths
        if path in self._folders:
            self._need(to)
            self._need(f"{path}/foo")
        else:
            self._filled(to)
            self.creat(Call("creat", (path,)))
            self._fill(path)
        self.rename(call)

    def rename_symlink(self, call: Call) -> None:
        self._need_kind(call.paths[0], "symlink")
        self._rename(*call.paths)

    def rename_special(self, call: Call) -> None:
        self._need_kind(call.paths[0], call.mode)
        self._rename(*call.paths)

    def reuse_creat(self, call: Call) -> None:
        """A file's name is taken away and given to a new file; so with `reuse_mkdir` and `reuse_link`."""
        (path,) = call.paths
        self._filled(path)
        self.creat(call)

    def reuse_mkdir(self, call: Call) -> None:
        (path,) = call.paths
        self._filled(path)
        self.mkdir(call)

    def reuse_link(self, call: Call) -> None:
        path, other = call.paths
        self._need(other)
        self._filled(path)
        self.link(Call("link", (other, path)))

    def burst(self, call: Call) -> None:
        """Many new files in one folder."""
        (folder,) = call.paths
        self._need(folder)
        for number in range(sizes.BURST_FILES):
            path = f"{folder}/{number}"
            self._remove(path)
            self._make_file(path)
            self._builder.write(path, 0, sizes.BURST_BYTES)
            self._nodes[path].size = sizes.BURST_BYTES

    def crowd(self, call: Call) -> None:
        """More new files in one folder than a file system treats as a few. The folder is fsynced."""
        (folder,) = call.paths
        self._need(folder)
        for number in range(sizes.CROWD_FILES):
            self.creat(Call("creat", (f"{folder}/{number}",)))
        self._builder.fsync(folder)

    def burst_fsync(self, call: Call) -> None:
        """One of many new files is made durable."""
        self.burst(call)
        self._builder.fsync(f"{call.paths[0]}/{sizes.BURST_FILES - 1}")

    def setxattr(self, call: Call) -> None:
        (path,) = call.paths
        self._need(path)
        self._set_attribute(path)

    def removexattr(self, call: Call) -> None:
        (path,) = call.paths
        if sizes.ATTRIBUTE not in self._need(path).attributes:
            self._needed("attribute", path)
        self._builder.removexattr(path, sizes.ATTRIBUTE)
        self._nodes[path].attributes.remove(sizes.ATTRIBUTE)

    def truncate(self, call: Call) -> None:
        (path,) = call.paths
        node = self._filled(path)
        node.size = 0 if call.range == "aligned" else sizes.CUT_BYTES
        self._builder.truncate(path, node.size)

    def extend(self, call: Call) -> None:
        """A hole at the end."""
        (path,) = call.paths
        node = self._need(path)
        node.size += sizes.HOLE_BYTES
        self._builder.truncate(path, node.size)

    def extend_unaligned(self, call: Call) -> None:
        """A hole behind an end that lies within a block."""
        (path,) = call.paths
        self.truncate(Call("truncate", (path,), range="unaligned"))
        self.extend(call)

    def append_and_extend(self, call: Call) -> None:
        """A hole behind bytes that are not on the disk yet."""
        self.write(Call("write", call.paths, range="append"))
        self.extend(call)

    def append_and_cut(self, call: Call) -> None:
        """An end among bytes that are not on the disk yet, between two blocks."""
        (path,) = call.paths
        self.write(Call("write", call.paths, range="append"))
        node = self._nodes[path]
        node.size -= sizes.HOLE_BYTES
        self._builder.truncate(path, node.size)

    def cut_and_append(self, call: Call) -> None:
        """The file is emptied and written anew through one descriptor, as programs do that replace it in place.

        Some file systems note the emptying in the open file, and write the new contents when it is closed.
        """
        (path,) = call.paths
        node, handle = self._filled(path), self._free_handle(path)
        self._builder.open(path).truncate(handle, 0).write(handle, 0, sizes.APPEND_BYTES).close(handle)
        node.size = sizes.APPEND_BYTES

    def held_unlink(self, call: Call) -> None:
        self._held_across(call, self.unlink)

    def held_creat(self, call: Call) -> None:
        """The file's name is given to a new one."""
        self._held_across(call, self.creat)

    def held_rename(self, call: Call) -> None:
        self._held_across(call, self.rename)

    def _held_across(self, call: Call, act: "Callable[[Call], None]") -> None:
        """Open the file, have `act` take its name away, then write to the open file and fsync it. It stays open."""
        path = call.paths[0]
        node = self._need(path)
        offset, length = self._range(path, call.range)
        handle = self._free_handle(path)
        self._held.add(handle)
        self._builder.open(path)
        act(call)
        self._builder.write(handle, offset, length).fsync(handle)
        node.size = max(node.size, offset + length)

    def _free_handle(self, path: str) -> str:
        """The path's handle. If it is held open, it is closed."""
        handle = HANDLE + path
        if handle in self._held:
            self._builder.close(handle)
            self._held.remove(handle)
        return handle

    remove = unlink

    # Points

    def fsync(self, call: Call) -> None:
        (path,) = call.paths
        if path not in self._nodes or self._nodes[path].kind not in ("file", "folder"):
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

    def sync(self, _: Call) -> None:
        self._builder.sync()

    def syncfs(self, _: Call) -> None:
        self._builder.syncfs()

    def commit(self, _: Call) -> None:
        self._builder.commit()

    def checkpoint(self, _: Call) -> None:
        self._builder.checkpoint()


_ACTIONS: Mapping[str, Callable[[_WorkloadMaker, Call], object]] = {
    name.replace("_", "-"): action
    for name, action in vars(_WorkloadMaker).items()
    if not name.startswith("_") and name != "workload"
}
"""The method for each word of a grammar."""
