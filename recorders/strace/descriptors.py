"""Handlers of calls that open, duplicate, close or map files, change the directory, or start threads."""

from collections.abc import Mapping as Table

from postcrash.model.quoting import shown_word
from postcrash.recorders.strace.arguments import descriptor, flags, number, path
from postcrash.recorders.strace.folder import PATH_CHARACTERS_MAX, NotMappedError, PathPlace, TreeNode
from postcrash.recorders.strace.names import full_name
from postcrash.recorders.strace.state import MAPPINGS_MAX, Context, Description, DescriptorSlot, Handler, Mapping

CLONES = frozenset({"clone", "clone3", "fork", "vfork"})
"""Calls that start a thread or a process and return its number."""

CLOSING = frozenset({"close", "close_range", "dup2", "dup3", "execve", "execveat", "munmap"})
"""Calls after which nothing may have a file open any more."""


def shared_by(arguments: str) -> frozenset[str]:
    """The flags of a call in `CLONES`, from its text."""
    _, found, rest = arguments.partition("flags=")
    return frozenset(rest[: rest.find(",")].split("|")) if found else frozenset()


def _open(context: Context) -> None:
    given = _open_flags(context)
    context.process.slots.pop(context.result, None)
    follow = "O_NOFOLLOW" not in given and not {"O_CREAT", "O_EXCL"} <= given
    (place,) = context.places(follow=follow)
    reads = not given & {"O_CREAT", "O_TRUNC", "O_WRONLY", "O_RDWR"}
    if place is None or (place.node is None and reads):
        return
    node = _opened(context, place, given)
    context.process.open(context.result, Description(node, given), close_on_exec="O_CLOEXEC" in given)


def _open_flags(context: Context) -> frozenset[str]:
    if context.call.name == "creat":
        return frozenset({"O_WRONLY", "O_CREAT", "O_TRUNC"})
    if context.call.name == "openat2":
        structure = context.argument(2).removeprefix("{flags=")
        return flags(structure.split(",")[0].removesuffix("}"))
    return context.path_flags


def _opened(context: Context, place: PathPlace, given: frozenset[str]) -> TreeNode:
    if "O_TMPFILE" in given:
        context.leave_out("a file without a name")
        return TreeNode("file")
    if place.node is None and "O_CREAT" in given:
        parent = place.new()
        context.emit("creat", full_name(context, place))
        return context.run.folder.add(parent, place.name, TreeNode("file"))
    node = place.existing()
    if "O_PATH" not in given:
        _require_openable(place, node, given)
    if "O_TRUNC" in given and node.type == "file":
        context.emit("truncate", context.path_of(node), 0)
        node.size = 0
    return node


def _require_openable(place: PathPlace, node: TreeNode, given: frozenset[str]) -> None:
    """Raise `NotMappedError` if the kernel opens no such thing: something that is not traced changed the name."""
    if {"O_CREAT", "O_EXCL"} <= given:
        place.new()
    if node.type == "symlink":
        raise NotMappedError(f"{shown_word(place.name)} is a symbolic link, as far as the trace tells")
    if node.type == "dir" and given & {"O_WRONLY", "O_RDWR", "O_CREAT"}:
        raise NotMappedError(f"{shown_word(place.name)} is a directory, as far as the trace tells")


def _duplicate(context: Context) -> None:
    names = flags(context.argument(2))
    context.process.open(context.result, context.known(0), close_on_exec="O_CLOEXEC" in names)


def _fcntl(context: Context) -> None:
    command = context.argument(1)
    opened = context.known(0)
    if command in ("F_DUPFD", "F_DUPFD_CLOEXEC"):
        context.process.open(context.result, opened, close_on_exec=command == "F_DUPFD_CLOEXEC")
    elif command == "F_SETFL" and opened is not None:
        changed = frozenset({"O_APPEND", "O_DIRECT"})
        opened.flags = (opened.flags - changed) | (flags(context.argument(2)) & changed)
    elif command == "F_SETFD":
        _close_on_exec(context, _number(context), "FD_CLOEXEC" in flags(context.argument(2)))


def _number(context: Context) -> int:
    return number(context.argument(0).split("<")[0])


def _close_on_exec(context: Context, number: int, value: bool) -> None:
    slot = context.process.slots.get(number)
    if slot is not None:
        context.process.slots[number] = DescriptorSlot(slot.description, value)


def close(context: Context) -> None:
    """Close a descriptor when the call is entered, because the number is free from then on."""
    context.process.slots.pop(_number(context), None)


def _close_range(context: Context) -> None:
    first, last = number(context.argument(0)), number(context.argument(1))
    given = flags(context.argument(2))
    if "CLOSE_RANGE_UNSHARE" in given:
        context.process.slots = dict(context.process.slots)
    for opened in [opened for opened in context.process.slots if first <= opened <= last]:
        if "CLOSE_RANGE_CLOEXEC" in given:
            _close_on_exec(context, opened, True)
        else:
            del context.process.slots[opened]


def _execve(context: Context) -> None:
    process = context.process
    process.slots = {number: slot for number, slot in process.slots.items() if not slot.close_on_exec}
    process.mappings = {}


def _chdir(context: Context) -> None:
    before, named = context.process.directory[0], path(context.argument(0))
    after = named if named.startswith("/") else f"{before}/{named}" if before else ""
    context.process.directory[0] = after if len(after) <= PATH_CHARACTERS_MAX else ""


def _fchdir(context: Context) -> None:
    named = descriptor(context.argument(0))
    context.process.directory[0] = named.path if named else ""


def _mmap(context: Context) -> None:
    kinds, access = flags(context.argument(3)), flags(context.argument(2))
    opened = context.description(4) if kinds & {"MAP_SHARED", "MAP_SHARED_VALIDATE"} else None
    if opened is None:
        return
    mappings = context.process.mappings
    if len(mappings) == MAPPINGS_MAX:
        raise NotMappedError(f"more than {MAPPINGS_MAX} shared mappings")
    length, offset = number(context.argument(1)), number(context.argument(5))
    mappings[context.result] = Mapping(opened, offset, context.result, length)
    if "PROT_WRITE" in access:
        context.leave_out("stores through a shared mapping, which strace does not see")


def _within(context: Context) -> list[Mapping]:
    """The known mappings in the range of memory that the first two arguments give."""
    start = number(context.argument(0))
    end = start + number(context.argument(1))
    known = context.process.mappings.values()
    return [mapping for mapping in known if start < mapping.address + mapping.length and mapping.address < end]


def _mprotect(context: Context) -> None:
    if "PROT_WRITE" in flags(context.argument(2)) and _within(context):
        context.leave_out("stores through a shared mapping, which strace does not see")


def _munmap(context: Context) -> None:
    start, length = number(context.argument(0)), number(context.argument(1))
    for mapping in _within(context):
        if start <= mapping.address and mapping.address + mapping.length <= start + length:
            del context.process.mappings[mapping.address]


def _mremap(context: Context) -> None:
    moved = context.process.mappings.pop(number(context.argument(0)), None)
    if moved is not None:
        length = number(context.argument(2))
        context.process.mappings[context.result] = Mapping(moved.description, moved.offset, context.result, length)


def _msync(context: Context) -> None:
    if "MS_SYNC" not in flags(context.argument(2)):
        return
    start = number(context.argument(0))
    end = start + number(context.argument(1))
    for mapping in _within(context):
        node = mapping.description.node
        whole = mapping.offset == 0 and start <= mapping.address and mapping.address + node.size <= end
        if not whole:
            context.leave_out("msync of a part of a file; workloads sync a whole one")
        else:
            context.emit("msync", context.path_of(node))


HANDLERS: Table[str, Handler] = {
    **dict.fromkeys(("open", "openat", "openat2", "creat"), _open),
    **dict.fromkeys(("dup", "dup2", "dup3"), _duplicate),
    "fcntl": _fcntl,
    "close_range": _close_range,
    **dict.fromkeys(("execve", "execveat"), _execve),
    "chdir": _chdir,
    "fchdir": _fchdir,
    "mmap": _mmap,
    "mprotect": _mprotect,
    "munmap": _munmap,
    "mremap": _mremap,
    "msync": _msync,
}
"""The handlers, by the name of the call. `close` is handled when it is entered."""
