"""What calls need is made before them."""

import pytest

from postcrash.workloads import GRAMMARS, Call
from postcrash.workloads.settle import settled


def text(*calls: Call) -> list[str]:
    return settled("w", calls, GRAMMARS["full"]).to_text().splitlines()


FILL = "write foo 0 32768"
MMAP = ["fallocate foo none 0 32768", "mmapwrite foo 0 32768", "msync foo 0 8192"]


@pytest.mark.parametrize(
    ("calls", "lines"),
    [
        ([Call("creat", ("A/foo",))], ["mkdir A", "creat A/foo"]),
        ([Call("fsync", ("B",))], ["mkdir B", "fsync B"]),
        ([Call("fsync", (".",))], ["fsync ."]),
        ([Call("write", ("foo",), range="append")] * 2, ["creat foo", FILL, "write foo 32768 32768"]),
        ([Call("write", ("foo",), range="overlap-unaligned")], ["creat foo", FILL, "write foo 0 5000"]),
        ([Call("write", ("foo",), range="overlap-extending")], ["creat foo", FILL, "write foo 30768 5000"]),
        ([Call("write", ("foo",), range="hole")], ["creat foo", "write foo 8192 5000"]),
        ([Call("dwrite", ("foo",), range="overlap")], ["creat foo", FILL, "dwrite-osync foo 0 8192"]),
        ([Call("mmapwrite", ("foo",), range="append")], ["creat foo", *MMAP]),
        (
            [Call("falloc", ("foo",), "keep-size", "append"), Call("write", ("foo",), range="append")],
            ["creat foo", FILL, "fallocate foo keep-size 32768 32768", "write foo 32768 32768"],
        ),
        (
            [Call("falloc", ("foo",), "none", "overlap-extending"), Call("dwrite", ("foo",), range="append")],
            ["creat foo", FILL, "fallocate foo none 30768 5000", "dwrite-osync foo 35840 32768"],
        ),
        (
            [Call("truncate", ("foo",), range="aligned"), Call("write", ("foo",), range="overlap-unaligned")],
            ["creat foo", FILL, "truncate foo 0", FILL, "write foo 0 5000"],
        ),
        (
            [Call("link", ("foo", "bar")), Call("creat", ("bar",))],
            ["creat foo", "link foo bar", "unlink bar", "creat bar"],
        ),
        ([Call("rename", ("foo", "bar")), Call("fsync", ("foo",))],
         ["creat foo", "rename foo bar", "creat foo", "fsync foo"]),
        ([Call("link", ("foo", "bar")), Call("rename", ("foo", "bar")), Call("unlink", ("foo",))],
         ["creat foo", "link foo bar", "rename foo bar", "unlink foo"]),
        ([Call("held-unlink", ("foo",), range="overlap-unaligned")] * 2,
         ["creat foo", FILL, "open foo", "unlink foo", "write @foo 0 5000", "fsync @foo",
          "creat foo", FILL, "close @foo", "open foo", "unlink foo", "write @foo 0 5000", "fsync @foo"]),
        ([Call("held-creat", ("foo",), range="append"), Call("write", ("foo",), range="append")],
         ["creat foo", "open foo", "unlink foo", "creat foo", "write @foo 0 32768", "fsync @foo", FILL]),
        ([Call("held-rename", ("foo", "bar"), range="append"), Call("write", ("bar",), range="append")],
         ["creat foo", "open foo", "rename foo bar", "write @foo 0 32768", "fsync @foo", "write bar 32768 32768"]),
        ([Call("creat", ("A/foo",)), Call("mkdir", ("A",))],
         ["mkdir A", "creat A/foo", "unlink A/foo", "rmdir A", "mkdir A"]),
        ([Call("creat", ("A/foo",)), Call("rename", ("A", "B")), Call("rename", ("A", "B"))],
         ["mkdir A", "creat A/foo", "rename A B", "mkdir A", "unlink B/foo", "rename A B"]),
        ([Call("exchange", ("A", "B")), Call("unlink", ("B/foo",))],
         ["mkdir A", "mkdir B", "exchange A B", "creat B/foo", "unlink B/foo"]),
        ([Call("removexattr", ("foo",))],
         ["creat foo", "setxattr foo user.xattr1 val1", "removexattr foo user.xattr1"]),
        ([Call("setxattr", ("foo",)), Call("removexattr", ("foo",))],
         ["creat foo", "setxattr foo user.xattr1 val1", "removexattr foo user.xattr1"]),
        ([Call("symlink", ("foo", "bar")), Call("fsync", ("bar",))],
         ["symlink foo bar", "unlink bar", "creat bar", "fsync bar"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_made_first(calls: list[Call], lines: list[str]) -> None:
    assert text(*calls) == lines
