"""Options that a kernel needs to run as a guest, and the ones that its configuration lacks."""

import re
import zlib
from functools import lru_cache
from pathlib import Path

from postcrash.harness.errors import InfrastructureError

_GUEST = ("BLOCK", "DEVTMPFS", "PROC_FS", "PRINTK", "VIRTIO_BLK")
_BY_ENGINE = {
    "uml": ("HOSTFS", "VIRTIO_UML"),
    "qemu": ("BINFMT_ELF", "BLK_DEV_INITRD", "PCI", "SERIAL_8250_CONSOLE", "VIRTIO_PCI"),
}
# CONFIG_IKCONFIG puts the compressed configuration between these marks, into the kernel or into configs.ko.
_EMBEDDED = re.compile(rb"IKCFG_ST(\x1f\x8b.*?)IKCFG_ED", re.DOTALL)
_GZIP = 31


def missing_options(config: str, engine: str) -> list[str]:
    """Options that every guest of `engine` needs but `config` sets neither to y nor to m, such as `CONFIG_VIRTIO_BLK`.

    Options of file systems are not among them (see file_systems.py).
    """
    return [f"CONFIG_{option}" for option in (*_GUEST, *_BY_ENGINE[engine]) if not sets(config, option)]


def sets(config: str, option: str) -> bool:
    """Whether `config` sets `option` to y or m. `option` is given without `CONFIG_`."""
    return re.search(rf"^CONFIG_{option}=[ym]$", config, re.MULTILINE) is not None


def config_of(kernel: Path, modules: Path | None) -> str | None:
    """The configuration of a kernel, from the file `config` beside it or from the kernel itself. None if unknown."""
    kept = kernel.with_name("config")
    try:
        if kept.is_file():
            return kept.read_text(errors="replace")
        carriers = [kernel, *(modules.rglob("configs.ko") if modules else ())]
        return next((config for file in carriers if (config := embedded_config(file))), None)
    except OSError as error:
        raise InfrastructureError(f"the configuration of {kernel}: {error}") from error


@lru_cache(maxsize=16)
def known_config(kernel: Path, modules: Path | None) -> str | None:
    """`config_of`, which is read once in a process."""
    return config_of(kernel, modules)


def embedded_config(file: Path) -> str | None:
    """The configuration inside an uncompressed kernel, such as user-mode Linux, or inside the module configs.ko."""
    found = _EMBEDDED.search(file.read_bytes())
    return zlib.decompress(found[1], _GZIP).decode("ascii", "replace") if found else None
