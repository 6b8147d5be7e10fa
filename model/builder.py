"""Workloads written in Python: one method for each operation of the language, with the same checks as in a file."""

from postcrash.model.quoting import quote
from postcrash.model.workload import SEPARATOR, Assembler, Workload


class WorkloadBuilder:
    """Collects operations. Every method returns the builder, so calls can be chained.

    Operations before `begin()` are set-up. Offsets, lengths and sizes are in bytes. Each method raises `WorkloadError`
    if the same line in a file would do so. The line in the error is the number of the call.

    >>> str(WorkloadBuilder().creat("A").begin().append("A", 4096).build("example").ops[0])
    'append A 4096'
    """

    def __init__(self) -> None:
        self._assembler = Assembler("<builder>")

    def begin(self) -> "WorkloadBuilder":
        """End the set-up."""
        self._assembler.add_line(SEPARATOR)
        return self

    def build(self, name: str) -> Workload:
        """The workload so far. Raises `WorkloadError` if there is nothing to record."""
        return self._assembler.workload(name)

    def mkdir(self, path: str) -> "WorkloadBuilder":
        """Make a directory."""
        return self._add("mkdir", path)

    def rmdir(self, path: str) -> "WorkloadBuilder":
        """Remove an empty directory."""
        return self._add("rmdir", path)

    def creat(self, path: str) -> "WorkloadBuilder":
        """Make an empty file."""
        return self._add("creat", path)

    def mknod(self, path: str, kind: str) -> "WorkloadBuilder":
        """Make a special file; `kind` is a word of `argument.NODES`."""
        return self._add("mknod", path, kind)

    def tmpfile(self, path: str) -> "WorkloadBuilder":
        """Hold a new file open that has no name, in the folder of `path`. `@` and `path` is its handle."""
        return self._add("tmpfile", path)

    def open(self, path: str) -> "WorkloadBuilder":
        """Hold a file open. `@` and `path` is its handle, which operations on files take in place of a path."""
        return self._add("open", path)

    def close(self, handle: str) -> "WorkloadBuilder":
        """Close a handle."""
        return self._add("close", handle)

    def write(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write through the page cache."""
        return self._add("write", path, offset, length)

    def append(self, path: str, length: int) -> "WorkloadBuilder":
        """Write at the end of the file."""
        return self._add("append", path, length)

    def dwrite(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write with O_DIRECT; offset and length are multiples of 512."""
        return self._add("dwrite", path, offset, length)

    def awrite(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write with O_DIRECT and RWF_ATOMIC; length is a power of two, and offset a multiple of it."""
        return self._add("awrite", path, offset, length)

    def mmapwrite(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Store through a shared mapping; a shorter file grows first."""
        return self._add("mmapwrite", path, offset, length)

    def truncate(self, path: str, size: int) -> "WorkloadBuilder":
        """Set the size."""
        return self._add("truncate", path, size)

    def fallocate(self, path: str, mode: str, offset: int, length: int) -> "WorkloadBuilder":
        """Allocate, zero, punch, take out or put in a range. `mode` is a word of `argument.MODES`."""
        return self._add("fallocate", path, mode, offset, length)

    def reflink(self, path: str, offset: int, to: str, to_offset: int, length: int) -> "WorkloadBuilder":
        """Have `to` share bytes of `path`; offsets are multiples of 4096."""
        return self._add("reflink", path, offset, to, to_offset, length)

    def dedupe(self, path: str, offset: int, to: str, to_offset: int, length: int) -> "WorkloadBuilder":
        """Have `to` share bytes of `path` that are equal already; offsets are multiples of 4096."""
        return self._add("dedupe", path, offset, to, to_offset, length)

    def link(self, path: str, to: str) -> "WorkloadBuilder":
        """Give `path` the second name `to`."""
        return self._add("link", path, to)

    def symlink(self, target: str, path: str) -> "WorkloadBuilder":
        """Make a symbolic link at `path`."""
        return self._add("symlink", target, path)

    def unlink(self, path: str) -> "WorkloadBuilder":
        """Remove a name of a file."""
        return self._add("unlink", path)

    def rename(self, path: str, to: str) -> "WorkloadBuilder":
        """Rename, replacing `to` if it exists."""
        return self._add("rename", path, to)

    def exchange(self, path: str, to: str) -> "WorkloadBuilder":
        """Swap two names."""
        return self._add("exchange", path, to)

    def setxattr(self, path: str, name: str, value: str) -> "WorkloadBuilder":
        """Set an extended attribute."""
        return self._add("setxattr", path, name, value)

    def removexattr(self, path: str, name: str) -> "WorkloadBuilder":
        """Remove an extended attribute."""
        return self._add("removexattr", path, name)

    def fsync(self, path: str) -> "WorkloadBuilder":
        """Fsync a file or directory; `.` is the root."""
        return self._add("fsync", path)

    def fdatasync(self, path: str) -> "WorkloadBuilder":
        """Fdatasync a file or directory."""
        return self._add("fdatasync", path)

    def msync(self, path: str, offset: int | None = None, length: int | None = None) -> "WorkloadBuilder":
        """Msync the file, or the pages of a range of it, with MS_SYNC."""
        return self._add("msync", path, *(number for number in (offset, length) if number is not None))

    def sync(self) -> "WorkloadBuilder":
        """Sync everything."""
        return self._add("sync")

    def syncfs(self) -> "WorkloadBuilder":
        """Sync this file system."""
        return self._add("syncfs")

    def write_osync(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write with O_SYNC."""
        return self._add("write-osync", path, offset, length)

    def write_odsync(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write with O_DSYNC."""
        return self._add("write-odsync", path, offset, length)

    def dwrite_osync(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write with O_DIRECT and O_SYNC; offset and length are multiples of 512."""
        return self._add("dwrite-osync", path, offset, length)

    def awrite_odsync(self, path: str, offset: int, length: int) -> "WorkloadBuilder":
        """Write with O_DIRECT, RWF_ATOMIC and O_DSYNC; as `awrite`."""
        return self._add("awrite-odsync", path, offset, length)

    def writeback(self, path: str, offset: int | None = None, length: int | None = None) -> "WorkloadBuilder":
        """Write dirty pages of the file, or of a range of it, to the disk."""
        return self._add("writeback", path, *(number for number in (offset, length) if number is not None))

    def commit(self) -> "WorkloadBuilder":
        """Commit the journal as if its timer had fired."""
        return self._add("commit")

    def checkpoint(self) -> "WorkloadBuilder":
        """Move metadata from the log to its own place, as the kernel does some time after a commit."""
        return self._add("checkpoint")

    def drop_caches(self) -> "WorkloadBuilder":
        """Drop everything clean from memory."""
        return self._add("drop-caches")

    def sleep(self, seconds: int) -> "WorkloadBuilder":
        """Let time pass, so that the kernel's timers fire."""
        return self._add("sleep", seconds)

    def _add(self, word: str, *arguments: str | int) -> "WorkloadBuilder":
        self._assembler.add_line(" ".join([word, *(quote(str(argument)) for argument in arguments)]))
        return self
