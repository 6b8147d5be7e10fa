"""The first line of a group: after which operations what a user loses."""

from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.hunting.losses import calls_to_blame, headline
from postcrash.model import parse_workload
from postcrash.store.records import Finding

from .pretence import found, plan


def finding(folder: Path, text: str, message: str, started: int, returned: int) -> Finding:
    asked = replace(plan(folder), workload=parse_workload(text, "w"))
    return replace(found(asked, message, "r-clean"), started=started, returned=returned)


@pytest.mark.parametrize(
    ("text", "message", "instant", "line"),
    [
        (
            "creat a\nappend a 4096\nfsync a",
            "fsync a (operation 3) had returned, but a is 0 bytes long; it promised 4096",
            (3, 3),
            "after `creat a; append a 4096; fsync a`: a is 0 bytes long; it promised 4096",
        ),
        (
            "creat a\n---\nrename a b\nfsync .",
            "fsync . (operation 3) had returned after rename a b (operation 2), but a is there",
            (3, 3),
            "after `rename a b; fsync .`: a is there",
        ),
        (
            "creat a\n---\nrename a b\nfsync b",
            "mount failed with EUCLEAN (Structure needs cleaning)",
            (3, 2),
            "in `fsync b`, after `rename a b`: mount failed with EUCLEAN (Structure needs cleaning)",
        ),
        (
            "creat a\n---\ncreat b\nrename b a",
            "rename b a (operation 3) is visible, but a is 0 bytes long",
            (3, 3),
            "after `creat b; rename b a`: a is 0 bytes long",
        ),
        ("creat a\n---\nrename a b", "a is missing", (1, 1), "after the set-up: a is missing"),
        ("creat a\n---\nrename a b", "it is lost", (2, 1), "in `rename a b`: it is lost"),
        ("\n".join(f"creat {n}" for n in "abcdefg"), "a is missing", (7, 7), "after `…; creat c; creat d; creat e; "),
    ],
)
def test_a_headline_has_the_operations_and_what_is_lost(
    tmp_path: Path, text: str, message: str, instant: tuple[int, int], line: str
) -> None:
    told = headline(finding(tmp_path, text, message, *instant))
    assert told == line or (line.endswith(" ") and told.startswith(line))


@pytest.mark.parametrize(
    ("text", "message", "calls"),
    [
        ("creat a\nwrite-osync a 0 1\nopen a\nrename a b\nfsync @a", "b is missing, a is back", ("rename", "fsync")),
        ("mkdir a\ncreat a/b\nfsync a/b\nrename a c\nfsync .", "c/b is missing", ("rename", "fsync")),
        ("creat a\nfsync a", "a is missing", ("creat", "fsync")),
        ("creat a\nappend a 1\nappend a 1\nfsync a", "a is empty", ("append", "fsync")),
        ("creat a\nfallocate a keep-size 0 4096\nfsync a", "a is long", ("fallocate keep-size", "fsync")),
        ("creat a\nsync", "mount failed with EIO", ("creat", "sync")),
        ("creat b\nmkdir c\nrename b d\nsync", "d is a dir and a file of 4 bytes", ("rename", "sync")),
    ],
)
def test_the_calls_to_blame_begin_with_the_last_change_of_what_is_wrong(
    tmp_path: Path, text: str, message: str, calls: tuple[str, ...]
) -> None:
    count = text.count("\n") + 1
    assert calls_to_blame(finding(tmp_path, text, message, count, count)) == calls
