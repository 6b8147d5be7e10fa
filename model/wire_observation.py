"""The agent's report of a recovery, as decoded JSON (docs/formats.md, "Observation, as reported by the agent").

Where the crash disk knows what a file holds, the file's segments can have choices: the contents are looked up, and
depend on the version of a component that the recovery left open. `Observation.from_wire` takes a report over for
judges. This module has the other queries and changes of reports.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from postcrash.model.choices import UndecidedBytes
from postcrash.model.observation import Observation
from postcrash.model.segments import BYTES, Segment
from postcrash.model.tree import Entry

WireObservation = Any
"""A report; None if the guest was lost."""
_Segments = list[Any]
"""Each is [start, end, source], or a choice: {"start", "end", "component", "versions"}."""


def report_of_tree(observation: Observation) -> WireObservation:
    """A report from which `Observation.from_wire` makes the mount and the tree of `observation` again.

    It has nothing else that a recovery shows, such as the kernel's log.
    """
    tree = [_entry(entry) for entry in observation.tree.values()]
    report = {"mount_errno": observation.mount_errno, "tree": tree, "klog": [], "fsck": None}
    return {**report, "aged": observation.aged} if observation.aged else report


def _entry(entry: Entry) -> dict[str, Any]:
    parts: list[Segment | UndecidedBytes] = [*entry.segments, *entry.choices]
    parts.sort(key=lambda part: part.start)
    numbers = {name: getattr(entry, name) for name in ("mode", "nlink", "inode", "size")}
    optional = {name: getattr(entry, name) for name in ("hash", "target", "error") if getattr(entry, name)}
    contents = {"segments": list(map(_part, parts))} if entry.type == "file" else {}
    return {"path": entry.path, "type": entry.type, **numbers, **contents, "xattrs": dict(entry.xattrs), **optional}


def _part(part: Segment | UndecidedBytes) -> Any:
    if isinstance(part, Segment):
        return list(part)
    return {**part._asdict(), "versions": [[list(segment) for segment in version] for version in part.versions]}


def is_mounted(report: WireObservation) -> bool:
    """Whether the mount succeeded. It did not where the guest was lost."""
    return report is not None and not report["mount_errno"]


def open_components(report: WireObservation) -> dict[int, int]:
    """The components that the report leaves open, each with the number of its versions."""
    entries = (report or {}).get("tree") or []
    choices = [each for entry in entries for each in entry.get("segments", ()) if isinstance(each, dict)]
    return {choice["component"]: len(choice["versions"]) for choice in choices}


def settled(report: WireObservation, chosen: Mapping[int, int]) -> WireObservation:
    """The report with the `chosen` version of each component. Adjacent segments of one source are joined."""
    return _with_segments(report, lambda segments: _joined(_chosen(segments, chosen)))


def settled_below(report: WireObservation, chosen: Mapping[int, int], level: int) -> WireObservation:
    """The report with the `chosen` versions, where other components stay open. These have the bit `level` then.

    Adjacent segments of one source are joined.
    """

    def lifted(segments: _Segments) -> _Segments:
        return [_lifted(segment, level) for segment in _joined(_chosen(segments, chosen))]

    return _with_segments(report, lifted)


def with_tree(report: WireObservation, change: Callable[[list[Any]], list[Any]]) -> WireObservation:
    """The report with another tree, if it has one."""
    if not isinstance(report, dict) or not isinstance(report.get("tree"), list):
        return report
    return {**report, "tree": change(report["tree"])}


def comparable(*reports: WireObservation) -> Iterator[WireObservation]:
    """The reports without what may differ although the recoveries were the same.

    These are hashes, because contents that are looked up have none, kernel logs unless all of them are whole, and what
    a helper said.
    """
    are_whole = all(report is None or report.get("klog_whole") for report in reports)
    unlike = ("helper",) if are_whole else ("helper", "klog", "klog_whole")
    for report in reports:
        compared = report and {name: value for name, value in report.items() if name not in unlike}
        yield with_tree(compared, lambda tree: [_without_hash(entry) for entry in tree])


def _without_hash(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "hash"}


def _with_segments(report: WireObservation, change: Callable[[_Segments], _Segments]) -> WireObservation:
    def changed(entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "segments": change(entry["segments"])} if "segments" in entry else entry

    return with_tree(report, lambda tree: list(map(changed, tree)))


def _chosen(segments: _Segments, chosen: Mapping[int, int]) -> Iterator[Any]:
    """The segments of the chosen versions. A choice of another component stays."""
    for segment in segments:
        if isinstance(segment, dict) and segment["component"] in chosen:
            yield from segment["versions"][chosen[segment["component"]]]
        else:
            yield segment


def _lifted(segment: Any, level: int) -> Any:
    return {**segment, "component": segment["component"] | level} if isinstance(segment, dict) else segment


def _joined(segments: Iterator[Any]) -> _Segments:
    """The segments, where adjacent ones of one source are one. A choice is next to none."""
    joined: _Segments = []
    for segment in segments:
        last = joined[-1] if joined else None
        if isinstance(segment, dict) or not isinstance(last, list):
            joined.append(segment if isinstance(segment, dict) else list(segment))
        elif segment[2].startswith(BYTES) and last[2].startswith(BYTES):
            last[1:] = [segment[1], last[2] + segment[2][len(BYTES) :]]
        elif segment[2] == last[2]:
            last[1] = segment[1]
        else:
            joined.append(list(segment))
    return joined
