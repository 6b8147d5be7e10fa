"""What the system calls of an application change, in the order in which it made them.

Reading order: `trace` (what each call changed), `states` (the folder that some of these changes leave), and `survival`,
which asks of a folder that a crash really left which of the changes it has.
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
