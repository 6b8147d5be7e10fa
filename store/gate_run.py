"""The result of a gate: its parts, their failures, and which of these were known before.

A result is JSON, so that runs can be merged and compared. Its schema is made from these classes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, ValidationInfo

from postcrash.model import NO_TIME_FOR_CHECKS, NO_TIME_FOR_MORE_LOOKS, Verdict, worst
from postcrash.model.text import cut
from postcrash.model.validation import first_objection
from postcrash.store.kernel_build import KernelBuild
from postcrash.store.records import named_by

FORMAT: Literal["postcrash gate 4"] = "postcrash gate 4"
TEXT_MAX = 100_000
"""The longest text in a result, in characters."""
NO_TIME = "there was no time for all workloads"
"""The message of the failure that stands for workloads without time."""
INTERRUPTED = "the run was interrupted"
"""The message of the failure that stands for workloads that the user's interrupt kept from being run."""
TIME_SPENT = "the time of the budget is spent"
"""How the message ends if crash states were left out for lack of time: recorders/crashdisk/src/jobs/budget.rs says so.

That the recoveries of a budget are spent is no lack of time. It is the same on each machine.
"""
UNTESTED = "no judge was put to the test"
"""The message of the failure of a part that tested nothing."""
_OF_TIME = frozenset({NO_TIME, NO_TIME_FOR_CHECKS, NO_TIME_FOR_MORE_LOOKS, INTERRUPTED})
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})+")
NO_SERIES = "*"
ITEMS_MAX = 100_000
"""The most parts, failures or names in one list."""


def _fitting(value: object, info: ValidationInfo) -> object:
    """Makes text valid UTF-8 and cuts it if it is too long. Values that are read from a file stay as they are.

    A name of a file that is not UTF-8 has bytes that UTF-8 cannot have. A workload can have megabytes.
    """
    if info.mode == "json" or not isinstance(value, str):
        return value
    return cut(value.encode(errors="backslashreplace").decode(), TEXT_MAX - 1)


Text = Annotated[str, BeforeValidator(_fitting), Field(max_length=TEXT_MAX)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
States = Annotated[str, Field(pattern=r"^[0-9]+$", max_length=TEXT_MAX)]
"""A number of crash states, as decimal text, because it is too large for JSON's readers."""
ShardName = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}/[1-9][0-9]{0,5}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256."""
FindingId = Annotated[str, Field(pattern=r"^(f-[0-9a-f]{16})?$")]
VerdictName = Literal["holds", "undecided", "violated"]
PartKind = Literal["properties", "hunt", "random", "corpus", "application"]
PartKey = tuple[str, str, str, str]
"""Identifies a part of a run: its name, target, kernel and device model."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Share(_Record):
    """How often something was seen again: `failed` of `runs` times."""

    failed: _Count
    runs: Annotated[int, Field(ge=1, lt=2**31)]


class Failure(_Record):
    """A violation or an open question in the workloads of a part, with one cause."""

    cause: Annotated[str, Field(pattern=r"^c-[0-9a-f]{16}$")]
    """The id of the cause: c- and 16 hexadecimal digits. It is the same on every kernel and in every run."""
    verdict: Literal["undecided", "violated"]
    judge: Text
    """The judge that objects. For undecided failures, all judges that cannot tell."""
    message: Text
    """The judge's words, or the reason why it cannot tell."""
    lost: tuple[Text, ...] = ()
    """The kinds of writes that the crash lost."""
    loss: Text = ""
    """One line on what is lost after which operations of the smallest workload; empty if undecided."""
    upstream: Text = ""
    """The page of the finding, if it is known upstream. Such a failure is new until a line accepts it."""
    standing: Text = ""
    """The rule that the verdict rests on; empty if undecided."""
    beside: tuple[Text, ...] = ()
    """For judges that compare: each path that differs, with what was found there and what the reference shows."""
    objections: tuple[Text, ...] = ()
    """For judges that compare: objections of other judges to the same state, each with the rule that is broken."""
    finding: FindingId = ""
    """The id of the finding with the smallest workload; empty if undecided."""
    found: FindingId = ""
    """The id of the finding before its workload was made smaller; empty if it was not."""
    name: Text = ""
    """The name of the smallest workload; empty if nothing was run."""
    operations: Text = ""
    """This workload in the `.ops` language, or the command of an application."""
    file: Text = ""
    """The workload's file, as seen from the folder of the gate's file; empty if it has none."""
    workloads: _Count = 1
    """How many workloads have this failure."""
    known: Text | None = None
    """Why the failure is accepted, as the baseline says; None if the baseline does not know it."""
    known_in: _Count | None = None
    """The most workloads in which it is accepted; None: in any number."""
    states: Share | None = None
    """How often the crash state failed when it was recovered again; None if it was not tried."""
    recordings: Share | None = None
    """How many further recordings of the workload show the failure; None if it was not tried."""
    earlier: bool = False
    """Whether an earlier round of the run showed it, and the last round of its part did not."""

    @property
    def is_new(self) -> bool:
        """Whether no line of the baseline accepts the failure in so many workloads."""
        return self.known is None or bool(self.growth)

    @property
    def is_upstream(self) -> bool:
        """Whether it is a finding that is known upstream and that no line of the baseline accepts."""
        return bool(self.upstream) and self.is_new and self.is_violated

    @property
    def accepted_because(self) -> str:
        """Why the baseline accepts the failure; empty if it does not."""
        return "" if self.is_new else self.known or ""

    @property
    def growth(self) -> str:
        """A sentence on a known failure that is in more workloads than the baseline accepts; empty if it is not."""
        if self.known is None or self.known_in is None or self.workloads <= self.known_in:
            return ""
        return f"known in at most {self.known_in} workloads ({self.known}), and now in {self.workloads}"

    @property
    def is_violated(self) -> bool:
        """Whether something is broken; otherwise it could not be decided."""
        return self.verdict == "violated"

    @property
    def is_lack_of_time(self) -> bool:
        """Whether it only stands for a lack of time. What more time would show is not known."""
        lacks_time = self.message in _OF_TIME or self.message.endswith(TIME_SPENT)
        return lacks_time and not self.is_violated

    @property
    def sort(self) -> Literal["violated", "undecided", "known"]:
        """How the gate counts it: known, or its verdict if it is new."""
        return self.verdict if self.is_new else "known"

    @property
    def varies(self) -> str:
        """What differs from run to run, in words; empty if nothing does, or if it was not tried."""
        changes = []
        if self.states is not None and self.states.failed < self.states.runs:
            changes.append(f"the check varies: the crash state fails {self.states.failed} of {self.states.runs} times")
        if self.recordings is not None and self.recordings.failed < self.recordings.runs:
            shared = f"{self.recordings.failed} of {self.recordings.runs} new recordings"
            changes.append(f"the recording varies: the failure is in {shared}")
        if self.earlier:
            changes.append("the failure was there in an earlier round of this run, and not in the last one")
        return "; ".join(changes)


Record = TypeVar("Record", bound=_Record)


class PartHead(_Record):
    """One section of the gate's file on one target, kernel and device model, without its failures."""

    name: Text
    kind: PartKind
    target: Text
    kernel: Text
    model: Text
    expect: Text
    section_digest: Text = ""
    """A digest of what the part runs and expects, in all shards. It changes with the section."""
    verdict: VerdictName
    """The verdict on all that was run, without regard to the baseline."""
    workloads: _Count = 0
    """Workloads that were run."""
    not_run: _Count = 0
    """Workloads for which there was no time."""
    states: States = "0"
    """Crash states that were covered, of `states_total`; a state counts once for each instant."""
    states_total: States = "0"
    """All crash states."""
    instants: _Count = 0
    recoveries: _Count = 0
    """Recoveries that were run."""
    remembered: _Count = 0
    """Recoveries that an earlier one answers."""
    outcomes: _Count = 0
    """Different observations, summed over workloads."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    tested: dict[Text, _Count] = Field(default_factory=dict, max_length=ITEMS_MAX)
    """For each judge, the number of workloads in which it was put to the test."""
    lacking: dict[Text, _Count] = Field(default_factory=dict, max_length=ITEMS_MAX)
    """Operations that the file system does not have, with the number of workloads that were left out for it."""
    hold: dict[Text, Text | None] = Field(default_factory=dict, max_length=ITEMS_MAX)
    """Properties that must hold, as the gate's file says. With each, why the baseline accepts that no workload puts it
    to the test; None if the baseline does not."""
    notes: Annotated[tuple[Text, ...], Field(max_length=ITEMS_MAX)] = ()

    @property
    def key(self) -> PartKey:
        """Identifies the part in a run."""
        return self.name, self.target, self.kernel, self.model

    @property
    def title(self) -> str:
        """For example `hunt-small on ext4-current, UML 6.1.176`; the device model stands there unless it is cache."""
        model = "" if self.model == "cache" else f", device model {self.model}"
        return f"{self.name} on {self.target}, {self.kernel}{model}"


class Sighting(NamedTuple):
    """Where a failure was seen: the part, the series of kernels, and the digest of the part's section."""

    part: Text
    target: Text
    model: Text
    series: Text
    section_digest: Text


class Part(PartHead):
    """One section of the gate's file on one target, kernel and device model."""

    failures: Annotated[tuple[Failure, ...], Field(max_length=ITEMS_MAX)] = ()

    @property
    def new(self) -> tuple[Failure, ...]:
        """The failures that the baseline does not accept."""
        return tuple(failure for failure in self.failures if failure.is_new)

    @property
    def unfinished(self) -> int:
        """How many workloads had no time, or time for a first look only. A further round goes on with them."""
        first_looks = (failure.workloads for failure in self.failures if failure.message == NO_TIME_FOR_MORE_LOOKS)
        return self.not_run + sum(first_looks)

    @property
    def sighting(self) -> Sighting:
        """Where the failures of this part are seen."""
        return Sighting(self.name, self.target, self.model, series_of(self.kernel), self.section_digest)

    def untested_requirement(self, name: str) -> Failure:
        """The failure of a part in which the property `name` must hold and no workload puts it to the test."""
        why = f"{name} must hold, and no workload put this to the test"
        return Failure(
            cause=cause_id((self.target, self.model, name, why)),
            verdict="undecided",
            judge=name,
            message=why,
            workloads=0,
            known=self.hold.get(name),
        )

    @property
    def gate_verdict(self) -> Verdict:
        """The verdict, without what the baseline accepts. A verdict that no failure explains stays.

        No line of the baseline accepts that something was not run.
        """
        if self.not_run and not any(failure.is_violated for failure in self.new):
            return Verdict.UNDECIDED
        if self.new:
            return worst(Verdict[failure.verdict.upper()] for failure in self.new)
        is_accepted = any(failure.verdict == self.verdict for failure in self.failures)
        return Verdict.HOLDS if is_accepted else Verdict[self.verdict.upper()]


class FixedLine(_Record):
    """A line of the baseline whose failure was not there any more, though everything was run that could show it."""

    line: Annotated[int, Field(ge=1)]
    cause: Text
    why: Text


class UnseenLine(FixedLine):
    """A line of the baseline whose failure is in no part of the run. All shards together say whether it is fixed."""

    places: Annotated[tuple[Sighting, ...], Field(max_length=ITEMS_MAX)] = ()
    """Where runs of the same store have ever seen the failure, on kernels that the line is about."""


class RunHead(_Record):
    """The fields of a run of a gate that are not about its parts."""

    format: Literal["postcrash gate 4"] = FORMAT
    version: Text
    """Of postcrash."""
    started: Text
    """The time in UTC, as in 2026-01-31T12:00:00Z."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """How long it took; of merged runs, all of them together."""
    file: Text
    """The gate's file, as it was named."""
    baseline: Text = ""
    """The file with known failures, as in the gate's file; empty if there is none."""
    shards: Annotated[tuple[ShardName, ...], Field(min_length=1, max_length=ITEMS_MAX)] = ("1/1",)
    """Which shards of how many are in this result, as `1/4`."""
    names: Annotated[tuple[Text, ...], Field(max_length=ITEMS_MAX)] = ()
    """The sections that the user selected; empty for all of the file."""
    digests: dict[Text, Digest] = Field(default_factory=dict, max_length=ITEMS_MAX)
    """Digests of what the results rest on: postcrash, targets, kernels, the gate's file and files that it names."""
    kernels: dict[Text, KernelBuild] = Field(default_factory=dict, max_length=ITEMS_MAX)
    """The build of each kernel, by its name in the parts. Two builds of one version have different names."""
    interrupted: bool = False
    """Whether the user interrupted the run, or the run of a shard."""


class GateRun(RunHead):
    """A run of a gate."""

    parts: Annotated[tuple[Part, ...], Field(max_length=ITEMS_MAX)]
    fixed: Annotated[tuple[FixedLine, ...], Field(max_length=ITEMS_MAX)] = ()
    unseen: Annotated[tuple[UnseenLine, ...], Field(max_length=ITEMS_MAX)] = ()
    """The lines of the baseline whose failures are not in this run. They may be in another shard."""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the gate: the worst of its parts, without what the baseline accepts.

        If there are no parts, or if the run was interrupted, it is not HOLDS.
        """
        is_open = self.interrupted or not self.parts
        return worst([*(part.gate_verdict for part in self.parts), Verdict.UNDECIDED if is_open else Verdict.HOLDS])

    def failures(self) -> Iterator[tuple[Part, Failure]]:
        """All failures with their parts, sorted by `importance`."""
        pairs = [(part, failure) for part in self.parts for failure in part.failures]
        yield from sorted(pairs, key=lambda pair: importance(pair[1]))

    def counts(self) -> "Counts":
        """How many failures there are of each sort, and what was covered."""
        sorts = Counter(failure.sort for part in self.parts for failure in part.failures)
        upstream = sum(failure.is_upstream for part in self.parts for failure in part.failures)
        return Counts(
            new=sorts["violated"] - upstream,
            upstream=upstream,
            known=sorts["known"],
            fixed=len(self.fixed),
            undecided=sorts["undecided"],
            workloads=sum(part.workloads for part in self.parts),
            states=sum(int(part.states) for part in self.parts),
            recoveries=sum(part.recoveries for part in self.parts),
        )


class Counts(_Record):
    """What a busy reader wants to know first. Failures count once for each part. JSON has `states` as decimal text."""

    new: int
    upstream: int
    known: int
    fixed: int
    undecided: int
    workloads: int
    states: Annotated[int, PlainSerializer(str, return_type=str, when_used="json")]
    recoveries: int


def kernel_version(label: str) -> str:
    """The version in a kernel's label, such as `6.1.176` in `UML 6.1.176`. Empty if the label has none."""
    match = _VERSION.search(label)
    return match[0] if match else ""


def series_of(label: str) -> str:
    """The series of the kernel with this label, such as `6.1`. `*` if the label has no version."""
    return ".".join(kernel_version(label).split(".")[:2]) or NO_SERIES


def cause_id(words: Iterable[str]) -> str:
    """The id of the cause that these words describe."""
    return named_by("c", words)


def importance(failure: Failure) -> tuple[bool, bool, bool]:
    """A sort key: new failures first, those known upstream last among them, and violated before undecided ones."""
    return not failure.is_new, failure.is_upstream, not failure.is_violated


def smallest(failures: Iterable[Failure]) -> Failure:
    """The worst failure: violated and new ones before others, and then the smallest known workload."""

    def key(failure: Failure) -> tuple[bool, bool, bool, int, int]:
        text = failure.operations
        return not failure.is_violated, not failure.is_new, not text, text.count("\n"), len(text)

    return min(failures, key=key)


def validated(record: Record, **changes: object) -> Record:
    """The record with changes. Raises ValueError if it is not one that could be read again."""
    values = {name: getattr(record, name) for name in type(record).model_fields}
    try:
        return type(record).model_validate({**values, **changes})
    except ValidationError as error:
        raise ValueError(f"the results together: {first_objection(error)}") from None
