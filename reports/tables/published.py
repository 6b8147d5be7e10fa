"""What others have published, to be shown next to our own verdicts. It never decides a verdict.

HotDep'13, Table 1: T. S. Pillai, V. Chidambaram, J.-Y. Hwang, A. C. Arpaci-Dusseau, R. H. Arpaci-Dusseau, "Towards
Efficient, Portable Application-Level Consistency", HotDep 2013. Measured on Linux 3.2. A blank cell of the paper is a
reproducible counterexample (here VIOLATED); a tick means that the authors found none (here HOLDS). The table has no
column for the null-bytes variation of P2.

OSDI'14, Table 1: T. S. Pillai et al., "All File Systems Are Not Created Equal: On the Complexity of Crafting
Crash-Consistent Applications", OSDI 2014. There a cross is a reproducible counterexample, and a blank means that none
was found. It is not certain what it says of `append → any` on btrfs, xfs and xfs-wsync, so these entries are left out.
"""

from postcrash.model import Verdict

SOURCE = "HotDep'13, Table 1, or OSDI'14, Table 1"
KERNEL = "Linux 3.2"
"""Of HotDep'13."""

_PROPERTIES = ("P1", "P2", "P3", "P4", "P5")
_HOTDEP13 = {
    "ext3-ordered": "✓✓✓✓✓",
    "ext3-writeback": "✓✗✗✓✓",
    "ext4-original": "✓✓✗✓✗",
    "ext4-current": "✓✓✗✓✓",
    "btrfs": "✗✓✗✓✓",
}
_OSDI14_TARGETS = (
    *("ext2", "ext2-sync", "ext3-writeback", "ext3-ordered", "ext3-journal", "ext4-writeback", "ext4-current"),
    *("ext4-nodelalloc", "ext4-journal", "btrfs", "xfs", "xfs-wsync"),
)
_OSDI14 = {
    "O-sector-overwrite": "✓✓✓✓✓✓✓✓✓✓✓✓",
    "O-sector-append": "✗✓✗✓✓✗✓✓✓✓✓✓",
    "O-block-overwrite": "✗✗✗✗✓✗✗✗✓✓✗✗",
    "O-block-append": "✗✗✗✓✓✗✓✓✓✓✓✓",
    "O-blocks": "✗✗✗✗✗✗✗✗✗✗✗✗",
    "O-prefix-append": "✗✗✗✓✓✗✓✓✓✓✓✓",
    "O-dir": "✗✗✓✓✓✓✓✓✓✓✓✓",
    "O-overwrite-any": "✗✓✗✗✓✗✗✗✓✓✗✗",
    "O-append-rename-any": "✗✓✗✓✓✗✓✓✓✓✓✓",
    "O-trunc-append-any": "✗✓✗✓✓✗✓✓✓✓✓✓",
    "O-append-append": "✗✓✗✓✓✗✓✓✓✓✓✓",
    "O-append-any": "✗✓✗✓✓✗✗✓✓???",
    "O-dir-any": "✗✓✓✓✓✓✓✓✓✗✓✓",
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
"""Why Linux 6.1 breaks what HotDep'13 found to hold. Found by reading witnesses and the kernel's source."""

_APPENDS = ("O-prefix-append", "O-append-append")
_TWO_STEPS = ("O-append-rename-any", "O-trunc-append-any")
_OVERWRITTEN_LATER = (
    "the later operation is an overwrite in place, written back before the journal commits; the paper does not seem to "
    "count those"
)
_STARTED = "write-back of the file is started and not waited for: the log commits first, and the file is empty"
_WHY_OSDI14 = (
    (("O-sector-append", *_APPENDS), ("ext3-ordered", "ext4-current", "ext4-nodelalloc"), _IN_BLOCK),
    (_APPENDS, ("btrfs", "xfs", "xfs-wsync"), _SECOND_PAGE),
    (("O-append-any",), ("ext3-ordered", "ext4-nodelalloc"), _OVERWRITTEN_LATER),
    (_TWO_STEPS, ("ext3-ordered", "ext4-current", "ext4-nodelalloc"), _OVERWRITTEN_LATER),
    (
        ("O-dir-any",),
        ("ext3-ordered", "ext3-writeback", "ext4-current", "ext4-nodelalloc", "ext4-writeback", "xfs"),
        _OVERWRITTEN_LATER,
    ),
    (_TWO_STEPS, ("xfs", "xfs-wsync"), _STARTED),
    (
        (*_TWO_STEPS, "O-overwrite-any"),
        ("btrfs",),
        "fsync of another file goes by the log tree, without the data of this one; since 3.17 a commit does not wait "
        "for the data of a renamed file",
    ),
    (("O-dir",), ("btrfs",), "after rename D/a E/b; fsync E the log has the new name and not the removal of the old"),
    (
        ("O-sector-append", "O-append-rename-any", "O-dir-any"),
        ("ext2-sync",),
        "a sync mount flushes the drive after a write, not after a directory operation; data and inode of a write are "
        "in flight together",
    ),
    (
        ("O-blocks",),
        ("ext3-journal", "ext4-journal"),
        "a write is split only by a commit in its middle; here operations and commits take turns",
    ),
    (
        ("O-block-append",),
        ("ext4-writeback",),
        "since 5.6 new blocks are unwritten extents until their I/O has completed, whatever the data mode",
    ),
)
"""Why Linux 6.1 differs from OSDI'14: rows, targets, reason."""


def published(target: str, prop: str) -> Verdict | None:
    """The published verdict on `prop` of `target`. None if there is none, or if it is not legible."""
    symbols = dict(zip(_PROPERTIES, _HOTDEP13.get(target, ""), strict=False))
    symbols.update(
        {name: dict(zip(_OSDI14_TARGETS, row, strict=True)).get(target, "") for name, row in _OSDI14.items()}
    )
    verdict = _VERDICTS.get(symbols.get(prop, ""))
    return None if verdict is Verdict.UNDECIDED else verdict


def published_for(prop: str) -> str:
    """The kernel or paper of a published verdict on `prop`."""
    return "OSDI'14" if prop in _OSDI14 else KERNEL


def why_otherwise(target: str, prop: str) -> str:
    """Why a current kernel differs on `prop` of `target` from what was published. Empty if we do not know."""
    reasons = (why for rows, targets, why in _WHY_OSDI14 if prop in rows and target in targets)
    return _WHY.get((target, prop)) or next(reasons, "")
