"""Shared concepts of postcrash: workloads, simulated and observed trees, histories, verdicts.

Reading order: `operation` (the table of the language), `workload` (its parser), `tree` and `segments`, `simulate`,
`observation`, `history`, `verdict`, `judge`, `pattern`. This package imports no other package of ours.
"""

from postcrash.model.builder import WorkloadBuilder
from postcrash.model.choices import UndecidedBytes, every_answer
from postcrash.model.content import all_from, any_from, runs, source_at, sources
from postcrash.model.history import History
from postcrash.model.observation import FsckResult, Observation, ObservationError, Usage
from postcrash.model.operation import FORMS, Form, Naming, Operation, Persistence, Route, words_where
from postcrash.model.pattern import pattern, splitmix64, stale
from postcrash.model.segments import Segment, Segments
from postcrash.model.simulate import SimulationError, simulate
from postcrash.model.tree import Entry, EntryType, Tree
from postcrash.model.verdict import NO_TIME_FOR_CHECKS, NO_TIME_FOR_MORE_LOOKS, ExitCode, Verdict, worst
from postcrash.model.workload import Workload, WorkloadError, load_workload, parse_workload

__all__ = [
    "FORMS",
    "NO_TIME_FOR_CHECKS",
    "NO_TIME_FOR_MORE_LOOKS",
    "Entry",
    "EntryType",
    "ExitCode",
    "Form",
    "FsckResult",
    "History",
    "Naming",
    "Observation",
    "ObservationError",
    "Operation",
    "Persistence",
    "Route",
    "Segment",
    "Segments",
    "SimulationError",
    "Tree",
    "UndecidedBytes",
    "Usage",
    "Verdict",
    "Workload",
    "WorkloadBuilder",
    "WorkloadError",
    "all_from",
    "any_from",
    "every_answer",
    "load_workload",
    "parse_workload",
    "pattern",
    "runs",
    "simulate",
    "source_at",
    "sources",
    "splitmix64",
    "stale",
    "words_where",
    "worst",
]
