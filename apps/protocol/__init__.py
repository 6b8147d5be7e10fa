"""What an application needs of a file system, from the system calls that it made.

Reading order: `trace` (what each call changed), `assumptions` (what properties of a file system say of these changes),
`space` (the folders that a crash can leave under some of them), `states` (one of these folders), `needs` (the smallest
sets of properties under which all is well), and `advice` (which flushes are needed, and which are missing). `survival`
asks of a folder that a crash really left which of the changes it has.
"""

from postcrash.apps.protocol.advice import Advice, advise
from postcrash.apps.protocol.assumptions import ASSUMPTIONS, Assumption
from postcrash.apps.protocol.needs import BadFolder, EnoughSet, Extent, Needs, find_needs, in_order, is_enough
from postcrash.apps.protocol.survival import Prefixes, Survival, UnorderedError
from postcrash.apps.protocol.trace import Protocol, Step, TraceError, read_trace, unpacked

__all__ = [
    "ASSUMPTIONS",
    "Advice",
    "Assumption",
    "BadFolder",
    "EnoughSet",
    "Extent",
    "Needs",
    "Prefixes",
    "Protocol",
    "Step",
    "Survival",
    "TraceError",
    "UnorderedError",
    "advise",
    "find_needs",
    "in_order",
    "is_enough",
    "read_trace",
    "unpacked",
]
