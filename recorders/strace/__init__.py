"""Turns the system calls of a program, as strace(1) prints them, into a workload.

Reading order: `reader` (lines to calls), `arguments` (the text between the parentheses), `folder` (the names below the
imported folder), `state` (processes, descriptors, the workload so far), `initial` (what the folder held before),
`names`, `contents` and `descriptors` (the handlers of calls), `importer` (all of it), and `program` (strace).
"""

from postcrash.recorders.strace.importer import ImportedTrace, import_strace, prepare
from postcrash.recorders.strace.program import COMMAND, StraceMissing, run_under_strace
from postcrash.recorders.strace.reader import StraceError
from postcrash.recorders.strace.state import CallSource, ImportState, NotMapped

__all__ = [
    "COMMAND",
    "CallSource",
    "ImportState",
    "ImportedTrace",
    "NotMapped",
    "StraceError",
    "StraceMissing",
    "import_strace",
    "prepare",
    "run_under_strace",
]
