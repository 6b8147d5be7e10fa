"""Litmus table of blocks: what was written, and how it is described."""

import struct

import pytest

from postcrash.model import Workload, parse_workload, pattern
from postcrash.reports.explanation.block_content import INDEXED_SECTORS_MAX, describe

from ..conftest import block

WORKLOAD = parse_workload(
    "creat a\nappend a 100\n---\nappend a 5000\ncreat b\nwrite b 0 4096\ndwrite b 512 512\nwrite b 1M 4096\n", "litmus"
)


NOISE = bytes(range(256)) * 16
JBD2_COMMIT = block(struct.pack(">III", 0xC03B3998, 2, 8))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bytes(8192), "zeros"),
        (NOISE, "metadata"),
        (NOISE * 3, "metadata (3 blocks)"),
        (
            block(pattern(0, 0, 100), pattern(1, 100, 3996)),
            "`append a 100` (bytes 0 to 100), `append a 5000` (bytes 100 to 4096)",
        ),
        (block(pattern(1, 4096, 1004)), "`append a 5000` (bytes 4096 to 5100), zeros"),
        (
            block(pattern(0, 0, 100), pattern(1, 100, 3996)) + block(pattern(1, 4096, 1004)),
            "`append a 100` (bytes 0 to 100), `append a 5000` (bytes 100 to 5100), zeros",
        ),
        (block(pattern(0, 0, 100)), "`append a 100` (bytes 0 to 100), zeros"),
        (pattern(3, 512, 512), "`dwrite b 512 512` (bytes 512 to 1024)"),
        (
            block(pattern(2, 0, 512), pattern(3, 512, 512), pattern(2, 1024, 3072)),
            "`write b 0 4096` (bytes 0 to 512), `dwrite b 512 512` (bytes 512 to 1024), "
            "`write b 0 4096` (bytes 1024 to 4096)",
        ),
        (pattern(4, 1 << 20, 4096), f"`write b 1048576 4096` (bytes {1 << 20} to {(1 << 20) + 4096})"),
        (block(bytes(512), pattern(2, 512, 3584)), "zeros, `write b 0 4096` (bytes 512 to 4096)"),
        (NOISE + bytes(4096) + JBD2_COMMIT, "metadata, zeros, jbd2 commit block (transaction 8)"),
        ((NOISE + bytes(4096)) * 3, "metadata, zeros, metadata, zeros, 2 more"),
        (block(pattern(2, 8192, 4096)), "metadata"),
        (block(pattern(9, 0, 4096)), "metadata"),
        (block(pattern(2, 0, 4000), b"x" * 96), "metadata"),
        (block(b"\x01"), "metadata"),
    ],
)
def test_blocks_are_described(data: bytes, words: str) -> None:
    assert describe(data, WORKLOAD) == words


def test_a_workload_that_writes_nothing_explains_nothing() -> None:
    assert describe(block(pattern(0, 0, 4096)), parse_workload("mkdir d", "empty")) == "metadata"


def test_what_a_long_workload_writes_last_is_not_recognised() -> None:
    end = INDEXED_SECTORS_MAX * 512
    long = Workload("long", (), parse_workload(f"creat a\nwrite a 0 {end}\nwrite a {end} 4096", "long").ops)
    assert describe(pattern(0, 0, 4096), long) == f"`write a 0 {end}` (bytes 0 to 4096)"
    assert describe(pattern(1, end, 4096), long) == "metadata"


def test_blocks_without_a_name_belong_to_the_tree_block_before_them() -> None:
    header = block(
        bytes(48), struct.pack("<QQ", 4096, 1 << 56 | 1), bytes(16), struct.pack("<QQIB", 9, 2**64 - 6, 0, 0)
    )
    assert describe(header + NOISE * 3, WORKLOAD) == "btrfs tree block (log tree, generation 9)"
    assert describe(JBD2_COMMIT + NOISE, WORKLOAD) == "jbd2 commit block (transaction 8), metadata"
