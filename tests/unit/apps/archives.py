"""Folders for sandboxes, made by hand: as archives with members of any kind."""

import io
import tarfile

from postcrash.apps import Folder

Member = tuple[str, bytes, str]
"""A name, a type of tarfile, and what a link leads to or a file holds."""
DIR, FILE, SYMLINK, LINK, FIFO = tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE


def archive(members: list[Member], modes: tuple[int, ...] = (0o750, 0o500, 0o777, 0o0, 0o644, 0o600)) -> Folder:
    """A folder with these members, which have the modes by turns."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as target:
        for number, (name, kind, rest) in enumerate(members):
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, modes[number % len(modes)]
            if kind == FILE:
                info.size = len(rest)
            else:
                info.linkname = rest
            target.addfile(info, io.BytesIO(rest.encode()) if kind == FILE else None)
    return Folder(made.getvalue())
