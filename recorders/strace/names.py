"""Handlers of calls that change names and attributes."""

from collections.abc import Mapping

from postcrash.model.quoting import shown_word
from postcrash.model.tree import ROOT_PATH
from postcrash.recorders.strace.arguments import path, string
from postcrash.recorders.strace.folder import NotMappedError, PathPlace, TreeNode
from postcrash.recorders.strace.state import Context, Handler


def full_name(context: Context, place: PathPlace) -> str:
    """The path of a place relative to the folder. Raises `NotMappedError`."""
    if place.directory is None:
        return ROOT_PATH
    directory = context.path_of(place.directory)
    return place.name if directory == ROOT_PATH else f"{directory}/{place.name}"


def _mkdir(context: Context) -> None:
    (place,) = context.places()
    if place is not None:
        parent = place.new()
        context.emit("mkdir", full_name(context, place))
        context.run.folder.add(parent, place.name, TreeNode("dir"))


def _remove(context: Context) -> None:
    (place,) = context.places()
    if place is None:
        return
    node = place.existing()
    if context.call.name == "rmdir" or "AT_REMOVEDIR" in context.path_flags:
        if node.type != "dir" or node.children or place.directory is None:
            raise NotMappedError(f"{shown_word(place.name)} is no empty directory, as far as the trace tells")
        context.emit("rmdir", full_name(context, place))
    else:
        if node.type == "dir" or place.directory is None:
            raise NotMappedError(f"{shown_word(place.name)} is a directory, as far as the trace tells")
        context.hold(node)
        context.emit("unlink", full_name(context, place))
    context.run.folder.remove(place.directory, place.name)


def _link(context: Context) -> None:
    old, new = context.call_form.paths
    target = context.place(*new)
    if target is None:
        return
    if "AT_EMPTY_PATH" in context.path_flags or path(context.argument(old[1])).startswith("/proc/"):
        raise NotMappedError("a name for an open file; workloads link names")
    source = context.place(*old, follow="AT_SYMLINK_FOLLOW" in context.path_flags)
    if source is None:
        raise NotMappedError("the file that gets a second name is outside of the folder")
    node, parent = source.existing(), target.new()
    if node.type == "dir":
        raise NotMappedError(f"{shown_word(source.name)} is a directory, as far as the trace tells")
    context.emit("link", full_name(context, source), full_name(context, target))
    context.run.folder.add(parent, target.name, node)


def _symlink(context: Context) -> None:
    (place,) = context.places()
    if place is not None:
        parent, target = place.new(), path(context.argument(0))
        context.emit("symlink", target, full_name(context, place))
        context.run.folder.add(parent, place.name, TreeNode("symlink", target=target))


def _rename(context: Context) -> None:
    source, target = context.places()
    if source is None and target is None:
        return
    if source is None or target is None:
        raise NotMappedError("one of the names is outside of the folder")
    if context.path_flags - {"RENAME_NOREPLACE", "RENAME_EXCHANGE"}:
        raise NotMappedError("workloads have no such rename")
    (_exchange if "RENAME_EXCHANGE" in context.path_flags else _replace)(context, source, target)


def _replace(context: Context, source: PathPlace, target: PathPlace) -> None:
    folder = context.run.folder
    node, replaced = source.existing(), target.node
    if source.directory is None or target.directory is None or folder.is_below(target.directory, node):
        raise NotMappedError("a directory would get into itself, as far as the trace tells")
    if replaced is not None and (replaced.type == "dir") != (node.type == "dir"):
        raise NotMappedError(f"{shown_word(target.name)} is of another type, as far as the trace tells")
    if replaced is not None and replaced is not node and replaced.children:
        raise NotMappedError(f"{shown_word(target.name)} is no empty directory, as far as the trace tells")
    if replaced is not None and replaced is not node:
        context.hold(replaced)
    context.emit("rename", full_name(context, source), full_name(context, target))
    if replaced is node:
        return
    if replaced is not None:
        folder.remove(target.directory, target.name)
    folder.add(target.directory, target.name, folder.remove(source.directory, source.name))


def _exchange(context: Context, source: PathPlace, target: PathPlace) -> None:
    folder = context.run.folder
    first, second = source.existing(), target.existing()
    if source.directory is None or target.directory is None:
        raise NotMappedError("one of the names is the folder itself")
    if folder.is_below(target.directory, first) or folder.is_below(source.directory, second):
        raise NotMappedError("a directory would get into itself, as far as the trace tells")
    context.emit("exchange", full_name(context, source), full_name(context, target))
    if first is second:
        return
    folder.remove(source.directory, source.name)
    folder.remove(target.directory, target.name)
    folder.add(target.directory, target.name, first)
    folder.add(source.directory, source.name, second)


def _attribute(context: Context) -> None:
    if context.call_form.paths:
        (place,) = context.places(follow=not context.call.name.startswith("l"))
        node = place.existing() if place else None
    else:
        opened = context.description(0)
        node = opened.node if opened else None
    if node is None:
        return
    name = path(context.argument(1))
    if node.type == "symlink":
        raise NotMappedError("workloads have no attributes of symbolic links")
    if "remove" in context.call.name:
        context.emit("removexattr", context.path_of(node), name)
        return
    value, complete = string(context.argument(2))
    if not complete:
        raise NotMappedError("strace printed only the start of the value; run it with a larger -s")
    context.emit("setxattr", context.path_of(node), name, value.decode("utf-8", "surrogateescape"))


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("mkdir", "mkdirat"), _mkdir),
    **dict.fromkeys(("rmdir", "unlink", "unlinkat"), _remove),
    **dict.fromkeys(("link", "linkat"), _link),
    **dict.fromkeys(("symlink", "symlinkat"), _symlink),
    **dict.fromkeys(("rename", "renameat", "renameat2"), _rename),
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr"), _attribute),
    **dict.fromkeys(("removexattr", "lremovexattr", "fremovexattr"), _attribute),
}
"""The handlers, by the name of the call."""
