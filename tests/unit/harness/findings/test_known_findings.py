"""A failure in the words of a known finding is the known one only where the workload runs the finding's operations."""

import pytest

from postcrash.harness.findings.known_findings import has_operations_of, known_findings, other_than
from postcrash.model import parse_workload

KNOWN = "mkdir a\ncreat b\n---\nrename b a/c\nfsync a\n"


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (KNOWN, True),
        ("mkdir A\nmkdir A/B\ncreat foo\n---\nrename foo A/B/bar\nfsync A/B\n", True),
        ("mkdir A\ncreat foo\nsync\nappend foo 4096\n---\nrename foo A/bar\nlink A/bar baz\nfsync A\n", True),
        ("creat foo\nmkdir A\n---\nrename foo A/bar\nfsync A\n", True),
        ("mkdir A\ncreat foo\n---\nlink foo A/bar\nfsync A\n", False),
        ("mkdir A\ncreat foo\n---\nrename foo A/bar\nfsync .\n", False),
        ("mkdir A\ncreat foo\n---\nrename foo A/bar\nfsync A/bar\n", False),
        ("mkdir A\nmkdir B\ncreat foo\n---\nrename foo B/bar\nfsync A\n", False),
        ("mkdir A\ncreat foo\n---\nfsync A\nrename foo A/bar\n", False),
        ("mkdir A\ncreat foo\ncreat bar\n---\nrename foo A/baz\nrename bar A/foo\nfdatasync A\n", False),
    ],
)
def test_the_operations_of_a_workload_in_another_one(text: str, has: bool) -> None:
    assert has_operations_of(parse_workload(text, "w"), parse_workload(KNOWN, "known")) is has


@pytest.mark.parametrize(
    ("known", "text", "has"),
    [
        ("creat a\nappend a 1\nfsync a\n", "creat a\nwrite a 4096 4096\nfsync a\n", True),
        ("creat a\nappend a 1\nfsync a\n", "creat a\nmmapwrite a 4096 4096\nfsync a\n", False),
        ("creat a\nappend a 1\n", "creat a\nwrite-osync a 0 1\n", False),
        ("creat a\nfallocate a punch-hole 0 1\n", "creat a\nfallocate a keep-size 0 1\n", False),
        ("creat a\nopen a\nunlink a\nfsync @a\n", "creat a\nopen a\nunlink a\ncreat a\nfsync a\n", False),
        ("creat a\ncreat b\nrename a b\n", "creat a\nrename a a\n", False),
        ("creat a\nfsync a\ncreat b\n", "creat a\ncreat b\nfsync a\n", False),
        ("creat a\nfsync .\n", "mkdir A\ncreat A/foo\nfsync A\n", True),
    ],
)
def test_what_makes_operations_the_same(known: str, text: str, has: bool) -> None:
    assert has_operations_of(parse_workload(text, "w"), parse_workload(known, "known")) is has


def test_each_finding_is_in_its_own_smallest_workloads() -> None:
    for name, finding in known_findings().items():
        for showing in finding.shows:
            words = (showing.judge, showing.message, showing.lost)
            for workload in showing.smallest:
                assert not other_than(finding.targets[0], "cache", words, workload), name


def test_words_of_a_known_finding_without_its_operations() -> None:
    showing = known_findings()["btrfs-half-a-rename"].shows[0]
    words = (showing.judge, showing.message, showing.lost)
    workload = parse_workload("creat a\nlink a b\nfsync a\n", "w")
    assert other_than("btrfs", "cache", words, workload) == "btrfs-half-a-rename"
    assert not other_than("xfs", "cache", words, workload)
    assert not other_than("btrfs", "torn:512", words, workload)
    assert not other_than("btrfs", "cache", (showing.judge, "other words", ()), workload)
