"""Initramfs images: a folder as a cpio archive in the format "newc", which the kernel unpacks as its first root.

The kernel's Documentation/driver-api/early-userspace/buffer-format.rst describes the format. We write the archive
ourselves because it holds a device. For the program cpio, root would have to make this device in a folder.
"""

import stat
from pathlib import Path

_CONSOLE = (5, 1)
_ALIGNMENT = 4


def initramfs(root: Path) -> bytes:
    """The folders and files below `root` as an archive, and /dev/console."""
    entries = [_entry(path.relative_to(root), path) for path in sorted(root.rglob("*"))]
    console = _record("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)
    return b"".join([*entries, console, _record("TRAILER!!!", 0)])


def _entry(name: Path, path: Path) -> bytes:
    mode = path.stat().st_mode
    return _record(str(name), mode, path.read_bytes() if stat.S_ISREG(mode) else b"")


def _record(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """inode, mode, uid, gid, links, time, size, device, special device, name's size, checksum; then name and data.

    The inode is 0: the kernel looks at inode numbers only for files with several links.
    """
    words = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name.encode()) + 1, 0)
    head = "070701" + "".join(f"{word:08X}" for word in words) + name + "\0"
    return _padded(head.encode()) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
