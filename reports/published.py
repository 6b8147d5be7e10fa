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

_IN_BLOCK = (
    "a commit of ext4's driver, which serves ext3 too, does not wait for data in blocks that the file already had"
)
_SECOND_PAGE = "the size is set although an earlier page has not been written back"
_WHY = {
    ("ext3-ordered", "P2"): _IN_BLOCK,
    ("ext3-ordered", "P3"): _IN_BLOCK,
    ("ext3-writeback", "P5"): (
        "ext4's driver starts write-back at such a rename only for delayed allocations, which ext3 mounts do not have"
    ),
    ("ext4-original", "P2"): f"{_SECOND_PAGE}; and {_IN_BLOCK}",
    ("ext4-current", "P2"): f"{_SECOND_PAGE}; and {_IN_BLOCK}",
    ("ext4-current", "P5"): (
        "since 5.6 new blocks are unwritten extents until their I/O has completed; the rename's commit does not wait"
    ),
    ("btrfs", "P2"): _SECOND_PAGE,
    (
        "btrfs",
        "P5",
    ): "since 3.17 (commit 8d875f95da43) a commit does not wait for the data of a file renamed over another",
}
"""Why Linux 6.1 breaks what the paper found to hold. Found by reading witnesses and the kernel's source."""


def published(target: str, prop: str) -> Verdict | None:
    """The published verdict on `prop` of `target`; None if there is none."""
    symbols = dict(zip(_PROPERTIES, _HOTDEP13.get(target, ""), strict=False))
    return _VERDICTS.get(symbols.get(prop, ""))


def why_otherwise(target: str, prop: str) -> str:
    """Why a current kernel breaks `prop` on `target` where the paper found that it holds; empty if we do not know."""
    return _WHY.get((target, prop), "")
