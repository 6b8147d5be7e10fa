"""Which modules of a kernel are needed, in the order of loading. This is read from the lists that depmod makes.

modprobe would know this too, but it expects the folder to be `lib/modules/VERSION`. Some kernels' folders are not.
"""

import lzma
import shutil
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from postcrash.harness.errors import InfrastructureError

_GZIP = 31
"""`wbits` of zlib for the format of gzip."""

PROGRAM_MODULES = ("overlay", "tun", "loop")
"""What programs that run in the guest may use, xsync among them."""

ON_DEMAND = (
    *("quota_v1", "quota_v2", "symbol:utf8_data_table"),
    *("crypto-aes", "crypto-xts", "crypto-cts", "crypto-cbc", "crypto-ecb", "crypto-essiv", "crypto-ctr"),
    *("crypto-adiantum", "crypto-hctr2", "crypto-xctr", "crypto-polyval", "crypto-nhpoly1305", "crypto-xchacha12"),
    *("crypto-hmac", "crypto-sha256", "crypto-sha512", "crypto-hkdf"),
    *("crypto-lz4", "crypto-lz4hc", "crypto-zstd", "crypto-lzo", "crypto-lzo-rle", "crypto-deflate"),
    *("crypto-crc32", "crypto-crc32c", "crypto-xxhash64", "crypto-blake2b-256"),
)
"""What the kernel asks for while it mounts a file system with some options, by the names that it uses (Linux,
fs/quota/dquot.c, fs/unicode/utf8-core.c, fs/crypto/keysetup.c, crypto/api.c)."""


class Modules:
    """The modules in `folder`, which is `lib/modules/VERSION` after depmod. Raises InfrastructureError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._dependencies: dict[str, list[str]] = {}
        self._softly: defaultdict[str, list[str]] = defaultdict(list)
        self._files: defaultdict[str, list[str]] = defaultdict(list)
        for line in self._lines("modules.dep"):
            file, _, others = line.partition(":")
            self._dependencies[file] = others.split()
            self._files[module_name(file)].append(file)
        for kind, name, *rest in map(str.split, self._lines("modules.softdep")):
            if kind == "softdep" and rest[:1] == ["pre:"]:
                before = [soft.replace("-", "_") for soft in rest[1:]]
                self._softly[name] += before[: before.index("post:")] if "post:" in before else before
        for file in ("modules.alias", "modules.symbols"):
            for kind, alias, name, *_ in map(str.split, self._lines(file, needed=file == "modules.alias")):
                if kind == "alias":
                    self._files[alias.replace("-", "_")] += self._files.get(name, [])

    def needed_by(self, *names: str) -> list[Path]:
        """Files of the modules `names` and of all that they need. Each file comes after the ones that it needs itself.

        A module that is built into the kernel, or that does not exist, has no file.
        """
        return self._closure(file for name in names for file in self._files.get(name.replace("-", "_"), []))

    def within(self, *folders: str) -> list[Path]:
        """Files of the modules in `folders` (`kernel/fs`), and of all that they need."""
        return self._closure(file for file in self._dependencies if file.startswith(tuple(f"{f}/" for f in folders)))

    def _closure(self, files: Iterable[str]) -> list[Path]:
        ordered: list[str] = []
        seen: set[str] = set()
        for file in files:
            self._add(file, ordered, seen)
        return [self._folder / file for file in ordered]

    def _add(self, file: str, ordered: list[str], seen: set[str]) -> None:
        if file in seen:
            return
        seen.add(file)
        # depmod lists last the module that must be loaded first.
        soft = [before for name in self._softly[module_name(file)] for before in self._files.get(name, [])]
        for before in [*reversed(self._dependencies[file]), *soft]:
            self._add(before, ordered, seen)
        ordered.append(file)

    def _lines(self, name: str, *, needed: bool = True) -> list[str]:
        if not needed and not (self._folder / name).is_file():
            return []
        try:
            lines = (self._folder / name).read_text().splitlines()
        except OSError as error:
            raise InfrastructureError(f"{self._folder / name}: {error.strerror}: was depmod run there?") from error
        return [line for line in lines if line.strip() and not line.startswith("#")]


@lru_cache(maxsize=64)
def module_is_there(folder: Path, name: str) -> bool:
    """Whether a kernel with the modules in `folder` has the module `name`, built in or not."""
    loadable, built_in = folder / "modules.dep", folder / "modules.builtin"
    try:
        lists = [file.read_text() for file in (loadable, built_in) if file == loadable or file.is_file()]
    except OSError as error:
        raise InfrastructureError(f"{error.filename}: {error.strerror}: was depmod run there?") from error
    return any(module_name(line.partition(":")[0]) == name for lines in lists for line in lines.splitlines())


def is_built_in(folder: Path, name: str) -> bool:
    """Whether a kernel with the modules in `folder` has the module `name` built in."""
    built_in = folder / "modules.builtin"
    try:
        lines = built_in.read_text().splitlines() if built_in.is_file() else []
    except OSError as error:
        raise InfrastructureError(f"{built_in}: {error.strerror}") from error
    return any(module_name(line) == name for line in lines)


def module_name(file: str) -> str:
    """`crc32c_intel` for `kernel/arch/x86/crypto/crc32c-intel.ko.xz`."""
    return Path(file).name.partition(".ko")[0].replace("-", "_")


def uncompressed(file: Path) -> bytes:
    """A module as the kernel takes it. Raises InfrastructureError."""
    try:
        match file.suffix:
            case ".xz":
                return lzma.decompress(file.read_bytes())
            case ".gz":
                return zlib.decompress(file.read_bytes(), _GZIP)
            case ".zst":
                return _unzstd(file)
            case _:
                return file.read_bytes()
    except (OSError, lzma.LZMAError, zlib.error, subprocess.SubprocessError) as error:
        raise InfrastructureError(f"module {file} cannot be read: {error}") from error


def _unzstd(file: Path) -> bytes:
    zstd = shutil.which("zstd")
    if zstd is None:
        raise InfrastructureError(f"module {file} is compressed with zstd: run  apt-get install zstd")
    return subprocess.run([zstd, "-dcq", file], capture_output=True, check=True).stdout
