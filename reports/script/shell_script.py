"""Writes a finding as a shell script: makes the file system, runs the operations, cuts the power, recovers and checks.

The power cut is made with device mapper. dm-flakey drops later writes. dm-log-writes logs every write, so that the disk
at some instant can be put together again, if necessary without some of the writes.
"""

import shlex
from dataclasses import dataclass

from postcrash.model import Operation, Tree, Workload
from postcrash.model.operation import HANDLE
from postcrash.model.text import one_line
from postcrash.recorders.dm_log_writes import LOG_MIB
from postcrash.reports.script.shell_operations import OTHER_FILE, STALE_BYTE, NoCommandError, commands
from postcrash.reports.script.shell_parts import FILL, FLAKEY, HOLDS, REPLAY
from postcrash.store.explanation_data import ExplainedWrite
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class FlakeyCut:
    """The power fails once `operations` operations (set-up included) have returned. All that was sent is kept."""

    operations: int

    @property
    def description(self) -> str:
        """In words."""
        return "dm-flakey drops all writes from then on"


@dataclass(frozen=True, slots=True)
class LogCut:
    """The power fails during the last of `operations` operations, or after it.

    flushes    how many flushes of that operation are done; the writes up to the next flush are there, or for -1 those
               up to the operation's start
    lost       writes since the last flush that are lost
    is_inside  the operation is in progress
    """

    operations: int
    flushes: int
    lost: tuple[ExplainedWrite, ...] = ()
    is_inside: bool = True

    @property
    def description(self) -> str:
        """In words."""
        without = f" but for {len(self.lost)} of the last writes" if self.lost else ""
        return f"a log of dm-log-writes is replayed up to it{without}"


Cut = FlakeyCut | LogCut


@dataclass(frozen=True, slots=True)
class Symptom:
    """The sign of the violation.

    kind      `tree`: all of `tests` succeed in the root directory; `mount`: it fails; `fsck`: it objects; `boot`: all
              of `tests` are true of the `status` of the repair before the mount
    tests     commands of the shell
    claims    the same in words, with what was expected, as lines of a comment
    repaired  recovery is the target's repair, then the mount
    """

    kind: str
    tests: tuple[str, ...]
    claims: tuple[str, ...]
    repaired: bool = False

    @property
    def is_stale_seen(self) -> bool:
        """Whether it has bytes that were on the disk before mkfs."""
        return any(f":{STALE_BYTE:03o}" in test for test in self.tests)

    @property
    def is_about_contents(self) -> bool:
        """Whether it needs the function `holds`."""
        return any(test.startswith("holds ") for test in self.tests)


def script(title: str, target: Target, workload: Workload, trees: list[Tree], symptom: Symptom, cut: Cut) -> str:
    """Returns the script, for bash. `trees` are those of `simulate`. Raises NoCommandError."""
    require_plain(target)
    parts = [
        _head(title, target, symptom, cut),
        HOLDS if symptom.is_about_contents else "",
        "\n".join(_function(name, body) for name, body in operations(workload, trees, target, cut).items()),
        _cut(cut, symptom),
        _look(target, symptom),
    ]
    return "\n".join(filter(None, parts))


def _head(title: str, target: Target, symptom: Symptom, cut: Cut) -> str:
    options = f" -o {shlex.quote(target.options)}" if target.options else ""
    disks = {"DISK": target.size_mib} | ({"LOG": LOG_MIB} if isinstance(cut, LogCut) else {})
    sizes = ", ".join(f"{name} {size} MiB" for name, size in disks.items())
    devices = " ".join(f"{name}=/dev/sd{letter}" for name, letter in zip(disks, "XY", strict=False))
    variables = "\n".join(f"{name}=${{{name}:?a disk that may be overwritten}}" for name in disks)
    claims = "".join(_comment(line, indent=3) + "\n" for line in symptom.claims)
    return f"""#!/bin/bash
{_comment(title)}
{claims}#
# As root on a test machine; what is on the disks is lost (at least {sizes}; sectors of 512 bytes):
#   {devices} bash reproduce.sh
# The power cut: {cut.description}.
# Exit code 1: the violation shows, 0: it does not, 2: something failed.
set -Eeuo pipefail
trap 'echo "line $LINENO failed" >&2; exit 2' ERR
trap '{{ umount "$MNT"; dmsetup remove cut; }} 2>/dev/null || :' EXIT
{variables}
MNT=${{MNT:-/mnt}}
SECTORS={target.size_mib * 2048}

make() {{ {shlex.join(target.mkfs)} /dev/mapper/cut; }}
attach() {{ mount -t {target.fstype}{options} /dev/mapper/cut "$MNT"; }}
"""


def _comment(text: str, indent: int = 1) -> str:
    """Makes a comment of one line. Results of crashes and texts of strangers may have line breaks."""
    return f"#{' ' * indent}{one_line(text)}"


def require_plain(target: Target) -> None:
    """Raises NoCommandError for a target that mkfs and mount alone do not make."""
    if target.helper:
        raise NoCommandError(f"{target.fstype} is mounted by a program, {target.helper[0]}, not by the kernel")
    if target.further_disks_mib:
        raise NoCommandError(f"{target.name} has {len(target.disks_mib)} disks, and the script makes one")
    if target.after_mkfs:
        raise NoCommandError(f"{target.name} is changed by {target.after_mkfs[0]} after it was made")
    if target.aged_mib is not None:
        raise NoCommandError(f"{target.name} is aged by a guest before it is used")


def operations(workload: Workload, trees: list[Tree], target: Target, cut: Cut) -> dict[str, list[str]]:
    """Returns the bodies of shell functions by name: `setup`, `operations`, and for a LogCut `last_operation`."""
    setup = len(workload.setup)
    ran = workload.operations[: cut.operations]
    last = len(ran) - 1 if isinstance(cut, LogCut) and cut.is_inside else len(ran)
    needs_other = isinstance(cut, LogCut) or any(op.word in ("commit", "checkpoint") for op in ran)
    for part, name in ((ran[setup:last], "the set-up"), (ran[last:], "operations before the last")):
        _refuse_handles(part, name)
    bodies = {
        "setup": [*([f": >{OTHER_FILE}"] if needs_other else []), *_lines(ran[:setup], trees, target)],
        "operations": _lines(ran[setup:last], trees[setup:], target),
    }
    if isinstance(cut, LogCut):
        bodies["last_operation"] = _lines(ran[last:], trees[last:], target)
    return bodies


def _refuse_handles(operations: tuple[Operation, ...], before: str) -> None:
    """Raises NoCommandError if a part needs a handle of an earlier part, since each part runs in its own shell."""
    opened = set[str]()
    for operation in operations:
        if operation.form.opens:
            opened.add(HANDLE + operation.path)
        elif not opened.issuperset(operation.handles):
            raise NoCommandError(f"`{operation}` is about a file that {before} opened, in another shell")


def _lines(operations: tuple[Operation, ...], trees: list[Tree], target: Target) -> list[str]:
    lines = []
    for operation, before in zip(operations, trees, strict=False):
        body = commands(operation, before, target.fstype)
        lines += body if body == [str(operation)] else [_comment(str(operation)), *body]
    return lines


def _function(name: str, body: list[str]) -> str:
    lines = "".join(f"    {line}\n" for line in ['cd "$MNT"', *body])
    return f"{name}() (\n{lines})\n"


def _cut(cut: Cut, symptom: Symptom) -> str:
    if isinstance(cut, LogCut):
        return REPLAY + _replay(cut)
    return f"{FILL}\nfill\n{FLAKEY}" if symptom.is_stale_seen else FLAKEY


def _replay(cut: LogCut) -> str:
    words = {f"{write.sector}+{write.sectors}": _comment(write.words) for write in cut.lost}
    lost = "".join(f"    {place}  {comment}\n" for place, comment in words.items())
    call = f'LOST=(\n{lost})\nreplay {cut.flushes} "${{LOST[@]}}"' if lost else f"replay {cut.flushes}"
    attached = 'dmsetup create cut --table "0 $SECTORS linear $DISK 0"'
    return f'{call}\nblockdev --flushbufs "$DISK"\n{attached}\n'


def _look(target: Target, symptom: Symptom) -> str:
    if symptom.kind == "mount":
        before, shown = "", "! attach"
    elif symptom.kind == "boot":
        before, shown = "", " && ".join(symptom.tests)
    elif symptom.kind == "fsck":
        before, shown = 'attach\numount "$MNT"\n', f"! {shlex.join(target.fsck)} /dev/mapper/cut"
    else:
        before = 'attach\nls -lAR "$MNT" || :\n\n' + _function("shows", [" &&\n    ".join(symptom.tests)])
        shown = "shows"
    repair = ""
    if symptom.repaired:
        repair = f"status=0\n{shlex.join(target.repair)} /dev/mapper/cut || status=$?\n"
    return f"""{repair}{before}if {shown}; then
    echo VIOLATED
    exit 1
fi
echo "not shown"
"""
