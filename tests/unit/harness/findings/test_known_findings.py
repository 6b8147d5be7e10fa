"""A failure in the words of a known finding is the known one only where the workload runs the finding's operations."""

import pytest

from postcrash.harness.findings.known_findings import distinction, has_operations_of, known_findings
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
                told_apart = distinction(finding.targets[0], "cache", words, workload)
                assert not told_apart or name in told_apart.removeprefix("as ").split(", "), name


def test_words_of_a_known_finding_without_its_operations() -> None:
    showing = known_findings()["btrfs-half-a-rename"].shows[0]
    words = (showing.judge, showing.message, showing.lost)
    workload = parse_workload("creat a\nlink a b\nfsync a\n", "w")
    assert distinction("btrfs", "cache", words, workload) == "other than btrfs-half-a-rename"
    assert not distinction("xfs", "cache", words, workload)
    assert not distinction("btrfs", "torn:512", words, workload)
    assert not distinction("btrfs", "cache", (showing.judge, "other words", ()), workload)


def test_known_findings_in_the_same_words_are_told_apart() -> None:
    """Otherwise the line of one accepts the other, also on a kernel where that one was mended."""
    found = {}
    for name in ("xfs-punched-null-file", "xfs-truncated-null-file"):
        showing = next(each for each in known_findings()[name].shows if each.judge == "null-files")
        words = (showing.judge, showing.message, showing.lost)
        found[name] = (words, distinction("xfs", "cache", words, showing.smallest[0]))
    (one, first), (two, second) = found.values()
    assert one == two
    assert {first, second} == {"as xfs-punched-null-file", "as xfs-truncated-null-file"}


def test_a_search_that_takes_too_long_takes_the_failure_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postcrash.harness.findings.known_findings.STEPS_MAX", 3)
    showing = known_findings()["btrfs-half-a-rename"].shows[0]
    words = (showing.judge, showing.message, showing.lost)
    assert distinction("btrfs", "cache", words, showing.smallest[0]).startswith("other than ")
