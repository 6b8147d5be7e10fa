"""The result of a hunt: counts, and findings grouped by their cause."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from postcrash.harness.hunting.causes import Cause
from postcrash.model import Verdict

NAMES_MAX = 20
"""The most workloads of a group that are named."""


@dataclass(slots=True)
class Group:
    """Findings of one cause: the number of their workloads, some names, and the finding of the smallest workload."""

    cause: Cause
    finding: str
    size: tuple[int, int]
    """Operations and number of the smallest workload."""
    count: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """What could not be decided in `workloads` workloads, and which judges cannot tell.

    pattern  why, with N for each number: what tells a question from others
    words    why, as it was said of the smallest of these workloads
    """

    judges: str
    pattern: str
    words: str
    workloads: int


@dataclass(slots=True)
class HuntResult:
    """The result of a hunt.

    run        workloads that were recorded and explored on all disks, now or before; `counts` are sums over disks
    same       workloads that are equal to another one
    alike      workloads that differ from another one only in names
    refused    reasons why workloads could not be run, with the number of workloads
    undecided  judges that could not tell, and why (as `OpenQuestion.pattern`), with the number of workloads
    cut_short  workloads with a violation after which not all crash states were explored
    lacking    operations that the file system does not have, with the number of workloads
    tested     for each judge, the number of workloads in which it was put to the test
    not_run    workloads that there was no time for; the same hunt goes on with them
    first_looks  workloads with time for a first look only; the same hunt goes on with them, too
    new        for a random hunt, workloads that brought something new
    interrupted  whether the user interrupted the hunt
    """

    run: int = 0
    not_run: int = 0
    first_looks: int = 0
    new: int = 0
    cut_short: int = 0
    interrupted: bool = False
    same: int = 0
    alike: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    tested: Counter[str] = field(default_factory=Counter)
    groups: dict[Cause, Group] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _words: dict[str, tuple[tuple[int, int], str]] = field(default_factory=dict)
    """For each of `undecided`, the size of the smallest workload, and what was said of it."""

    @property
    def has_more_to_do(self) -> bool:
        """Whether more time would tell more."""
        return self.not_run + self.first_looks > 0

    @property
    def verdict(self) -> Verdict:
        """The verdict on all selected workloads that the file system can run. UNDECIDED if no judge was tested."""
        if self.groups:
            return Verdict.VIOLATED
        is_left_out = self.undecided or self.cut_short or self.refused or self.not_run or self.interrupted
        is_open = is_left_out or not self.tested or not self._is_whole
        return Verdict.UNDECIDED if is_open else Verdict.HOLDS

    @property
    def _is_whole(self) -> bool:
        """Whether every crash state of every workload was covered."""
        pairs = (("states", "covered"), ("states_within", "covered_within"))
        return all(self.counts[states] == self.counts[covered] for states, covered in pairs)

    def leave_open(self, judges: str, pattern: str, words: str, size: tuple[int, int]) -> None:
        """Count what could not be decided in a workload of this size. See `OpenQuestion`."""
        question = f"{judges}: {pattern}"
        self.undecided[question] += 1
        if question not in self._words or size < self._words[question][0]:
            self._words[question] = size, words

    def open_questions(self) -> Iterator[OpenQuestion]:
        """What could not be decided, with what is in most workloads first."""
        for question, count in self.undecided.most_common():
            judges, _, pattern = question.partition(": ")
            _, words = self._words.get(question, ((0, 0), pattern))
            yield OpenQuestion(judges, pattern, words, count)

    def is_better(self, cause: Cause, size: tuple[int, int]) -> bool:
        """Whether a finding of this cause in a workload of this size is to represent its group."""
        return cause not in self.groups or size < self.groups[cause].size

    def found(self, cause: Cause, size: tuple[int, int], finding: str, name: str) -> None:
        """Add a finding to its group."""
        group = self.groups.setdefault(cause, Group(cause, finding, size))
        if size < group.size:
            group.size, group.finding = size, finding
        group.count += 1
        if len(group.names) < NAMES_MAX:
            group.names.append(name)
