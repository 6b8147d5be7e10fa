"""Makes the set-up of a workload from what a folder holds before a program runs."""

import os
import stat
from pathlib import Path

from postcrash.model.argument import LENGTH_MAX, XATTR_NAMESPACE
from postcrash.recorders.strace.folder import NotMappedError, TreeNode
from postcrash.recorders.strace.state import CallSource, ImportState, ends_within

_SOURCE = CallSource(0, "")


def set_up(run: ImportState, folder: Path) -> None:
    """Add everything in `folder` to the set-up and to the tree of `run`.

    Whatever a workload cannot hold is reported with line 0. Raises `OSError`.
    """
    _directory(run, folder, run.folder.root, "", {})


def _directory(
    run: ImportState, folder: Path, directory: TreeNode, prefix: str, seen: dict[tuple[int, int], TreeNode]
) -> None:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{prefix}{entry.name}"
        try:
            node = _entry(run, entry, path, seen)
        except NotMappedError as error:
            run.leave_out(0, "before the program ran", f"{path!r}: {error}")
            continue
        run.folder.add(directory, entry.name, node)
        if node.type == "dir":
            _directory(run, Path(entry.path), node, f"{path}/", seen)


def _entry(run: ImportState, entry: os.DirEntry[str], path: str, seen: dict[tuple[int, int], TreeNode]) -> TreeNode:
    status = entry.stat(follow_symlinks=False)
    identity = (status.st_dev, status.st_ino)
    if identity in seen and not stat.S_ISDIR(status.st_mode):
        known = seen[identity]
        run.emit(_SOURCE, "link", run.folder.path_of(known) or "", path)
        return known
    if stat.S_ISDIR(status.st_mode):
        run.emit(_SOURCE, "mkdir", path)
        node = TreeNode("dir")
    elif stat.S_ISLNK(status.st_mode):
        node = TreeNode("symlink", target=os.readlink(entry.path))
        run.emit(_SOURCE, "symlink", node.target, path)
    elif stat.S_ISREG(status.st_mode):
        node = TreeNode("file", size=ends_within(status.st_size))
        run.emit(_SOURCE, "creat", path)
        for start in range(0, node.size, LENGTH_MAX):
            run.emit(_SOURCE, "append", path, min(node.size - start, LENGTH_MAX))
    else:
        raise NotMappedError("it is neither a file, a directory nor a symbolic link")
    seen[identity] = node
    if node.type != "symlink":
        _attributes(run, entry.path, path)
    return node


def _attributes(run: ImportState, file: str, path: str) -> None:
    for name in sorted(os.listxattr(file, follow_symlinks=False)):
        if name.startswith(XATTR_NAMESPACE):
            value = os.getxattr(file, name, follow_symlinks=False)
            try:
                run.emit(_SOURCE, "setxattr", path, name, value.decode("utf-8", "surrogateescape"))
            except NotMappedError as error:
                run.leave_out(0, "before the program ran", f"{path!r}: attribute {name!r}: {error}")
