"""Bounded workloads: every sequence of so many operations on a few files, each followed by a persistence operation.

A grammar (`grammar.py`, `catalogue.py`) is data: operations with the arguments that they may have, and what may follow
them. A space (`space.py`) numbers its workloads; `settle.py` makes a number's calls a workload that can run.
"""

from postcrash.workloads.catalogue import GRAMMARS
from postcrash.workloads.grammar import SETUPS, Call, Grammar, Setup
from postcrash.workloads.random import Draft, Pool
from postcrash.workloads.space import WorkloadSpace
from postcrash.workloads.symmetry import canonical

__all__ = ["GRAMMARS", "SETUPS", "Call", "Draft", "Grammar", "Pool", "Setup", "WorkloadSpace", "canonical"]
