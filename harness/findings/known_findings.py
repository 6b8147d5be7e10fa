"""The findings of docs/findings, and how each shows: the judge with its words, the writes lost, and smallest workloads.

`known_findings.toml` has a table for each page:

    [btrfs-half-a-rename]
    targets = ["btrfs"]
    kernels = "6.1..7.2"

    [[btrfs-half-a-rename.shows]]
    judge = "A-rename"
    message = "PATH and PATH are …"
    lost = ["…"]
    workloads = ["…"]
    held = true
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from postcrash.model import Naming, Operation, Workload, parse_workload
from postcrash.model.tree import parent
from postcrash.model.validation import read_toml

FILE = Path(__file__).with_name("known_findings.toml")
MODEL = "cache"
"""The device model of all pages."""
STEPS_MAX = 20_000
"""The most operations that are compared to find those of one known workload."""


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class Showing:
    """One way in which a finding shows.

    message  with N for each number and PATH for each name of the workload
    lost     the kinds of writes that the crash lost, sorted
    held     it shows only on a disk that holds completions back
    """

    judge: str
    message: str
    workloads: tuple[str, ...]
    lost: tuple[str, ...] = ()
    held: bool = False

    @property
    def smallest(self) -> tuple[Workload, ...]:
        """The smallest workloads."""
        return tuple(_parsed(text) for text in self.workloads)


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class KnownFinding:
    """A finding: the targets, the range of kernels that have it, as in a baseline, and how it shows there."""

    targets: tuple[str, ...]
    kernels: str
    shows: tuple[Showing, ...] = ()


_schema = TypeAdapter(dict[str, KnownFinding])


@cache
def known_findings() -> Mapping[str, KnownFinding]:
    """All findings, by the names of their pages."""
    return _schema.validate_python(read_toml(FILE))


def distinction(target: str, model: str, words: tuple[str, str, tuple[str, ...]], workload: Workload) -> str:
    """What tells a failure from known findings that show in the same words, by the operations of its workload.

    `words` are the judge, its message and the kinds of lost writes, as in `Showing`. Kernels make no difference. Empty
    if no finding shows so, or if only one does and the workload has its operations.
    """
    if model != MODEL:
        return ""
    alike: dict[str, list[Workload]] = {}
    for name, finding in known_findings().items():
        for showing in finding.shows:
            if target in finding.targets and words == (showing.judge, showing.message, showing.lost):
                alike.setdefault(name, []).extend(showing.smallest)
    possible = sorted(name for name, known in alike.items() if any(has_operations_of(workload, each) for each in known))
    if len(alike) == len(possible) <= 1:
        return ""
    return f"as {', '.join(possible)}" if possible else f"other than {', '.join(sorted(alike))}"


def has_operations_of(workload: Workload, known: Workload) -> bool:
    """Whether the workload runs the operations of `known` in their order, among others, on files of other names.

    Offsets, lengths and the place of `---` make no difference, an append is a write, and files that are made one after
    the other may be made in any order. False also if this is not found within STEPS_MAX steps: then a failure is taken
    for another one than the known one, which is an alarm too many and not one too few.
    """
    operations, wanted = workload.without_tail().operations, known.without_tail().operations
    if Counter(map(_kind, wanted)) - Counter(map(_kind, operations)):
        return False
    return _Search(operations, STEPS_MAX).finds(wanted, {}, 0, 0)


@dataclass(slots=True)
class _Search:
    """Looks for operations among others. `steps` is how many more are tried."""

    operations: tuple[Operation, ...]
    steps: int

    def finds(self, known: Sequence[Operation], names: Mapping[str, str], earliest: int, end: int) -> bool:
        """Whether `known` are there, of which those that make files may be anywhere from `earliest` on.

        Each of the others comes at `end` or later, which is after all that were found before it.
        """
        if not known:
            return True
        makes = known[0].form.naming is Naming.MAKE
        for number in range(earliest if makes else end, len(self.operations)):
            self.steps -= 1
            if self.steps < 0:
                return False
            renaming = _renaming(known[0], self.operations[number], names)
            after = number + 1
            if renaming is not None and self.finds(known[1:], renaming, earliest if makes else after, max(end, after)):
                return True
        return False


def _renaming(known: Operation, operation: Operation, names: Mapping[str, str]) -> Mapping[str, str] | None:
    """`names` with those that turn `known` into the operation. None if nothing does.

    Different paths stay different, and what is directly in a directory stays there.
    """
    if _kind(known) != _kind(operation):
        return None
    renaming = dict(names)
    for path, other in zip(known.paths, operation.paths, strict=True):
        if path in renaming:
            if renaming[path] != other:
                return None
            continue
        for one, two in renaming.items():
            directories = (parent(path) == one, parent(one) == path)
            if two == other or directories != (parent(other) == two, parent(two) == other):
                return None
        renaming[path] = other
    return renaming


def _kind(operation: Operation) -> tuple[object, ...]:
    form = operation.form
    write = (form.data, form.persistence, form.untorn)
    return (write if form.data else form.word, operation.mode, operation.is_held)


@cache
def _parsed(text: str) -> Workload:
    return parse_workload(text, "known")
