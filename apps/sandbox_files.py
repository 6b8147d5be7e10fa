"""Files that bubblewrap makes in a sandbox. It reads their contents from descriptors that it inherits.

It makes a folder, too, if that is small and plain, because to start `tar` takes longer than to make a few files. While
bubblewrap puts the sandbox together, a link may lead out of it. So it makes folders and files first, each of them once
and below a folder that it has made itself, and symbolic links after these.
"""

import io
import os
import tarfile
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import BinaryIO

from postcrash.apps.folder import Folder
from postcrash.apps.launcher import DESCRIPTORS_MAX, EXTRA

FILES_MAX = DESCRIPTORS_MAX - 16
"""A folder with more files is left to `tar`: each file takes a descriptor, and a check has others."""
_NAMES_BYTES_MAX = 64 << 10
"""So is one with longer names, because all of them have to fit into one request to the launcher."""
_ENTRIES_MAX = 4 * FILES_MAX
_SPECIAL = 0o7000
"""Bits of a mode that `mkdir` does not set."""


class SandboxFiles(ExitStack):
    """Files for one sandbox: `words` are arguments of bubblewrap, which finds `files` from the descriptor `EXTRA` on.

    At the end of the `with` statement the files are closed here. A launcher to which they were sent keeps its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.files: list[int] = []

    def add(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """A file at an absolute path in the sandbox."""
        self.words += ("--perms", f"{mode:o}", "--file", self._numbered(content), path)

    def add_filter(self, program: bytes) -> None:
        """A program for seccomp under which everything in the sandbox runs."""
        self.words += ("--seccomp", self._numbered(program))

    def add_folder(self, folder: Folder, place: str) -> bool:
        """What is in `folder`, below `place` in the sandbox. False if `tar` has to make it; nothing is added then."""
        try:
            with tarfile.open(fileobj=io.BytesIO(folder.archive), mode="r:", encoding="utf-8") as archive:
                members = archive.getmembers()
                if not _is_plain(members) or sum(member.size for member in members) > len(folder.archive):
                    return False
                for member in sorted(members, key=tarfile.TarInfo.issym):
                    self._add_member(archive, member, f"{place}/{PurePosixPath(member.name)}")
        except tarfile.TarError:  # `tar` says what is wrong
            return False
        return True

    def _numbered(self, content: bytes) -> str:
        """The number of the descriptor by which bubblewrap reads `content`."""
        file = self.enter_context(in_memory())
        file.write(content)
        file.seek(0)
        self.files.append(file.fileno())
        return str(EXTRA + len(self.files) - 1)

    def _add_member(self, archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
        if member.issym():
            self.words += ("--symlink", member.linkname, path)
        elif member.isdir():
            self.words += ("--perms", f"{member.mode:o}", "--dir", path)
        else:
            content = archive.extractfile(member)
            assert content is not None, "it is a file"
            self.add(path, content.read(), member.mode)


def in_memory() -> BinaryIO:
    """A new file in memory: an audit checks thousands of folders of some MiB each."""
    return os.fdopen(os.memfd_create("postcrash"), "w+b")


def _is_plain(members: list[tarfile.TarInfo]) -> bool:
    """Whether these are few files, folders and symbolic links, each once and in a folder that stands before it."""
    if len(members) > _ENTRIES_MAX or sum(member.isreg() for member in members) > FILES_MAX:
        return False
    if sum(len(name.encode()) for member in members for name in (member.name, member.linkname)) > _NAMES_BYTES_MAX:
        return False
    names: set[PurePosixPath] = set()
    folders = {PurePosixPath()}
    for member in members:
        path = PurePosixPath(member.name)
        if path in names or path.parent not in folders or path.name in ("", ".."):
            return False
        if not (member.isreg() or member.isdir() or member.issym()) or member.mode & _SPECIAL:
            return False
        names.add(path)
        if member.isdir():
            folders.add(path)
    return True
