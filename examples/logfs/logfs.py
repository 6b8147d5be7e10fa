#!/usr/bin/python3
"""logfs: a small FUSE file system that keeps a log of its operations (docs/own-file-system.md).

    logfs.py mkfs DEVICE
    logfs.py mount DEVICE FOLDER -o OPTIONS

The first block has a magic number, the size, and how often it was mounted. Records follow, each with a checksum, a
length, the number of its mount, an operation, and the bytes that it writes. A mount reads the records and does their
operations again, up to the first record that is not whole. What an earlier mount has left behind that one is older.
"""

import errno
import json
import os
import stat
import struct
import sys
import zlib

from fusepy import FUSE, FuseOSError, Operations

MAGIC = b"logfs 1\n"
BLOCK = 4096
SUPERBLOCK = struct.Struct("<8sII")
RECORD = struct.Struct("<III")


class Log:
    """The records on a device, and the operations that they stand for."""

    def __init__(self, device):
        self.file = os.open(device, os.O_RDWR)
        magic, self.size, self.mounts = SUPERBLOCK.unpack(os.pread(self.file, SUPERBLOCK.size, 0))
        if magic != MAGIC:
            sys.exit(f"logfs: bad magic on {device}: {magic!r}")
        self.end = BLOCK

    def read(self):
        """Each operation in the log, with its bytes. New records go behind the last one."""
        last = 0
        while self.end + RECORD.size <= self.size:
            checksum, length, mount = RECORD.unpack(os.pread(self.file, RECORD.size, self.end))
            content = os.pread(self.file, min(length, self.size - self.end), self.end + RECORD.size)
            if mount < last or len(content) < length or zlib.crc32(content, mount) != checksum:
                break
            head, _, data = content.partition(b"\n")
            yield json.loads(head), data
            self.end, last = self.end + RECORD.size + length, mount

    def begin(self):
        """Count the mount, whose records are newer than all that are there."""
        self.mounts += 1
        os.pwrite(self.file, SUPERBLOCK.pack(MAGIC, self.size, self.mounts), 0)
        os.fsync(self.file)

    def append(self, operation, data=b""):
        content = json.dumps(operation).encode() + b"\n" + data
        record = RECORD.pack(zlib.crc32(content, self.mounts), len(content), self.mounts) + content
        if self.end + len(record) > self.size:
            raise FuseOSError(errno.ENOSPC)
        os.pwrite(self.file, record, self.end)
        self.end += len(record)


class Logfs(Operations):
    """The tree in memory: files are bytearrays, and folders are None."""

    link = symlink = readlink = mknod = chmod = chown = None  # not supported

    def __init__(self, log):
        self.log, self.tree = log, {"/": None}
        for operation, data in log.read():
            self.do(operation, data)
        log.begin()

    def do(self, operation, data=b""):
        """Change the tree."""
        name, path, *rest = operation
        if name == "write":
            file, end = self.tree[path], rest[0] + len(data)
            file.extend(bytes(max(0, end - len(file))))
            file[rest[0] : end] = data
        elif name == "truncate":
            file = self.tree[path]
            file.extend(bytes(max(0, rest[0] - len(file))))
            del file[rest[0] :]
        elif name == "rename":
            moved = [each for each in self.tree if each == path or each.startswith(f"{path}/")]
            self.tree.update({rest[0] + each[len(path) :]: self.tree.pop(each) for each in moved})
        elif name == "remove":
            del self.tree[path]
        else:
            self.tree[path] = bytearray() if name == "create" else None

    def change(self, *operation, data=b""):
        """Write a record, and then change the tree."""
        self.log.append(operation, data)
        self.do(operation, data)
        return 0

    def names(self, path):
        """The names in a folder."""
        prefix = path.rstrip("/") + "/"
        below = (each.removeprefix(prefix) for each in self.tree if each.startswith(prefix) and each != prefix)
        return [name for name in below if "/" not in name]

    def getattr(self, path, handle=None):
        if path not in self.tree:
            raise FuseOSError(errno.ENOENT)
        content = self.tree[path]
        if content is not None:
            return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": len(content)}
        folders = [name for name in self.names(path) if self.tree[f"{path.rstrip('/')}/{name}"] is None]
        return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2 + len(folders)}

    def readdir(self, path, handle):
        return [".", "..", *self.names(path)]

    def read(self, path, size, offset, handle):
        return bytes(self.tree[path][offset : offset + size])

    def create(self, path, mode, info=None):
        return self.change("create", path)

    def mkdir(self, path, mode):
        return self.change("mkdir", path)

    def write(self, path, data, offset, handle):
        self.change("write", path, offset, data=data)
        return len(data)

    def truncate(self, path, length, handle=None):
        return self.change("truncate", path, length)

    def rename(self, old, new):
        if self.tree.get(new, b"") is None and self.names(new):
            raise FuseOSError(errno.ENOTEMPTY)
        return self.change("rename", old, new)

    def unlink(self, path):
        return self.change("remove", path)

    def rmdir(self, path):
        if self.names(path):
            raise FuseOSError(errno.ENOTEMPTY)
        return self.change("remove", path)

    def utimens(self, path, times=None):
        return 0  # it keeps no times

    def statfs(self, path):
        free = (self.log.size - self.log.end) // BLOCK
        return {"f_bsize": BLOCK, "f_blocks": self.log.size // BLOCK, "f_bfree": free, "f_bavail": free}

    def fsync(self, path, datasync, handle):
        return 0  # the record was written before the operation returned

    fsyncdir = fsync


def main(command, device, folder=None, _=None, options=""):
    if command == "mkfs":
        with open(device, "r+b") as file:
            file.write(SUPERBLOCK.pack(MAGIC, os.path.getsize(device), 0))
    else:
        chosen = dict.fromkeys(("big_writes", *options.split(",")), True)
        FUSE(Logfs(Log(device)), folder, foreground=True, nothreads=True, **chosen)


if __name__ == "__main__":
    main(*sys.argv[1:])
