"""What a recovery showed: the agent's report, checked.

The report comes from a guest that may be broken, so nothing in it is trusted. Unknown fields, wrong types, numbers out
of range and impossible trees are refused, and everything has a limit.
"""

import errno
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from postcrash.model.choices import UndecidedBytes
from postcrash.model.pattern import TAG_MAX
from postcrash.model.segments import BYTES, Segment, Segments, merged, write_of
from postcrash.model.tree import ROOT_PATH, Entry, EntryType, Tree, Unread, parent

ENTRIES_MAX = 100_000
SEGMENTS_MAX = 1_000_000
"""Of one file."""
COMPONENTS_MAX = 2**32 - 1
VERSIONS_MAX = 100_000
"""Of one choice."""
XATTRS_MAX = 10_000
"""Of one entry."""
PATH_CHARACTERS_MAX = 65_536
XATTR_VALUE_DIGITS_MAX = 2 * 65_536
"""XATTR_SIZE_MAX of Linux, include/uapi/linux/limits.h, in hexadecimal digits."""
KLOG_LINES_MAX = 100_000
OUTPUT_CHARACTERS_MAX = 16 * 1024 * 1024
UNLISTED_MAX = 10
ERRNO_MAX = 4095
"""MAX_ERRNO of Linux, include/linux/err.h."""
SIZE_MAX = 2**63 - 1

_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_HASH = re.compile(r"[0-9a-f]{16}")
_SOURCE = re.compile(r"zero|stale|other|write:(?:0|[1-9][0-9]{0,2})(?:[+-][1-9][0-9]{0,10})?|error:[1-9][0-9]{0,3}")
_TYPES = get_args(EntryType)
_WITH_TARGET = ("symlink", "char", "block")
_OBSERVATION_FIELDS = (
    "mount_errno",
    "helper",
    "tree",
    "bytes",
    "klog",
    "klog_whole",
    "repair",
    "fsck",
    "used",
    "unlisted",
    "aged",
)
_ENTRY_FIELDS = (
    *("path", "type", "mode", "nlink", "inode", "size"),
    *("segments", "hash", "xattrs", "target", "error"),
)


class ObservationError(ValueError):
    """A report breaks the format. The text names the place, such as `tree[3].segments[0]`, and the offending value."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        value = repr(found)
        super().__init__(f"{place}: expected {expected}, found {value if len(value) <= 80 else value[:80] + '…'}")
        self.place = place


def mount_error(observation: "Observation") -> str:
    """For messages: why the mount failed. Empty if it did not."""
    if not observation.mount_errno:
        return ""
    return ": ".join(filter(None, (f"mount failed with {error_name(observation.mount_errno)}", observation.helper)))


def error_name(number: int) -> str:
    """An errno in words, for messages: `EIO (Input/output error)`."""
    return f"{errno.errorcode.get(number, f'errno {number}')} ({os.strerror(number)})"


def shown_unread(unread: Unread) -> str:
    """For messages: `a cannot be read: EIO (Input/output error)`."""
    place = f" from byte {unread.start} to {unread.end}" if unread.end else ""
    return f"{unread.path} cannot be read{place}: {error_name(unread.errno)}"


@dataclass(frozen=True, slots=True)
class FsckResult:
    """How an fsck program ended: its exit status (128 + signal if it was killed) and what it printed."""

    status: int
    output: str


@dataclass(frozen=True, slots=True)
class Usage:
    """How use after recovery went: the first step that failed (`rmdir A`) with its errno, or "" and 0 if none did."""

    failed: str
    errno: int


@dataclass(frozen=True, slots=True)
class Observation:
    """What one recovery showed.

    mount_errno  0 if the mount succeeded
    helper       how the program ended that should have mounted it, and what it said; "" if it did, or there is none
    tree         what was found; empty if the mount failed or the tree was not requested
    klog         the kernel's lines of level warning and worse
    fsck         None if the checker was not requested, or if the mount failed
    used         None if use after recovery was not requested, or if the mount failed
    klog_whole   whether `klog` certainly has all lines; False too if the guest did not say
    repair       how the program ended that ran before the mount; None if there was none
    unlisted     names in the root directory that are there as mkfs or we made them, and not in the tree
    aged         what is wrong with the files that fill an aged base image, which are not in the tree; "" if nothing is
    """

    mount_errno: int
    tree: Tree
    klog: tuple[str, ...] = ()
    fsck: FsckResult | None = None
    used: Usage | None = None
    klog_whole: bool = False
    repair: FsckResult | None = None
    unlisted: tuple[str, ...] = ()
    aged: str = ""
    helper: str = ""

    @staticmethod
    def from_wire(obj: object) -> "Observation":
        """Check a report (decoded JSON) and take it over; docs/formats.md, "Observation, as reported by the agent".

        Adjacent segments of one source are merged. Entries with `error` need only `path` and `type`. Raises
        `ObservationError`.
        """
        wire = _object(obj, "observation", _OBSERVATION_FIELDS)
        mount_errno = _integer(wire.get("mount_errno"), "mount_errno", 0, ERRNO_MAX)
        walked = wire.get("tree") is not None
        tree = _tree(_array(wire["tree"], "tree", ENTRIES_MAX) if walked else [])
        if walked and mount_errno == 0 and ROOT_PATH not in tree:
            raise ObservationError("tree", "the root directory, as the mount succeeded", sorted(tree)[:3])
        if mount_errno != 0 and tree:
            raise ObservationError("tree", "no entries, as the mount failed", sorted(tree)[:3])
        lines = _array(wire.get("klog"), "klog", KLOG_LINES_MAX)
        klog = tuple(_text(line, f"klog[{i}]", OUTPUT_CHARACTERS_MAX) for i, line in enumerate(lines))
        whole = _boolean(wire.get("klog_whole", False), "klog_whole")
        fsck, repair = (_ended(wire.get(name), name) for name in ("fsck", "repair"))
        names = _array(wire.get("unlisted", []), "unlisted", UNLISTED_MAX)
        return Observation(
            mount_errno,
            tree,
            klog=klog,
            fsck=fsck,
            used=_usage(wire.get("used")),
            klog_whole=whole,
            repair=repair,
            unlisted=tuple(_text(name, f"unlisted[{i}]", PATH_CHARACTERS_MAX) for i, name in enumerate(names)),
            aged=_text(wire.get("aged", ""), "aged", PATH_CHARACTERS_MAX),
            helper=_text(wire.get("helper", ""), "helper", OUTPUT_CHARACTERS_MAX),
        )


def _ended(obj: object, place: str) -> FsckResult | None:
    if obj is None:
        return None
    wire = _object(obj, place, ("status", "output"))
    status = _integer(wire.get("status"), f"{place}.status", 0, 255)
    return FsckResult(status, _text(wire.get("output"), f"{place}.output", OUTPUT_CHARACTERS_MAX))


def _usage(obj: object) -> Usage | None:
    if obj is None:
        return None
    wire = _object(obj, "used", ("failed", "errno"))
    failed = _text(wire.get("failed"), "used.failed", PATH_CHARACTERS_MAX)
    return Usage(failed, _integer(wire.get("errno"), "used.errno", 0, ERRNO_MAX))


def _tree(wires: list[object]) -> Tree:
    entries: dict[str, Entry] = {}
    for i, wire in enumerate(wires):
        entry = _entry(wire, f"tree[{i}]")
        if entry.path in entries:
            raise ObservationError(f"tree[{i}].path", "a path that is not listed yet", entry.path)
        entries[entry.path] = entry
    for i, path in enumerate(entries):
        folder = entries.get(parent(path))
        if folder is None or folder.type != "dir":
            raise ObservationError(f"tree[{i}].path", "a path below a listed directory", path)
    return Tree(entries.values())


def _entry(obj: object, place: str) -> Entry:
    wire = _object(obj, place, _ENTRY_FIELDS)
    path = _path(wire.get("path"), f"{place}.path")
    kind = _entry_type(wire.get("type"), f"{place}.type")
    error = _integer(wire.get("error", 0), f"{place}.error", 0, ERRNO_MAX)
    if error:
        wire = {"mode": 0, "inode": 0, "size": 0, "segments": [], "target": "", **wire}
    is_file = kind == "file"
    size = _integer(wire.get("size"), f"{place}.size", 0, SIZE_MAX) if is_file else 0
    segments, choices = _contents(wire.get("segments"), f"{place}.segments") if is_file else ((), ())
    if not error:
        _check_whole((*segments, *choices), 0, size, f"{place}.segments")
    return Entry(
        path=path,
        type=kind,
        mode=_integer(wire.get("mode"), f"{place}.mode", 0, 0o7777),
        nlink=_nlink(wire.get("nlink"), f"{place}.nlink", required=not error),
        inode=_integer(wire.get("inode"), f"{place}.inode", 0, SIZE_MAX),
        size=size,
        segments=segments,
        choices=choices,
        xattrs=_xattrs(wire.get("xattrs", {}), f"{place}.xattrs"),
        target=_text(wire.get("target"), f"{place}.target", PATH_CHARACTERS_MAX) if kind in _WITH_TARGET else "",
        hash=_matching(wire["hash"], f"{place}.hash", _HASH, 16) if is_file and "hash" in wire else "",
        error=error,
    )


def _path(obj: object, place: str) -> str:
    path = _text(obj, place, PATH_CHARACTERS_MAX)
    if path != ROOT_PATH and any(part in ("", ".", "..") for part in path.split("/")):
        raise ObservationError(place, "a relative path without empty, `.` or `..` components", path)
    return path


def _entry_type(obj: object, place: str) -> EntryType:
    if obj not in _TYPES:
        raise ObservationError(place, f"one of {', '.join(_TYPES)}", obj)
    return cast(EntryType, obj)


def _nlink(obj: object, place: str, required: bool) -> int | None:
    return _integer(obj, place, 0, SIZE_MAX) if required or obj is not None else None


def _xattrs(obj: object, place: str) -> tuple[tuple[str, str], ...]:
    wire = _object(obj, place)
    if len(wire) > XATTRS_MAX:
        raise ObservationError(place, f"at most {XATTRS_MAX} attributes", len(wire))
    pairs = [
        (_text(name, place, 255), _matching(value, f"{place}[{name!r}]", _HEX, XATTR_VALUE_DIGITS_MAX))
        for name, value in wire.items()
    ]
    return tuple(sorted(pairs))


def _contents(obj: object, place: str) -> tuple[Segments, tuple[UndecidedBytes, ...]]:
    """The settled segments of a file, and its choices."""
    segments: list[Segment] = []
    choices: list[UndecidedBytes] = []
    least = 0
    for i, item in enumerate(_array(obj, place, SEGMENTS_MAX)):
        if isinstance(item, dict):
            choices.append(_choice(item, f"{place}[{i}]", least))
            least = choices[-1].end
        else:
            segments.append(_segment(item, f"{place}[{i}]", least))
            least = segments[-1].end
    return merged(segments), tuple(choices)


def _segment(obj: object, place: str, least: int) -> Segment:
    triple = _array(obj, place, 3)
    if len(triple) != 3:
        raise ObservationError(place, "start, end and source", triple)
    start = _integer(triple[0], f"{place}[0]", least, SIZE_MAX)
    end = _integer(triple[1], f"{place}[1]", start + 1, SIZE_MAX)
    return Segment(start, end, _source(triple[2], f"{place}[2]", end - start))


def _choice(obj: dict[object, object], place: str, least: int) -> UndecidedBytes:
    wire = _object(obj, place, ("start", "end", "component", "versions"))
    start = _integer(wire.get("start"), f"{place}.start", least, SIZE_MAX)
    end = _integer(wire.get("end"), f"{place}.end", start + 1, SIZE_MAX)
    component = _integer(wire.get("component"), f"{place}.component", 0, COMPONENTS_MAX)
    versions = []
    for i, version in enumerate(_array(wire.get("versions"), f"{place}.versions", VERSIONS_MAX)):
        where = f"{place}.versions[{i}]"
        shifted = [
            _segment(item, f"{where}[{k}]", start) for k, item in enumerate(_array(version, where, SEGMENTS_MAX))
        ]
        _check_whole(shifted, start, end, where)
        versions.append(merged(shifted))
    if not versions:
        raise ObservationError(f"{place}.versions", "at least one version", versions)
    return UndecidedBytes(start, end, component, tuple(versions))


def _source(obj: object, place: str, length: int) -> str:
    if isinstance(obj, str) and obj.startswith(BYTES):
        if len(obj) != len(BYTES) + 2 * length or not _HEX.fullmatch(obj, len(BYTES)):
            raise ObservationError(place, f"two hexadecimal digits for each of {length} bytes", obj)
        return obj
    source = _matching(obj, place, _SOURCE, 24)
    write = write_of(source)
    if write is not None and write[0] > TAG_MAX:
        raise ObservationError(place, f"a tag of at most {TAG_MAX}", source)
    return source


def _check_whole(parts: Sequence[Segment | UndecidedBytes], start: int, end: int, place: str) -> None:
    """Refuse parts that do not cover the file from `start` to `end` without gaps."""
    covered = start
    for part in sorted(parts, key=lambda part: part.start):
        if part.start != covered:
            break
        covered = part.end
    if covered != end or any(part.end > end for part in parts):
        shown = [(part.start, part.end) for part in parts]
        raise ObservationError(place, f"segments that cover {start} to {end} without gaps", shown)


def _object(obj: object, place: str, fields: Collection[str] | None = None) -> dict[str, object]:
    if not isinstance(obj, dict):
        raise ObservationError(place, "an object", obj)
    for key in obj:
        if not isinstance(key, str) or (fields is not None and key not in fields):
            raise ObservationError(place, "known fields only", key)
    return obj


def _array(obj: object, place: str, length_max: int) -> list[object]:
    if not isinstance(obj, list):
        raise ObservationError(place, "an array", obj)
    if len(obj) > length_max:
        raise ObservationError(place, f"at most {length_max} items", len(obj))
    return obj


def _boolean(obj: object, place: str) -> bool:
    if type(obj) is not bool:
        raise ObservationError(place, "true or false", obj)
    return obj


def _integer(obj: object, place: str, least: int, most: int) -> int:
    if type(obj) is not int or not least <= obj <= most:
        raise ObservationError(place, f"an integer from {least} to {most}", obj)
    return obj


def _text(obj: object, place: str, characters_max: int) -> str:
    if not isinstance(obj, str):
        raise ObservationError(place, "text", obj)
    if len(obj) > characters_max:
        raise ObservationError(place, f"at most {characters_max} characters", obj)
    return obj


def _matching(obj: object, place: str, form: re.Pattern[str], characters_max: int) -> str:
    text = _text(obj, place, characters_max)
    if not form.fullmatch(text):
        raise ObservationError(place, f"text of the form {form.pattern}", text)
    return text
