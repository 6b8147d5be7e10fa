"""Failures that are known upstream: each page of docs/findings has a table, and nothing else is taken for a finding."""

from dataclasses import replace

import pytest

from postcrash.harness.findings.known_findings import KnownFinding, known_findings
from postcrash.harness.gate.baseline import KernelRange
from postcrash.harness.gate.upstream import page_of, shape
from postcrash.harness.hunting.causes import Cause
from postcrash.model import parse_workload

from ....finding_page import VERSIONS, FindingPage, finding_pages

PAGE, KERNEL = "btrfs-half-a-rename", "UML 6.1.176"


@pytest.mark.parametrize("page", finding_pages(), ids=lambda page: page.name)
def test_each_page_has_a_table_that_says_what_the_page_says(page: FindingPage) -> None:
    known = known_findings()[page.name]
    assert known.targets == (page.target,)
    shown = tuple("✗" if KernelRange.parse(known.kernels).has(f"UML {version}.1") else "✓" for version in VERSIONS)
    assert shown == tuple(sign.replace("–", "✓") for sign in page.signs)
    assert page.judge in {way.judge for way in known.shows} or not known.shows


def test_each_table_has_a_page() -> None:
    assert set(known_findings()) == {page.name for page in finding_pages()}


def test_the_findings_of_6_1_can_be_recognised() -> None:
    """Those that need another kernel were not measured, and are never recognised."""
    unmeasured = {name for name, each in known_findings().items() if not each.shows}
    assert unmeasured <= {page.name for page in finding_pages() if page.sign("6.1") != "✗"} | UNMEASURED


UNMEASURED = {"f2fs-fsync-stale-bytes"}
"""Pages of findings of 6.1 whose smallest workload there was no time to look for."""


def cause_and_workload(known: KnownFinding) -> tuple[Cause, str]:
    way = known.shows[0]
    return Cause(way.judge, way.message, way.lost), way.workloads[0]


def test_a_failure_is_a_finding_only_if_all_of_it_agrees() -> None:
    cause, text = cause_and_workload(known_findings()[PAGE])
    workload = parse_workload(text, "w")
    assert page_of("btrfs", KERNEL, "cache", cause, workload) == f"docs/findings/{PAGE}.md"
    longer = parse_workload(f"{text.rstrip()}\ncreat z\n", "w")
    others = [
        ("xfs", KERNEL, "cache", cause, workload),
        ("btrfs", "UML 5.10.46", "cache", cause, workload),
        ("btrfs", "UML 9.1", "cache", cause, workload),
        ("btrfs", "linux", "cache", cause, workload),
        ("btrfs", KERNEL, "torn:512", cause, workload),
        ("btrfs", KERNEL, "cache", replace(cause, checker="P5"), workload),
        ("btrfs", KERNEL, "cache", replace(cause, message="it is gone"), workload),
        ("btrfs", KERNEL, "cache", replace(cause, lost=("file data",)), workload),
        ("btrfs", KERNEL, "cache", cause, longer),
    ]
    assert [page_of(*each) for each in others] == [""] * len(others)


def test_what_shows_on_the_disk_that_holds_back_is_another_failure_on_the_other_one() -> None:
    cause, text = cause_and_workload(known_findings()["ext4-replace-not-waited"])
    failure = ("ext4-current", KERNEL, "cache", cause, parse_workload(text, "w"))
    assert page_of(*failure, is_held=True) == "docs/findings/ext4-replace-not-waited.md"
    assert page_of(*failure, is_held=False) == ""


def test_names_make_no_difference_to_a_workload_and_anything_else_does() -> None:
    one = parse_workload("mkdir D\ncreat D/a\n---\nrename D/a b\nfsync b\n", "one")
    same = parse_workload("mkdir x\ncreat x/foo\n---\nrename x/foo bar\nfsync bar\nsync\n", "same")
    other = parse_workload("mkdir D\ncreat D/a\n---\nrename D/a b\nfsync .\n", "other")
    set_up = parse_workload("mkdir D\n---\ncreat D/a\nrename D/a b\nfsync b\n", "set-up")
    assert shape(one) == shape(replace(same, ops=same.ops[:-1])) != shape(other)
    assert shape(one) != shape(set_up)
