"""Handlers of calls that change contents or make them durable."""

from collections.abc import Iterator, Mapping

from postcrash.model.argument import OFFSET_MAX, is_naturally_aligned
from postcrash.model.operation import FORMS, Route
from postcrash.model.quoting import shown_word
from postcrash.model.units import SECTOR_BYTES
from postcrash.recorders.strace.arguments import flags, number, string, vector
from postcrash.recorders.strace.folder import NotMappedError, TreeNode
from postcrash.recorders.strace.state import Context, Description, Handler, ends_within

_EVERYTHING = {"SYNC_FILE_RANGE_WAIT_BEFORE", "SYNC_FILE_RANGE_WRITE", "SYNC_FILE_RANGE_WAIT_AFTER"}
_FALLOCATE_MODES = {
    frozenset[str](): "none",
    frozenset({"FALLOC_FL_KEEP_SIZE"}): "keep-size",
    frozenset({"FALLOC_FL_ZERO_RANGE"}): "zero-range",
    frozenset({"FALLOC_FL_ZERO_RANGE", "FALLOC_FL_KEEP_SIZE"}): "zero-range-keep-size",
    frozenset({"FALLOC_FL_PUNCH_HOLE", "FALLOC_FL_KEEP_SIZE"}): "punch-hole",
}


def _put(context: Context, opened: Description, offset: int | None, payload: bytes | None) -> None:
    """Write as many bytes as the call returned, at the descriptor's position if `offset` is None."""
    node, length = opened.node, context.result
    if length == 0:
        return
    given = opened.flags | _flags_of_one_write(context)
    start = node.size if "O_APPEND" in given else opened.position if offset is None else offset
    if offset is None:
        opened.position = start + length
    path, end = context.path_of(node), ends_within(start + length)
    word = _word(given, start, length)
    place = (length,) if word == "append" else (start, length)
    context.emit(word, path, *place, payload=payload)
    node.size = max(node.size, end)
    for lost in _lost(given, word):
        context.leave_out(f"{lost}; the write is mapped")


def _word(given: frozenset[str], start: int, length: int) -> str:
    """The operation for a write with these flags of open."""
    if "O_DIRECT" in given and start % SECTOR_BYTES == 0 and length % SECTOR_BYTES == 0:
        if "O_ATOMIC" not in given or not is_naturally_aligned(start, length):
            return "dwrite"
        return "awrite-odsync" if given & {"O_SYNC", "O_DSYNC"} else "awrite"
    if "O_SYNC" in given:
        return "write-osync"
    return "append" if "O_APPEND" in given else "write"


def _lost(given: frozenset[str], word: str) -> Iterator[str]:
    """What the flags ask for besides what the operation does."""
    is_direct = FORMS[word].data is Route.DIRECT
    if "O_DIRECT" in given and not is_direct:
        yield "that it bypasses the page cache, as it is no multiple of 512 bytes"
    if word == "awrite-odsync":
        if "O_SYNC" in given:
            yield "what O_SYNC promises beyond O_DSYNC"
    elif "O_DSYNC" in given:
        yield "the promise of O_DSYNC"
    elif "O_SYNC" in given and is_direct:
        yield "the promise of O_SYNC, of a write with O_DIRECT"


def _flags_of_one_write(context: Context) -> frozenset[str]:
    """The flags of pwritev2, as flags of open. Older versions of strace print RWF_ATOMIC as a number."""
    given = flags(context.argument(4)) if context.call.name == "pwritev2" else ()
    return frozenset(name.partition(" ")[0].replace("RWF_", "O_").replace("0x40", "O_ATOMIC") for name in given)


def _whole(printed: tuple[bytes, bool], length: int) -> bytes | None:
    """What was written, if strace printed it."""
    content, _ = printed
    return content[:length] if len(content) >= length else None


def _write(context: Context) -> None:
    opened, name = context.description(0), context.call.name
    if opened is not None:
        content = (vector if "v" in name else string)(context.argument(1))
        offset = number(context.argument(3)) if name.startswith("p") else None
        _put(context, opened, None if offset == -1 else offset, _whole(content, context.result))


def _read(context: Context) -> None:
    if opened := context.known(0):
        opened.position += context.result


def _lseek(context: Context) -> None:
    if opened := context.known(0):
        opened.position = context.result


def _copy(source: int, source_offset: int, target: int, target_offset: int | None) -> Handler:
    """Copy bytes from one descriptor to another. An offset of NULL means the descriptor's position."""

    def handler(context: Context) -> None:
        read, opened = context.known(source), context.description(target)
        start = read.position if read else 0
        if opened is not None:
            given = None if target_offset is None else context.argument(target_offset)
            _put(context, opened, None if given in (None, "NULL") else number(given or ""), None)
            if context.call.name != "splice":
                context.leave_out("that the file system may share blocks instead of copying; it is mapped as a write")
        if read is not None and context.argument(source_offset) == "NULL":
            read.position = start + context.result

    return handler


def _resize(context: Context, node: TreeNode | None) -> None:
    if node is None:
        return
    size = ends_within(number(context.argument(1)))
    context.emit("truncate", context.path_of(node), size)
    node.size = size


def _truncate(context: Context) -> None:
    (place,) = context.places(follow=True)
    if place is not None and place.existing().type != "file":
        raise NotMappedError(f"{shown_word(place.name)} is no file, as far as the trace tells")
    _resize(context, place.existing() if place else None)


def _ftruncate(context: Context) -> None:
    opened = context.description(0)
    _resize(context, opened.node if opened else None)


def _fallocate(context: Context) -> None:
    opened = context.description(0)
    if opened is None:
        return
    mode = _FALLOCATE_MODES.get(flags(context.argument(1)))
    if mode is None:
        raise NotMappedError("calls with this mode are not mapped")
    offset, length = number(context.argument(2)), number(context.argument(3))
    end = ends_within(offset + length)
    context.emit("fallocate", context.path_of(opened.node), mode, offset, length)
    if mode in ("none", "zero-range"):
        opened.node.size = max(opened.node.size, end)
    if opened.flags & {"O_SYNC", "O_DSYNC"}:
        context.leave_out("the promise of O_SYNC, of fallocate; the call itself is mapped")


def _persist(context: Context) -> None:
    opened = context.description(0)
    if opened is not None:
        word = context.call.name
        context.emit(word, *([] if word == "syncfs" else [context.path_of(opened.node)]))


def _sync_file_range(context: Context) -> None:
    opened = context.description(0)
    if opened is None:
        return
    given = flags(context.argument(3))
    if "SYNC_FILE_RANGE_WRITE" not in given:
        raise NotMappedError("it waits for write-back without starting any")
    offset, length = number(context.argument(1)), number(context.argument(2))
    path = context.path_of(opened.node)
    if offset == 0 and (length == 0 or length >= min(opened.node.size, OFFSET_MAX)):
        context.emit("writeback", path)
    else:
        context.emit("writeback", path, offset, length or max(opened.node.size - offset, 0))
    if given != _EVERYTHING:
        context.leave_out("that it does not wait for all of the write-back; writeback does")


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("write", "writev", "pwrite64", "pwritev", "pwritev2"), _write),
    **dict.fromkeys(("read", "readv"), _read),
    "lseek": _lseek,
    **dict.fromkeys(("copy_file_range", "splice"), _copy(0, 1, 2, 3)),
    "sendfile": _copy(1, 2, 0, None),
    "truncate": _truncate,
    "ftruncate": _ftruncate,
    "fallocate": _fallocate,
    **dict.fromkeys(("fsync", "fdatasync", "syncfs"), _persist),
    "sync": lambda context: context.emit("sync"),
    "sync_file_range": _sync_file_range,
}
"""The handlers, by the name of the call."""
