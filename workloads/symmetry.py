"""Workloads that differ in their names only.

`foo` and `bar`, and `A` and `B`, can change places without changing what the operations do. A file system can tell
them apart all the same: names have hashes, and a directory may be ordered by them. So leaving out one of two such
workloads is a reduction, which whoever leaves it out has to say.
"""

from postcrash.model import Workload
from postcrash.model.operation import PATHS, Kind, on_path
from postcrash.model.workload import SEPARATOR

ALIKE = (("foo", "bar"), ("A", "B"))
"""Names of which each can stand for any other one of its group, everywhere at once."""


def canonical(workload: Workload) -> str:
    """The same text for workloads that only such an exchange of names tells apart: names in the order of their use."""
    new: dict[str, str] = {}

    def change(path: str) -> str:
        return "/".join(_named(part, new) for part in path.split("/"))

    lines = [f"{SEPARATOR} {len(workload.setup)}"] if workload.setup else []
    for operation in workload.operations:
        words = [operation.word]
        for argument, value in operation.arguments:
            is_path = argument.kind in (*PATHS, Kind.TARGET)
            words.append(on_path(change, str(value)) if is_path else str(value))
        lines.append(" ".join(words))
    return "\n".join(lines)


def _named(name: str, new: dict[str, str]) -> str:
    if name not in new:
        group = next((group for group in ALIKE if name in group), None)
        new[name] = name if group is None else group[sum(old in new for old in group)]
    return new[name]
