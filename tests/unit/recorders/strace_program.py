"""A random program: `strace_program.py FOLDER SEED STEPS` changes FOLDER by many kinds of system calls.

Calls that fail are skipped. The test compares what the program leaves behind.
"""

import contextlib
import ctypes
import os
import random
import sys
from collections.abc import Callable

NAMES = ["a", "b", "c", "d", "d/a", "d/b", "e", "e/a", "d/e", "e/d"]
LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
FALLOCATE_MODES = [0, 1, 3, 16, 17]


def checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


class Program:
    """Holds descriptors open across renames, truncations and removals."""

    def __init__(self, folder: str, seed: int) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.open: list[int] = []

    def name(self) -> str:
        """One of a few names, relative to the working directory or absolute."""
        name = self.random.choice(NAMES)
        return self.random.choice(
            [name, f"./{name}", f"{self.folder}/{name}", f"../{os.path.basename(self.folder)}/{name}"]
        )

    def descriptor(self) -> int:
        if not self.open:
            raise OSError
        return self.random.choice(self.open)

    def content(self) -> bytes:
        return self.random.randbytes(self.random.choice([1, 3, 100, 512, 5000]))

    def offset(self) -> int:
        return self.random.choice([0, 1, 512, 4096, 10_000])

    def step(self) -> None:
        action: Callable[[], object] = self.random.choice(self.actions())
        with contextlib.suppress(OSError):
            action()

    def actions(self) -> list[Callable[[], object]]:
        contents = [self.write, self.pwrite, self.writev, self.pwritev, self.read, self.lseek, self.ftruncate]
        more = [self.fallocate, self.copy_file_range, self.sendfile, self.sync, self.child, self.flags]
        names = [
            self.mkdir,
            self.rmdir,
            self.rename,
            self.exchange,
            self.link,
            self.symlink,
            self.unlink,
            self.truncate,
        ]
        return [*2 * contents, *more, *names, *4 * [self.openat], self.dup, self.dup2, self.close, self.xattr]

    def openat(self) -> None:
        flags = self.random.choice([os.O_WRONLY, os.O_RDWR])
        for flag in (os.O_CREAT, os.O_CREAT, os.O_TRUNC, os.O_EXCL, os.O_APPEND, os.O_SYNC, os.O_DSYNC, os.O_NOFOLLOW):
            flags |= flag if self.random.random() < 0.3 else 0
        self.open.append(os.open(self.name(), flags))

    def dup(self) -> None:
        self.open.append(os.dup(self.descriptor()))

    def dup2(self) -> None:
        os.dup2(self.descriptor(), self.descriptor())

    def close(self) -> None:
        descriptor = self.descriptor()
        self.open.remove(descriptor)
        os.close(descriptor)

    def write(self) -> None:
        os.write(self.descriptor(), self.content())

    def writev(self) -> None:
        os.writev(self.descriptor(), [self.content(), self.content()])

    def pwrite(self) -> None:
        os.pwrite(self.descriptor(), self.content(), self.offset())

    def pwritev(self) -> None:
        flags = self.random.choice([0, os.RWF_SYNC, os.RWF_DSYNC])
        os.pwritev(self.descriptor(), [self.content(), self.content()], self.offset(), flags)

    def read(self) -> None:
        os.read(self.descriptor(), 700)

    def lseek(self) -> None:
        os.lseek(self.descriptor(), self.offset(), self.random.choice([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]))

    def ftruncate(self) -> None:
        os.ftruncate(self.descriptor(), self.offset())

    def truncate(self) -> None:
        os.truncate(self.name(), self.offset())

    def fallocate(self) -> None:
        mode = self.random.choice(FALLOCATE_MODES)
        arguments = [ctypes.c_long(self.offset()), ctypes.c_long(3000)]
        checked(LIBC.fallocate(self.descriptor(), mode, *arguments))

    def copy_file_range(self) -> None:
        os.copy_file_range(self.descriptor(), self.descriptor(), 600, self.random.choice([None, 0]), self.offset())

    def sendfile(self) -> None:
        os.sendfile(self.descriptor(), self.descriptor(), self.random.choice([None, 0]), 600)

    def sync(self) -> None:
        self.random.choice([os.fsync, os.fdatasync])(self.descriptor())

    def flags(self) -> None:
        import fcntl

        fcntl.fcntl(self.descriptor(), fcntl.F_SETFL, self.random.choice([0, os.O_APPEND]))

    def child(self) -> None:
        """The child writes through an inherited descriptor and closes it. This moves the position that both share."""
        descriptor, content = self.descriptor(), self.content()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(OSError):
                os.write(descriptor, content)
                os.close(descriptor)
            os._exit(0)
        os.waitpid(child, 0)

    def mkdir(self) -> None:
        os.mkdir(self.name())

    def rmdir(self) -> None:
        os.rmdir(self.name())

    def rename(self) -> None:
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.rename(self.name(), self.name(), src_dir_fd=self.random.choice([None, here]))
        finally:
            os.close(here)

    def exchange(self) -> None:
        old, new = self.name().encode(), self.name().encode()
        checked(LIBC.renameat2(AT_FDCWD, old, AT_FDCWD, new, self.random.choice([1, 2])))

    def link(self) -> None:
        os.link(self.name(), self.name(), follow_symlinks=self.random.random() < 0.5)

    def symlink(self) -> None:
        os.symlink(self.random.choice(["a", "../a", "d", "e/a", f"{self.folder}/d", "nowhere"]), self.name())

    def unlink(self) -> None:
        os.unlink(self.name())

    def xattr(self) -> None:
        name = self.random.choice(["user.x", "user.y"])
        os.setxattr(self.descriptor(), name, b"v1 v2")
        os.setxattr(self.name(), name, b"")
        os.removexattr(self.name(), "user.x")


if __name__ == "__main__":
    folder, seed, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.chdir(folder)
    program = Program(folder, seed)
    for _ in range(steps):
        program.step()
    for descriptor in program.open:
        with contextlib.suppress(OSError):
            os.fstat(descriptor)  # this shows the file's size in the trace
