"""Tries mount options and features of mkfs in a guest, and writes docs/results/mount-options.md."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from listed_options import ListedOptions, TriedOption
from postcrash._core import Recording, intervals
from postcrash.checkers.kernel_log import KernelLog
from postcrash.harness.errors import HarnessError, OperationFailedError, errno_name
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.suitability import missing_configuration
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import History, Observation, Verdict, WorkloadBuilder, simulate
from postcrash.model.observation import error_name
from postcrash.targets import BaseImageError, Target, base_image

WORKS = "works"
_MODEL = "cache"
_OF_AGENT = "the guest agent failed: "
_WORKLOAD = (
    WorkloadBuilder()
    .mkdir("D").creat("D/old").append("D/old", 9000)
    .begin()
    .creat("A").append("A", 20_000).fsync("A").link("A", "D/B").rename("D/old", "C").write("C", 100, 5000).mkdir("E")
    .sync()
    .build("options")
)  # fmt: skip
_INTRODUCTION = """\
# Mount options

Made by `python bench/mount_options.py`; [targets.md](../targets.md#mount-options) says what it tries."""


@dataclass(frozen=True, slots=True)
class OptionTrial:
    """The result of one option on one kernel: `WORKS`, or why it does not, in a line."""

    option: TriedOption
    result: str


def tried(machine: Machine, kernel: Kernel, option: TriedOption, bases: Path) -> OptionTrial:
    """Try one option. Base images are kept in the folder `bases` unless the option changes how they are made."""
    with tempfile.TemporaryDirectory(prefix=".option-", dir=bases) as scratch:
        folder = Path(scratch)
        try:
            result = _run(machine, option.target, folder if option.mkfs else bases, folder / "recording")
        except BaseImageError as error:
            result = f"refused by mkfs: {str(error).rpartition(' failed: ')[2]}"
        except OperationFailedError as error:
            result = f"mounts, but {error.operation} fails with {errno_name(error.errno)}"
        except HarnessError as error:
            result = _refusal(str(error))
    lacking = missing_configuration(kernel, option.needs)
    if result == WORKS and lacking:
        result = f"mounts without effect: the kernel was built without {' and '.join(lacking)}"
    return OptionTrial(option, result)


def _run(machine: Machine, target: Target, bases: Path, recording: Path) -> str:
    base = base_image(target, bases).path
    machine.record(base, target.mount, _WORKLOAD, recording, {})
    last = intervals(Recording(recording), base, _MODEL)[-1].index
    recovery = target.recovery(walk=True, fsck=False).by_kernel()
    executed = machine.execute(Source(recording, base, _MODEL), last, [], recovery)
    if executed.casualty is not None:
        return f"mounts, but when it is mounted again the guest is lost: {executed.casualty.what}"
    observation = Observation.from_wire(executed.observation)
    if observation.mount_errno:
        return f"mounts, but not again: {error_name(observation.mount_errno)}"
    found, expected = (
        {path: (entry.type, entry.segments) for path, entry in tree.items()}
        for tree in (observation.tree, simulate(_WORKLOAD)[-1])
    )
    if found != expected:
        return "mounts, but does not keep what sync made durable"
    operations = len(_WORKLOAD.operations)
    warned = KernelLog().check(History(_WORKLOAD, operations, operations), replace(observation, klog_whole=True))
    return f"{WORKS}, but {_plain(warned.message)}" if warned.verdict is Verdict.VIOLATED else WORKS


def _refusal(error: str) -> str:
    """What the kernel says of a mount, or else the error that mount(2) or the agent's first write returned."""
    if error.startswith(_OF_AGENT):
        return f"mounts, but nothing can be written: {error.removeprefix(_OF_AGENT).partition(' (os error ')[0]}"
    _, separator, reason = error.partition(": the kernel says: ")
    return f"refused: {_plain(reason if separator else error.partition(': ')[2] or error)}"


def _plain(text: str) -> str:
    """Without the device's name, which says nothing here."""
    return text.replace(" (vda)", "").replace(" (device vda)", "")


def page(
    kernels: Sequence[str], listed_options: Mapping[str, ListedOptions], found: Sequence[Sequence[OptionTrial]]
) -> str:
    """The page. `found` has the trials of each kernel in one order; `kernels` are their names."""
    together = list(zip(*found, strict=True))
    parts = [_INTRODUCTION]
    for fstype, options in listed_options.items():
        rows = [(row[0].option, [trial.result for trial in row]) for row in together if row[0].option.fstype == fstype]
        parts += _section(fstype, options, kernels, rows)
    return "\n".join(parts)


def _section(
    fstype: str, options: ListedOptions, kernels: Sequence[str], rows: Sequence[tuple[TriedOption, list[str]]]
) -> Iterator[str]:
    works = [option for option, results in rows if set(results) == {WORKS}]
    yield f"\n## {fstype}\n"
    yield f"From {options.sources}."
    yield f"The target `{options.like}` with one of these {len(works)} of {len(rows)} works on all kernels:\n"
    yield from (f"- {_code(option.label)}" for option in works)
    yield f"\n| option | {' | '.join(kernels)} |"
    yield "| --- |" + " --- |" * len(kernels)
    for option, results in rows:
        if set(results) != {WORKS}:
            yield f"| {_code(option.label)} | {' | '.join(map(_cell, results))} |"
    yield "\nNot tried:\n"
    yield from (f"- {_code(what)}: {why}" for what, why in options.untried.items())


def _code(text: str) -> str:
    return f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def results_on(text: str, fstype: str, column: int) -> dict[str, str]:
    """What the page `text` says of the file system's options on the kernel of this column, by their labels."""
    section = text.partition(f"\n## {fstype}\n")[2].partition("\n## ")[0].partition("\nNot tried:")[0]
    found: dict[str, str] = {}
    for line in section.splitlines():
        if line.startswith("- `"):
            found[line[3:-1]] = WORKS
        elif line.startswith("| `"):
            label, *results = (cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|"))
            found[label.strip("`")] = results[column].replace("\0", "|")
    return found


def all_options(by_fstype: Mapping[str, ListedOptions]) -> Iterable[TriedOption]:
    """Every option of every file system, in the order of the page."""
    return (option for fstype, options in by_fstype.items() for option in options.rows(fstype))
