"""Which file systems a kernel has, found out without booting it.

Each file system has the alias `fs-NAME`, by which mount(2) asks for its module. depmod lists the aliases of modules in
modules.alias. The kernel's build lists the aliases of built-in file systems in modules.builtin.modinfo (Linux,
Documentation/kbuild/kbuild.rst). If there is no folder of modules, the configuration tells.
"""

import re
from functools import lru_cache
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.kernels.config import config_of, sets
from postcrash.harness.guests.kernels.kernel import Kernel

_MODULE = re.compile(rb"^alias fs-(\S+) ", re.MULTILINE)
_BUILT_IN = re.compile(rb"(?:^|\0)\w+\.alias=fs-([^\0]+)")
_OPTIONS = {
    "ext2": ("EXT2_FS", "EXT4_USE_FOR_EXT2"),
    "ext3": ("EXT4_FS",),
    "fuseblk": ("FUSE_FS",),
}
"""Options that are not the file system's name in upper case with _FS. One of them is enough."""


def has_file_system(kernel: Kernel, fstype: str) -> bool:
    """Whether `kernel` can mount the file system that mount(8) calls `fstype`.

    True also if nothing is known of the kernel: then the mount shows it. Raises InfrastructureError if depmod's lists
    cannot be read.
    """
    if kernel.modules is not None:
        return fstype in _file_systems(kernel.modules)
    config = config_of(kernel.path, None)
    options = _OPTIONS.get(fstype, (f"{fstype.upper()}_FS",))
    return config is None or any(sets(config, option) for option in options)


@lru_cache(maxsize=64)
def _file_systems(modules: Path) -> frozenset[str]:
    try:
        built_in = modules / "modules.builtin.modinfo"
        found = _MODULE.findall((modules / "modules.alias").read_bytes())
        found += _BUILT_IN.findall(built_in.read_bytes()) if built_in.is_file() else []
    except OSError as error:
        raise InfrastructureError(f"{error.filename}: {error.strerror}: was depmod run there?") from error
    return frozenset(name.decode("ascii", "replace") for name in found)
