"""What an application needs of a file system, from the system calls that it made (`postcrash.apps.protocol`).

Reading order: `assumptions` (what properties of a file system say of its changes), `space` (the folders that a crash
can leave under some of them), `needs` (the smallest sets of properties under which all is well), and `advice` (which
flushes are needed, and which are missing).
"""

from postcrash.apps.needs.advice import Advice, advise
from postcrash.apps.needs.assumptions import ASSUMPTIONS, Assumption
from postcrash.apps.needs.needs import BadFolder, EnoughSet, Needs, SearchLimits, find_needs, in_order, is_enough

__all__ = [
    "ASSUMPTIONS",
    "Advice",
    "Assumption",
    "BadFolder",
    "EnoughSet",
    "Needs",
    "SearchLimits",
    "advise",
    "find_needs",
    "in_order",
    "is_enough",
]
