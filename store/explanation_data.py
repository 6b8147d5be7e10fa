"""The data of an explanation, which `explanation_text` and the HTML page show."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from postcrash.store.json_codec import JsonObject

OperationStatus = Literal["set-up", "returned", "in progress", "not started"]
WriteStatus = Literal["stable", "kept", "lost"]


@dataclass(frozen=True, slots=True)
class ExplainedOperation:
    """One operation of the workload. `number` counts from 1, set-up included."""

    number: int
    text: str
    status: OperationStatus


@dataclass(frozen=True, slots=True)
class ExplainedCall:
    """A system call of a program on the target.

    number  counts from 1
    thread  likewise, in the order of the threads' first calls
    result  what it returned, or the error's name; empty if it was in progress at the crash
    """

    number: int
    thread: int
    program: str
    text: str
    result: str
    status: OperationStatus


@dataclass(frozen=True, slots=True)
class ExplainedWrite:
    """A write, discard or write-zeroes, or a run of its pieces if the crash kept only a part of it.

    what      what was written, in words: the workload's bytes, or a structure known by its magic number
    name      its name from the file system's own tools; empty if there is none
    sector    where on the disk, in units of 512 B
    sectors   how many
    flags     `FUA`, `PREFLUSH`, both, or empty
    during    number of the operation in progress when it was submitted; 0 if there was none
    status    stable: no crash could lose it; kept or lost: it was in flight, and this crash kept or lost it
    disk      the number of the disk, from 0; None if there is only one
    begins    the disk's first sector among those of all disks, which `sector` counts
    """

    what: str
    name: str
    sector: int
    sectors: int
    flags: str
    during: int
    status: WriteStatus
    disk: int | None = None
    begins: int = 0

    @property
    def words(self) -> str:
        """Its name with the workload's bytes in it, or what was written if it has no name."""
        if not self.name:
            return self.what
        return f"{self.name}: {self.what}" if "`" in self.what else self.name


@dataclass(frozen=True, slots=True)
class Epoch:
    """The writes between two flushes.

    number   counts from 1
    ended    what ended it: `flush`, `flush, under way at the crash` or `crash`
    writes   in submission order; a long epoch has only some, with lost writes preferred
    omitted  how many more there were
    """

    number: int
    ended: str
    writes: tuple[ExplainedWrite, ...]
    omitted: int


@dataclass(frozen=True, slots=True)
class PathComparison:
    """A path: what was found there, and the result of all operations that had returned.

    in_progress  what is there once the operation in progress is done, if this differs; else empty
    differs      what was found is neither of the two; if there is a reference, it is not as the reference shows it
    reference    what the reference shows there; empty if there is none
    """

    path: str
    found: tuple[str, ...]
    allowed: tuple[str, ...]
    in_progress: tuple[str, ...]
    differs: bool
    reference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Output of the kernel, of fsck, or of a lost guest's console."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation(JsonObject):
    """The history of a crash state and what is wrong with it.

    epochs_omitted      earlier epochs that are not shown; what they lost is in `lost`
    lost_omitted        lost writes beyond those in `lost`
    named_by            the tools that named the writes; empty if none did
    unnamed             why they could not be used; empty if they could
    unsent              operations whose bytes were all still in the kernel's memory
    failure             why there is no tree, such as a failed mount; empty if there is one
    comparison_omitted  paths beyond those in `comparison`
    calls               the last system calls of programs on the target before the crash
    reference           the name of the kernel or target that never shows this; empty if nothing was compared
    reference_said      its nearest outcome in words if there are no two trees to compare; empty if there are
    objections          objections of judges that compare nothing to the same state, each with the broken rule
    """

    operations: tuple[ExplainedOperation, ...]
    epochs: tuple[Epoch, ...]
    epochs_omitted: int
    lost: tuple[ExplainedWrite, ...]
    lost_omitted: int
    named_by: str
    unnamed: str
    unsent: tuple[str, ...]
    failure: str
    comparison: tuple[PathComparison, ...]
    comparison_omitted: int
    evidence: tuple[Evidence, ...]
    calls: tuple[ExplainedCall, ...] = ()
    reference: str = ""
    reference_said: str = ""
    objections: tuple[str, ...] = ()

    def reference_differences(self) -> Iterator[str]:
        """A line for each path that differs: what was found, and what the reference shows."""
        if self.reference_said:
            yield f"found: {self.failure or 'it mounts'}; on {self.reference}: {self.reference_said}"
        for path in self.comparison:
            if path.differs and path.reference:
                yield f"{path.path} found: {'; '.join(path.found)}; on {self.reference}: {'; '.join(path.reference)}"
