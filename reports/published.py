"""What others have published, to be shown beside our own verdicts. Never used to come to one.

HotDep'13, Table 1: T. S. Pillai, V. Chidambaram, J.-Y. Hwang, A. C. Arpaci-Dusseau, R. H. Arpaci-Dusseau, "Towards
Efficient, Portable Application-Level Consistency", HotDep 2013. Measured on Linux 3.2. A blank cell of the paper is a
reproducible counterexample (here VIOLATED); a tick means that the authors found none (here HOLDS). The table has no
column for the null-bytes variation of P2.
"""

from postcrash.model import Verdict

SOURCE = "HotDep'13, Table 1"
KERNEL = "Linux 3.2"

_PROPERTIES = ("P1", "P2", "P3", "P4", "P5")
_HOTDEP13 = {
    "ext3-ordered": "✓✓✓✓✓",
    "ext3-writeback": "✓✗✗✓✓",
    "ext4-original": "✓✓✗✓✗",
    "ext4-current": "✓✓✗✓✓",
    "btrfs": "✗✓✗✓✓",
}
_VERDICTS = {verdict.symbol: verdict for verdict in Verdict}


def published(target: str, prop: str) -> Verdict | None:
    """The published verdict on `prop` of `target`; None if there is none."""
    symbols = dict(zip(_PROPERTIES, _HOTDEP13.get(target, ""), strict=False))
    return _VERDICTS.get(symbols.get(prop, ""))
