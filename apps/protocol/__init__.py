"""The changes that the system calls of an application make, in their order.

Reading order: `trace` (what each call changed), `states` (the folder that some of these changes leave), and `survival`
(which of the changes a folder has that a real crash left).
"""

from postcrash.apps.protocol.survival import Prefixes, Survival, UnorderedError
from postcrash.apps.protocol.trace import Protocol, Step, TraceError, read_trace, unpacked

__all__ = [
    "Prefixes",
    "Protocol",
    "Step",
    "Survival",
    "TraceError",
    "UnorderedError",
    "read_trace",
    "unpacked",
]
