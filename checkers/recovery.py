"""A crash while the file system recovers changes nothing: the recovery that follows shows the same tree.

Recovery must be idempotent, because power can fail again while a journal or a log is being replayed. Whatever was
recovered once must not be lost or changed by this.

Not compared: the kernel's log, and what the fsck program says.
"""

from postcrash.model import Entry, Observation, Segment, content

NAME = "same-recovery"


def difference(first: Observation, second: Observation) -> str:
    """How the recovery after a crash within recovery differs from the `first`. Empty if it does not differ.

    Contents that are not settled are settled by `postcrash.model.every_answer`, as in judges.
    """
    if first.mount_errno != second.mount_errno:
        return f"mount fails with errno {second.mount_errno}; without the crash its errno was {first.mount_errno}"
    for path in sorted({*first.tree.paths(), *second.tree.paths()}):
        before, after = first.tree.get(path), second.tree.get(path)
        if before is None or after is None:
            return f"{path} is {'gone' if after is None else 'there'}; without the crash it was not"
        if changed := _changed(before, after):
            return f"{path}: {changed}"
    return ""


def _changed(before: Entry, after: Entry) -> str:
    for name in ("type", "mode", "nlink", "inode", "size", "xattrs", "target", "error"):
        then, now = getattr(before, name), getattr(after, name)
        if then != now:
            return f"{name} is {now}; without the crash it was {then}"
    if (before.segments, before.choices) == (after.segments, after.choices):
        return ""
    then, now = (list(content.runs(entry, 0, entry.size)) for entry in (before, after))
    return "" if then == now else f"its content is {_shown(now)}; without the crash it was {_shown(then)}"


def _shown(runs: list[Segment]) -> str:
    return ", ".join(f"{run.source} from {run.start} to {run.end}" for run in runs) or "empty"
