"""What a kernel's configuration must have to run as a guest, and what it lacks."""

import re
import zlib
from pathlib import Path

from postcrash.targets import TARGETS

_GUEST = ("BLOCK", "DEVTMPFS", "PROC_FS", "PRINTK", "VIRTIO_BLK")
_BY_ENGINE = {
    "uml": ("HOSTFS", "VIRTIO_UML"),
    "qemu": ("BINFMT_ELF", "BLK_DEV_INITRD", "PCI", "SERIAL_8250_CONSOLE", "VIRTIO_PCI"),
}
_BY_FSTYPE = {
    "ext2": ("EXT4_FS", "EXT4_USE_FOR_EXT2"),
    "ext3": ("EXT4_FS",),
    "ext4": ("EXT4_FS",),
    "btrfs": ("BTRFS_FS",),
    "xfs": ("XFS_FS",),
}
_SET = re.compile(r"^CONFIG_(\w+)=[ym]$", re.MULTILINE)
# CONFIG_IKCONFIG puts the configuration, compressed, between these marks: into the kernel or into configs.ko.
_EMBEDDED = re.compile(rb"IKCFG_ST(\x1f\x8b.*?)IKCFG_ED", re.DOTALL)
_GZIP = 31


def missing_options(config: str, engine: str) -> list[str]:
    """Options that `config` sets neither to y nor to m: those of every guest of `engine`, then those of file systems.

    In the form `CONFIG_VIRTIO_BLK`, and `CONFIG_XFS_FS (xfs)` for what only a file system needs.
    """
    there = set(_SET.findall(config))
    general = [f"CONFIG_{option}" for option in (*_GUEST, *_BY_ENGINE[engine]) if option not in there]
    fstypes = sorted({target.fstype for target in TARGETS})
    special = [
        f"CONFIG_{option} ({fstype})" for fstype in fstypes for option in _BY_FSTYPE[fstype] if option not in there
    ]
    return general + special


def embedded_config(file: Path) -> str | None:
    """The configuration that a kernel, uncompressed as user-mode Linux is, or the module configs.ko carries."""
    found = _EMBEDDED.search(file.read_bytes())
    return zlib.decompress(found[1], _GZIP).decode("ascii", "replace") if found else None
