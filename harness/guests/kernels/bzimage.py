"""The kernel that is packed in a bzImage. QEMU starts it at once, by the protocol PVH (docs.xen.org, misc/pvh.html).

Without KVM, half of a boot would go into unpacking it in the guest.
"""

import bz2
import hashlib
import lzma
import os
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.guests.kernels.copies import remove_unused
from postcrash.harness.guests.kernels.elf_notes import notes

KERNEL_BYTES_MAX = 256 << 20
"""A larger kernel is left to the guest."""
_HEADER_BYTES = 0x250
_SECTOR_BYTES = 512
# The boot protocol, Documentation/arch/x86/boot.rst: how many sectors of set-up follow the first one, the protocol's
# version, and where behind them the packed kernel is.
_SETUP_SECTORS_AT, _PROTOCOL_AT, _PAYLOAD_AT = 0x1F1, 0x206, 0x248
_PROTOCOL_WITH_PAYLOAD = 0x208
_PVH_ENTRY = (b"Xen\0", 18)
"""The note by which a kernel says where a start by PVH begins."""


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


_UNPACKERS: dict[bytes, Callable[[], _Unpacker]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"\xfd7zXZ\0": lzma.LZMADecompressor,
    b"BZh": bz2.BZ2Decompressor,
}
"""By how packed data begins. The standard library of Python 3.11 has no others that kernels are packed with."""


def unpacked(image: Path, cache: Path) -> Path:
    """A file in `cache` that QEMU boots in place of the bzImage `image`.

    It is `image` itself if that is packed in a way that is not known here, or cannot be started by PVH. Raises
    InfrastructureError if a file cannot be read or written. Files that are not used are removed like copies of kernels.
    """
    folder = cache / "unpacked"
    try:
        kernel = folder / hashlib.sha256(f"1 {content_digest(image)}".encode()).hexdigest()[:16]
        if kernel.is_file():
            os.utime(kernel)
            return kernel
        elf = _unpack(image.read_bytes())
        if elf is None or _PVH_ENTRY not in (note[:2] for note in notes(elf)):
            return image
        folder.mkdir(parents=True, exist_ok=True)
        remove_unused(folder)
        with tempfile.NamedTemporaryFile(prefix=".kernel-", dir=folder, delete=False) as made:
            made.write(elf)
        Path(made.name).rename(kernel)
    except OSError as error:
        raise InfrastructureError(f"{image} cannot be unpacked into {folder}: {error.strerror or error}") from error
    return kernel


def _unpack(image: bytes) -> bytes | None:
    """The kernel in a bzImage, as an ELF file. None for what is not understood."""
    if len(image) < _HEADER_BYTES:
        return None
    (protocol,) = struct.unpack_from("<H", image, _PROTOCOL_AT)
    if protocol < _PROTOCOL_WITH_PAYLOAD:
        return None
    offset, length = struct.unpack_from("<II", image, _PAYLOAD_AT)
    start = (1 + (image[_SETUP_SECTORS_AT] or 4)) * _SECTOR_BYTES + offset
    payload = image[start : start + length]
    for magic, new_unpacker in _UNPACKERS.items():
        if payload.startswith(magic):
            unpacker = new_unpacker()
            try:
                kernel = unpacker.decompress(payload, KERNEL_BYTES_MAX)
            except (zlib.error, lzma.LZMAError, OSError):
                return None
            return kernel if unpacker.eof else None
    return None
