"""What a part says of what was not run, and of what must hold. No guest runs: results of hunts are made up."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.examination.session import Session
from postcrash.harness.findings.known_findings import known_findings
from postcrash.harness.gate.configuration import load
from postcrash.harness.gate.planning import PlannedPart, Planner
from postcrash.harness.gate.running import (
    _part,
    _violated,
    cause_of_finding,
    finding_fields,
    not_begun,
    run_part,
)
from postcrash.harness.hunting.causes import cause_of
from postcrash.harness.hunting.hunt_result import Group, HuntResult
from postcrash.model import parse_workload
from postcrash.store.explanation_data import Explanation, PathComparison
from postcrash.store.gate_run import INTERRUPTED, NO_TIME, UNTESTED, Failure, Part
from postcrash.store.store import Store

from ..hunting.pretence import found, plan


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedPart:
    """A hunt on a target that no kernel can run, in which P5 must hold."""
    monkeypatch.setattr(
        "postcrash.harness.gate.planning.kernels_for", lambda session, name, targets: dict.fromkeys(targets)
    )
    file = tmp_path / "postcrash.toml"
    file.write_text('targets = ["xfs"]\nhold = ["P5"]\n[parts.a]\nhunt = 1\n')
    (part,) = Planner(Session(tmp_path / "store"), load(file), file).parts("a")
    return part


def told(planned: PlannedPart, **hunted: Any) -> Part:
    """The part of a hunt that came to this, and found nothing."""
    nobody: Any = None
    ran: Any = SimpleNamespace(kernel="UML 6.1", how=planned.how, judges=(SimpleNamespace(name="P5"),))
    return _part(planned, ran, planned.expected, HuntResult(**hunted), nobody, 1.0)


@pytest.mark.parametrize(
    ("hunted", "messages"),
    [
        ({"tested": Counter(P5=1)}, []),
        ({}, [UNTESTED]),
        ({"not_run": 3}, [NO_TIME]),
        ({"tested": Counter(P5=1), "interrupted": True}, [INTERRUPTED]),
        ({"interrupted": True, "not_run": 3}, [INTERRUPTED]),
    ],
)
def test_what_was_not_run_is_undecided(planned: PlannedPart, hunted: dict[str, Any], messages: list[str]) -> None:
    part = told(planned, run=2, **hunted)
    assert ([each.message for each in part.failures], part.verdict) == (messages, "undecided" if messages else "holds")


def test_numbers_make_no_other_cause_and_are_in_the_message(planned: PlannedPart) -> None:
    """The cause stands in baselines. What users read is a message of one workload, not a pattern."""

    def failure(number: int) -> Failure:
        hunted = HuntResult(run=1, tested=Counter(P5=1))
        hunted.leave_open("P5", "operation N: cannot tell", f"operation {number}: cannot tell", (1, number))
        nobody: Any = None
        ran: Any = SimpleNamespace(kernel="UML 6.1", how=planned.how, judges=(SimpleNamespace(name="P5"),))
        (told,) = _part(planned, ran, planned.expected, hunted, nobody, 1.0).failures
        return told

    assert failure(3).cause == failure(4).cause
    assert (failure(3).message, failure(4).message) == ("operation 3: cannot tell", "operation 4: cannot tell")


def test_a_failure_in_the_words_of_a_known_finding_has_a_cause_of_its_own(planned: PlannedPart, tmp_path: Path) -> None:
    """A baseline that accepts the known finding must not accept a bug in other operations."""
    showing = known_findings()["ext4-replace-not-waited"].shows[0]
    asked = plan(tmp_path)

    def cause(text: str, target: str) -> str:
        made = replace(asked, workload=parse_workload(text, "w"))
        finding = found(made, showing.message.replace("PATH", "a").replace("N", "1"), "r-0123456789abcdef")
        return cause_of_finding(planned, replace(finding, checker=showing.judge, target=target, model="cache"))

    creates = "creat a\ncreat b\nappend a 1\n"
    text, target = showing.workloads[0], "ext4-current"
    assert cause(f"creat z\n{text}", target) == cause(text, target) == cause(creates, "xfs")
    assert cause(creates, target) != cause(text, target)


@pytest.mark.parametrize(("kind", "verdict"), [("hunt", "holds"), ("corpus", "undecided")])
def test_an_operation_that_is_not_there_matters_where_a_corpus_asks_for_it(
    planned: PlannedPart, kind: Any, verdict: str
) -> None:
    """A hunt passes it over. What only one of two kernels lacks, `HuntResult.refused` has."""
    lacking = Counter({"fallocate fails with EOPNOTSUPP": 2})
    part = told(replace(planned, kind=kind), run=1, tested=Counter(P5=1), lacking=lacking)
    assert (part.verdict, part.lacking) == (verdict, dict(lacking))
    refused = told(planned, run=1, tested=Counter(P5=1), refused=lacking)
    assert refused.verdict == "undecided"


def test_a_failure_of_a_comparison_has_both_sides_and_the_rules_that_its_state_breaks(
    planned: PlannedPart, tmp_path: Path
) -> None:
    asked = replace(plan(tmp_path), workload=parse_workload("creat a\nfsync a", "w"))
    nothing: Any = {"operations": (), "epochs": (), "lost": (), "unsent": (), "evidence": ()}
    omitted: Any = {"epochs_omitted": 0, "lost_omitted": 0, "comparison_omitted": 0}
    path = PathComparison("a", ("not there",), ("fifo",), (), True, ("file, 0 bytes",))
    told = Explanation(
        **{**nothing, **omitted}, named_by="", unnamed="", failure="", comparison=(path,), reference="kernel:6.1"
    )
    root = {"path": ".", "type": "dir", "mode": 0o755, "nlink": 2, "inode": 0, "size": 0}
    seen: Any = {"started": 2, "returned": 2, "observation": {"mount_errno": 0, "tree": [root], "klog": []}}
    finding = replace(found(asked, "a is missing", "r-0123456789abcdef"), explanation=told, **seen)
    compared = replace(finding, checker="same-as:kernel:6.1")
    fields = finding_fields(planned, compared)
    assert fields["beside"] == ("a found: not there; on kernel:6.1: file, 0 bytes",)
    assert [said.partition(":")[0] for said in fields["objections"]] == ["fsync-names"]
    assert finding_fields(planned, finding)["objections"] == ()


@pytest.mark.parametrize(("message", "shows_least"), [("bar has other bytes", True), ("bar is missing", False)])
def test_a_smaller_finding_stands_for_a_group_if_it_has_its_cause(
    planned: PlannedPart, tmp_path: Path, message: str, shows_least: bool
) -> None:
    """`hunt` and `minimize` ask for the judge only. What they came to is in the store, and may be in a baseline."""
    asked = plan(tmp_path)
    made = replace(asked, workload=parse_workload("creat foo\nrename foo bar\nsync", "made"))
    least = found(replace(asked, workload=parse_workload("creat bar\nsync", "least")), message, "r-0123456789abcdef")
    finding = replace(found(made, "bar has other bytes", "r-0123456789abcdee"), minimal=least.id)
    store = Store(tmp_path / "findings")
    store.put_finding(least)
    store.put_finding(finding)
    group = Group(cause_of(finding), finding.id, (2, 1), 1, ["made"])
    failure = _violated(planned, planned.expected, group, store)
    assert failure.cause == cause_of_finding(planned, finding)
    assert (failure.finding, failure.found) == (least.id if shows_least else finding.id, finding.id)


def test_a_part_has_what_must_hold(planned: PlannedPart) -> None:
    assert told(planned).hold == not_begun(planned).hold == {"P5": None}


def test_nothing_must_hold_where_no_kernel_can_run_the_target(planned: PlannedPart) -> None:
    """That no kernel can is a failure of its own, which the baseline can accept."""
    nobody: Any = None
    part, _ = run_part(planned, nobody, None, nobody, None)
    assert (part.hold, [each.message for each in part.failures]) == ({}, ["no kernel called default can run xfs"])


def test_what_a_part_asks_does_not_depend_on_the_shard_nor_on_where_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does depend on everything else that the section says of its workloads, and of what is expected of them."""
    monkeypatch.setattr(
        "postcrash.harness.gate.planning.kernels_for", lambda session, name, targets: dict.fromkeys(targets)
    )

    def asked(
        section: str,
        folder: str = "here",
        shard: tuple[int, int] = (1, 1),
        workload: str = "sync\n",
        top: str = "",
        states: str = "4",
    ) -> str:
        (tmp_path / folder / "own").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "own" / "a.ops").write_text(workload)
        held = {"xfs": {"P1": {"states": states, "workloads": 1, "recoveries": 1}}}
        contract = {"format": "postcrash contract 1", "kernel": "UML 6.1", "model": "cache", "held": held}
        (tmp_path / folder / "held.json").write_text(json.dumps(contract))
        file = tmp_path / folder / "postcrash.toml"
        file.write_text(f'targets = ["xfs"]\n{top}\n[parts.a]\n{section}\n')
        (part,) = Planner(Session(tmp_path / "store"), load(file), file, shard).parts("a")
        return part.section_digest

    sections = [
        "hunt = 1",
        'hunt = 1\ngrammar = "full"',
        "hunt = 1\nlimit = 9",
        "hunt = 1\nlimit = 9\nseed = 2",
        'hunt = 1\nexpect = "documents"',
        'hunt = 1\nexpect = "contract:held.json"',
        "hunt = 1\nfsck = true",
        'hunt = 1\ndisks = "one"',
        "random = 7",
        'properties = ["P5"]',
        'properties = ["P4"]',
        'corpus = "own"',
    ]
    digests = [asked(section) for section in sections]
    assert len(set(digests)) == len(digests)
    assert [asked(section, "there", (2, 3)) for section in sections] == digests
    assert asked('hunt = 1\nbudget = "5s"') == digests[0]
    assert asked('corpus = "own"', workload="creat a\n") != digests[-1]
    assert asked('hunt = 1\nexpect = "contract:held.json"', states="8") not in digests
    for setting in ('expect = "documents"', "use = true", 'hold = ["P5"]'):
        assert asked("hunt = 1", top=setting) == asked(f"hunt = 1\n{setting}") != digests[0]
