"""Whatever calls need is made before them."""

import pytest

from postcrash.workloads import GRAMMARS, Call, Setup
from postcrash.workloads.prerequisites import runnable_workload


def text(*calls: Call) -> list[str]:
    return runnable_workload("w", calls, GRAMMARS["full"]).to_text().splitlines()


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
        (
            [Call("falloc", ("foo",), "punch-hole", "last-block")],
            ["creat foo", FILL, "fallocate foo punch-hole 28672 4096"],
        ),
        (
            [Call("append-and-extend", ("foo",)), Call("falloc", ("foo",), "zero-range", "last-block")],
            ["creat foo", "write foo 0 32768", "truncate foo 40960", "fallocate foo zero-range 36864 4096"],
        ),
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
        ([Call("cut-and-append", ("foo",)), Call("held-unlink", ("foo",), range="append")],
         ["creat foo", FILL, "open foo", "truncate @foo 0", "write @foo 0 32768", "close @foo",
          "open foo", "unlink foo", "write @foo 32768 32768", "fsync @foo"]),
        ([Call("held-creat", ("foo",), range="append"), Call("cut-and-append", ("foo",))],
         ["creat foo", "open foo", "unlink foo", "creat foo", "write @foo 0 32768", "fsync @foo", FILL,
          "close @foo", "open foo", "truncate @foo 0", "write @foo 0 32768", "close @foo"]),
        ([Call("creat", ("A/foo",)), Call("mkdir", ("A",))],
         ["mkdir A", "creat A/foo", "unlink A/foo", "rmdir A", "mkdir A"]),
        ([Call("creat", ("A/foo",)), Call("rename", ("A", "B")), Call("rename", ("A", "B"))],
         ["mkdir A", "creat A/foo", "rename A B", "mkdir A", "unlink B/foo", "rename A B"]),
        ([Call("exchange", ("A", "B")), Call("unlink", ("B/foo",))],
         ["mkdir A", "creat A/foo", "mkdir B", "creat B/foo", "exchange A B", "unlink B/foo"]),
        ([Call("rename-special", ("foo", "bar"), "fifo"), Call("fsync", ("bar",))],
         ["mknod foo fifo", "rename foo bar", "unlink bar", "creat bar", "fsync bar"]),
        ([Call("extend-unaligned", ("foo",))],
         ["creat foo", "write foo 0 32768", "truncate foo 2500", "truncate foo 10692"]),
        ([Call("append-and-extend", ("foo",))], ["creat foo", "write foo 0 32768", "truncate foo 40960"]),
        ([Call("append-and-cut", ("foo",)), Call("append-and-extend", ("foo",))],
         ["creat foo", "write foo 0 32768", "truncate foo 24576", "write foo 24576 32768", "truncate foo 65536"]),
        ([Call("write", ("foo",), range="inside")], ["creat foo", "write foo 0 2500", "write foo 2500 100"]),
        ([Call("write", ("foo",), range="append"), Call("write", ("foo",), range="inside")],
         ["creat foo", "write foo 0 32768", "write foo 32768 2500", "write foo 35268 100"]),
        ([Call("write", ("foo",), range="overlap-extending"), Call("write", ("foo",), range="inside")],
         ["creat foo", FILL, "write foo 30768 5000", "write foo 35768 100"]),
        ([Call("removexattr", ("foo",))],
         ["creat foo", "setxattr foo user.xattr1 val1", "removexattr foo user.xattr1"]),
        ([Call("setxattr", ("foo",)), Call("removexattr", ("foo",))],
         ["creat foo", "setxattr foo user.xattr1 val1", "removexattr foo user.xattr1"]),
        ([Call("reflink", ("foo", "bar")), Call("falloc", ("bar",), "collapse-range", "overlap")],
         ["creat foo", "creat bar", FILL, "reflink foo 0 bar 0 8192", "write bar 0 32768",
          "fallocate bar collapse-range 0 8192"]),
        ([Call("link", ("foo", "bar")), Call("reflink", ("foo", "bar"))],
         ["creat foo", "link foo bar", "unlink bar", "creat bar", FILL, "reflink foo 0 bar 0 8192"]),
        ([Call("mknod", ("foo",), "fifo"), Call("write", ("foo",), range="append")],
         ["mknod foo fifo", "unlink foo", "creat foo", "write foo 0 32768"]),
        ([Call("replace", ("foo", "bar"))],
         ["creat bar", "write bar 0 32768", "creat foo", FILL, "rename foo bar"]),
        ([Call("replace", ("A", "B"))], ["mkdir B", "mkdir A", "creat A/foo", "rename A B"]),
        ([Call("rename-symlink", ("foo", "bar")), Call("fsync", (".",))],
         ["symlink target foo", "rename foo bar", "fsync ."]),
        ([Call("creat", ("foo",)), Call("rename-symlink", ("foo", "bar"))],
         ["creat foo", "unlink foo", "symlink target foo", "rename foo bar"]),
        ([Call("reuse-creat", ("foo",))], ["creat foo", FILL, "unlink foo", "creat foo"]),
        ([Call("reuse-mkdir", ("foo",)), Call("fsync", ("foo",)), Call("setxattr", ("foo",))],
         ["creat foo", FILL, "unlink foo", "mkdir foo", "fsync foo", "rmdir foo", "creat foo",
          "setxattr foo user.xattr1 val1"]),
        ([Call("reuse-link", ("foo", "bar"))],
         ["creat bar", "creat foo", FILL, "unlink foo", "link bar foo"]),
        ([Call("reuse-mkdir", ("foo",)), Call("replace", ("bar", "foo"))],
         ["creat foo", FILL, "unlink foo", "mkdir foo", "rmdir foo", "creat foo", FILL, "creat bar",
          "write bar 0 32768", "rename bar foo"]),
        ([Call("symlink", ("foo", "bar")), Call("fsync", ("bar",))],
         ["symlink foo bar", "unlink bar", "creat bar", "fsync bar"]),
    ],
)  # fmt: skip
def test_what_is_missing_is_made_first(calls: list[Call], lines: list[str]) -> None:
    assert text(*calls) == lines


LOG = ["append foo 4096", "fsync foo"]


@pytest.mark.parametrize(
    ("setup", "calls", "lines"),
    [
        ("synced", [Call("rename", ("foo", "A/bar")), Call("fsync", ("A",))],
         ["creat foo", "mkdir A", "---", "rename foo A/bar", "fsync A"]),
        ("logged", [Call("rename", ("foo", "A/bar")), Call("fsync", ("A",))],
         ["creat foo", "mkdir A", "---", *LOG, "rename foo A/bar", "fsync A"]),
        ("synced", [Call("truncate", ("foo",), range="unaligned")], ["creat foo", FILL, "---", "truncate foo 2500"]),
        ("logged", [Call("write", ("foo",), range="append")], ["creat foo", "---", *LOG, "write foo 4096 32768"]),
        ("logged", [Call("removexattr", ("foo",))],
         ["creat foo", "setxattr foo user.xattr1 val1", "---", *LOG, "removexattr foo user.xattr1"]),
        ("synced", [Call("creat", ("foo",)), Call("write", ("foo",), range="overlap-unaligned")],
         ["creat foo", FILL, "write foo 0 5000"]),
        ("synced", [Call("unlink", ("foo",)), Call("fsync", ("foo",)), Call("fsync", ("bar",))],
         ["creat foo", "creat bar", "---", "unlink foo", "creat foo", "fsync foo", "fsync bar"]),
        ("synced", [Call("symlink", ("A/foo", "bar")), Call("fsync", ("A/bar",))],
         ["symlink A/foo bar", "mkdir A", "creat A/bar", "fsync A/bar"]),
        ("logged", [Call("rename", ("A", "B"))], ["mkdir A", "---", "rename A B"]),
        ("synced", [Call("replace", ("foo", "bar"))],
         ["creat bar", "write bar 0 32768", "---", "creat foo", FILL, "rename foo bar"]),
        ("synced", [Call("rename-symlink", ("foo", "bar"))], ["symlink target foo", "---", "rename foo bar"]),
        ("synced", [Call("reuse-link", ("foo", "bar"))],
         ["creat bar", "creat foo", FILL, "---", "unlink foo", "link bar foo"]),
    ],
)  # fmt: skip
def test_what_is_needed_first_can_be_the_set_up(setup: Setup, calls: list[Call], lines: list[str]) -> None:
    assert runnable_workload("w", calls, GRAMMARS["full"], setup).to_text().splitlines() == lines
