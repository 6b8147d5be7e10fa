"""Writes a finding as a test of fstests (xfstests): a script like those in tests/generic, and its golden output.

dm-flakey stands for a power cut between two operations. dm-log-writes stands for one within an operation: its log is
replayed up to a flush. Neither can keep some writes of an epoch and lose others.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from postcrash.model import Operation, Tree, Workload
from postcrash.model.text import visible
from postcrash.reports.script.shell_operations import STALE_BYTE, NoCommandError
from postcrash.reports.script.shell_parts import HOLDS
from postcrash.reports.script.shell_script import Cut, FlakeyCut, Symptom, operations, require_plain
from postcrash.targets import Target

NAME = re.compile(r"[0-9]{3}[A-Za-z0-9-]{0,60}")
"""The names of tests: a number, and optionally words after it."""
_WIDTH = 78
_LOST_MAX = 10
_JOURNALS = frozenset({"ext3", "ext4", "xfs", "btrfs", "f2fs"})
"""Types of file systems that _require_metadata_journaling knows and does not refuse."""
_XFS_IO = re.compile(r"(^|\|\| |&& )xfs_io\b")
_FALLOCATE = {
    "none": '"falloc"',
    "keep-size": '"falloc" "-k"',
    "zero-range": '"fzero"',
    "zero-range-keep-size": '"fzero" "-k"',
    "punch-hole": '"fpunch"',
    "collapse-range": '"fcollapse"',
    "insert-range": '"finsert"',
}
_NEEDS = {
    "reflink": ("reflink", "_require_scratch_reflink"),
    "dedupe": ("reflink", "_require_scratch_dedupe"),
    **dict.fromkeys(("setxattr", "removexattr"), ("attr", "_require_attrs user")),
    **dict.fromkeys(("dwrite", "dwrite-osync"), ("", "_require_odirect")),
    **dict.fromkeys(("awrite", "awrite-odsync"), ("atomicwrites", "_require_scratch_write_atomic")),
}
"""By the operation's word: the file of common functions, and what a test requires."""
_templates = Environment(
    loader=FileSystemLoader(Path(__file__).resolve().parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


@dataclass(frozen=True, slots=True)
class FstestsTest:
    """The description of a test in its comments.

    name       its number, as its file is called
    year       of the copyright line
    message    what was found
    statement  what is expected, in prose
    found_by   the finding, the kernel, and the options of mkfs and mount, in words
    script_result  whether a script with this power cut showed it, in words
    lost       the writes that the crash lost, in words
    is_whole   the power cut makes a state like the one that was found. If not, that state keeps some writes of an epoch
               and lost others
    """

    name: str
    year: int
    message: str
    statement: str
    found_by: str
    script_result: str
    lost: tuple[str, ...]
    is_whole: bool

    @property
    def golden(self) -> str:
        """The output of the test on a file system that does what is expected of it."""
        return f"QA output created by {self.name}\nSilence is golden\n"


def fstest(
    description: FstestsTest, target: Target, workload: Workload, trees: list[Tree], symptom: Symptom, cut: Cut
) -> str:
    """Returns the test. `trees` are those of `simulate`. Raises NoCommandError if there can be none."""
    require_plain(target)
    if symptom.repaired or symptom.kind == "boot":
        raise NoCommandError("fstests mounts a file system without a repair before it")
    is_flakey = isinstance(cut, FlakeyCut)
    bodies = {
        **operations(workload, trees, target, cut),
        "is_wrong": [" &&\n\t".join(symptom.tests)] * bool(symptom.tests),
    }
    imports, required = _needs(workload.operations[: cut.operations])
    flakey, logged = ["_require_dm_target flakey"], ["_require_no_logdev", "_require_log_writes"]
    return _templates.get_template("fstests.sh.j2").render(
        about=description,
        fstype=target.fstype,
        size_mib=target.size_mib,
        options=shlex.quote(f" -o {target.options}") if target.options else "",
        comment=_comment(description, cut),
        is_flakey=is_flakey,
        is_filled=symptom.is_stale_seen or not is_flakey,
        is_journaled=target.fstype in _JOURNALS,
        imports=[*imports, "dmflakey" if is_flakey else "dmlogwrites"],
        required=[*(flakey if is_flakey else logged), *required],
        holds=HOLDS.replace(" " * 4, "\t") if symptom.is_about_contents else "",
        functions={
            name: [_XFS_IO.sub(r"\1$XFS_IO_PROG", line) for line in body] for name, body in bodies.items() if body
        },
        message=shlex.quote(visible(description.message)),
        mkfs=shlex.join(target.mkfs[1:]),
        stale=f"{STALE_BYTE:#04x}",
        flushes=0 if isinstance(cut, FlakeyCut) else cut.flushes + 1,
    )


def _needs(ran: tuple[Operation, ...]) -> tuple[list[str], list[str]]:
    """Returns the files of common functions that the operations need, and lines with their requirements."""
    needs = [_NEEDS[operation.word] for operation in ran if operation.word in _NEEDS]
    modes = dict.fromkeys(operation.mode for operation in ran if operation.word == "fallocate")
    commands = [f"_require_xfs_io_command {_FALLOCATE[mode]}" for mode in modes]
    imports = dict.fromkeys(file for file, _ in needs if file)
    return list(imports), [*dict.fromkeys(line for _, line in needs), *commands]


def _comment(description: FstestsTest, cut: Cut) -> str:
    paragraphs = [
        description.message,
        f"Expected: {description.statement}",
        *_power_cut(description, cut),
        description.script_result,
        description.found_by,
    ]
    return "\n#\n".join(_wrapped(visible(paragraph)) for paragraph in paragraphs)


def _power_cut(description: FstestsTest, cut: Cut) -> Iterator[str]:
    """Describes the power cut, and what the test cannot do."""
    if isinstance(cut, FlakeyCut):
        yield (
            "The power cut comes after the last operation: dm-flakey drops every write from then on, and all that "
            "was sent to the disk before is kept."
        )
    elif description.is_whole:
        begins, last = "the end", "what comes after the last operation"
        if cut.is_inside:
            begins, last = "the beginning", "the last operation"
        where = (
            f"flush or FUA number {cut.flushes + 1} of {last}"
            if cut.flushes >= 0
            else f"{begins} of the last operation"
        )
        yield (
            f"The power cut: the log of dm-log-writes is replayed up to {where}. What no flush had covered by then is "
            "not in it."
        )
    else:
        more = "; and more" if len(description.lost) > _LOST_MAX else ""
        lost = "; ".join(description.lost[:_LOST_MAX]) + more
        yield f"The crash that was found lost some writes between two flushes, and kept others. Lost: {lost}."
        yield (
            "Neither dm-flakey nor dm-log-writes can make this state. So this test makes a weaker check: it looks at "
            "the states that have all that was written up to each flush and FUA of the last operation, and no more. "
            "It may pass where the crash that was found still shows the problem."
        )


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False, break_long_words=False
    )
