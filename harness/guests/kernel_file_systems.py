"""Which file systems a kernel has, found out without booting it.

Each has the alias `fs-NAME`, by which mount(2) asks for its module. depmod lists those of modules in modules.alias, the
kernel's build those of what is built in, in modules.builtin.modinfo (Linux, Documentation/kbuild/kbuild.rst). Where
there is no folder of modules, the configuration tells.
"""

import re
from functools import lru_cache
from pathlib import Path

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.guests.kernel import Kernel
from postcrash.harness.guests.kernel_config import config_of, sets

_MODULE = re.compile(rb"^alias fs-(\S+) ", re.MULTILINE)
_BUILT_IN = re.compile(rb"(?:^|\0)\w+\.alias=fs-([^\0]+)")
_OPTIONS = {
    "ext2": ("EXT2_FS", "EXT4_USE_FOR_EXT2"),
    "ext3": ("EXT4_FS",),
    "fuseblk": ("FUSE_FS",),
}
"""Where it is not the file system's name in upper case with _FS. One of them is enough."""


def has_file_system(kernel: Kernel, fstype: str) -> bool:
    """Whether `kernel` can mount a `fstype`, as mount(8) calls it.

    True also where nothing is known of a kernel: then the mount tells. Raises InfrastructureError if depmod's lists
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
