"""Bounded workloads: every sequence of so many operations on a few files, each followed by a persistence operation.

A grammar (`grammar.py`, `catalogue.py`) is data: operations with the arguments that they may have, and what may follow
them. A space (`space.py`) numbers its workloads; `settle.py` makes a number's calls a workload that can run.
"""

from postcrash.workloads.catalogue import GRAMMARS
from postcrash.workloads.grammar import Call, Grammar
from postcrash.workloads.space import Space
from postcrash.workloads.symmetry import canonical

__all__ = ["GRAMMARS", "Call", "Grammar", "Space", "canonical"]
