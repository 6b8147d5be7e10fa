"""Groups that come to one smallest workload, or for which the same calls are to blame, are told as one."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.hunting import groups as module
from postcrash.harness.hunting.causes import cause_of
from postcrash.harness.hunting.groups import GroupSummary, summaries
from postcrash.harness.hunting.hunt_result import Group
from postcrash.model import parse_workload

from .pretence import found, plan

SHORT = "fsync a (operation 2) had returned, but a is 0 bytes long; it promised 4096"
BACK = "fsync . (operation 9) had returned after unlink a (operation 8), but a is there"


def test_a_summary_of_several_causes_says_all_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The smallest workload of a group may break the judge in other words than the group did."""
    short, back = (found(plan(tmp_path), message, "r-clean") for message in (SHORT, BACK))
    by_id = {each.id: each for each in (short, back)}
    monkeypatch.setattr(module, "with_block_names", lambda findings, store: list(findings))
    store: Any = SimpleNamespace(finding=by_id.__getitem__)
    least: Any = SimpleNamespace(finding=replace(short, id="f-least"), is_cut_short=False)
    causes = [Group(cause_of(each), each.id, (1, number), 1, ["w"]) for number, each in enumerate((short, back))]
    (summary,) = summaries(causes, store, lambda _: least)
    assert (summary.count, summary.shown.message) == (2, SHORT)
    assert summary.other_words == [BACK]
    alone = summaries(causes[:1], store, lambda _: least)
    assert [each.other_words for each in alone] == [[]]


def minimal(tmp_path: Path, text: str, message: str, **about: Any) -> Any:
    """A finding of which nothing smaller is known. All operations of its workload had returned."""
    workload = parse_workload(text, "w")
    count = len(workload.operations)
    made = found(replace(plan(tmp_path), workload=workload), message, "r-clean")
    return replace(made, **{"started": count, "returned": count, **about})


def joined(monkeypatch: pytest.MonkeyPatch, *findings: Any) -> list[GroupSummary]:
    """The groups that come of these findings, each of which is the smallest of its cause."""
    by_id = {each.id: each for each in findings}
    monkeypatch.setattr(module, "with_block_names", lambda findings, store: list(findings))
    store: Any = SimpleNamespace(finding=by_id.__getitem__)
    least: Any = lambda finding: SimpleNamespace(finding=finding, is_cut_short=False)  # noqa: E731
    groups = [Group(cause_of(each), each.id, (1, number), 1, ["w"]) for number, each in enumerate(findings)]
    return summaries(groups, store, least)


RENAMED = "creat a\n---\nfsync a\nrename a b\nfsync b"
MOVED = "creat a\nfsync .\nopen a\nmkdir b\nrename a b/a\nfsync @a"
LONGER = "creat a\nmkdir b\ncreat b/c\n---\nrename a c\nfsync c\nunlink c\nlink b/c c\nfsync b/c"
REPLACED = "creat a\nsync\nrename a b\ncreat a\nappend a 1\nfsync a"


def test_one_bug_in_several_smallest_workloads_is_one_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Findings of a kernel whose btrfs does not log the rename of a logged file, compared with one that does."""
    findings = (
        minimal(tmp_path, MOVED, "a is back, b/a has link count 2, not 1; kernel:stock never shows this"),
        minimal(tmp_path, LONGER, "a is back; kernel:stock never shows this"),
        minimal(tmp_path, RENAMED, "b is missing, a is back; kernel:stock never shows this"),
    )
    (summary,) = joined(monkeypatch, *findings)
    assert summary.headline == (
        "after `fsync a; rename a b; fsync b`: b is missing, a is back; kernel:stock never shows this"
    )
    assert ([each.id for each in summary.others], summary.count) == ([findings[0].id, findings[1].id], 3)
    assert len(summary.causes) == 3


@pytest.mark.parametrize(
    "other",
    [
        (REPLACED, "b is missing; kernel:stock never shows this", {}),
        (RENAMED.replace("fsync b", "fdatasync b"), "b is missing; kernel:stock never shows this", {}),
        (MOVED, "a is back; kernel:stock never shows this", {"checker": "one-name"}),
    ],
)
def test_other_calls_or_another_judge_are_another_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, other: tuple[str, str, dict[str, Any]]
) -> None:
    text, message, about = other
    one = minimal(tmp_path, RENAMED, "b is missing, a is back; kernel:stock never shows this")
    assert len(joined(monkeypatch, one, minimal(tmp_path, text, message, **about))) == 2


def test_a_crash_within_recovery_is_another_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = minimal(tmp_path, RENAMED, "b is missing")
    within = replace(one, id="f-0123456789abcdef", base="r-0123456789abcdef/0/-")
    assert len(joined(monkeypatch, one, within)) == 2


def test_a_group_without_calls_to_blame_takes_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = minimal(tmp_path, RENAMED, "b is missing", started=0, returned=0)
    other = minimal(tmp_path, REPLACED, "a is empty")
    assert len(joined(monkeypatch, before, other)) == 2


def test_groups_without_a_smallest_workload_stay_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = minimal(tmp_path, RENAMED, "b is missing; kernel:stock never shows this")
    two = minimal(tmp_path, RENAMED, "a is back; kernel:stock never shows this")
    by_id = {each.id: each for each in (one, two)}
    monkeypatch.setattr(module, "with_block_names", lambda findings, store: list(findings))
    store: Any = SimpleNamespace(finding=by_id.__getitem__)
    groups = [Group(cause_of(each), each.id, (1, 1), 1, ["w"]) for each in (one, two)]
    assert len(summaries(groups, store, None)) == 2
