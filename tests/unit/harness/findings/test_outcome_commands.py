"""The script of a finding that only a reference speaks against, and of one that breaks a rule of practice too."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from postcrash.harness.examination.session import Session
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.fstests import fstests_test
from postcrash.harness.findings.outcome_commands import outcome_symptom
from postcrash.harness.findings.reproduce import finding_to_report, finding_to_show, reproducers_of
from postcrash.model import History, Observation, parse_workload
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.script.shell_script import FlakeyCut
from postcrash.store.records import Finding
from postcrash.targets import target_named

from .conftest import TREE

MakeFinding = Callable[..., tuple[Finding, Session]]
EXT4 = target_named("ext4-current")
FILE = {"path": "a", "type": "file", "mode": 0o600, "nlink": 1, "inode": 1, "size": 0, "segments": []}


def report(*entries: dict[str, Any], errno: int = 0) -> dict[str, Any]:
    tree = [] if errno else [*TREE, *entries]
    return {"mount_errno": errno, "tree": tree, "klog": [], "fsck": None}


def compared(made: tuple[Finding, Session], **changes: Any) -> tuple[Finding, Session]:
    """The finding as one that a comparison made, after the sync has returned."""
    about = {"checker": "same-as:kernel:6.1", "message": "a is there", "started": 2, "returned": 2}
    recover = target_named(made[0].target).recovery(walk=True, fsck=False).to_wire()
    told = {**about, "observation": report(FILE), "reference_outcome": report(), "recover": recover, **changes}
    return replace(made[0], **told), made[1]


def test_the_script_looks_at_every_name_and_says_what_the_reference_never_shows(make_finding: MakeFinding) -> None:
    finding, session = compared(make_finding("ext4-current"))
    first, *others = reproducers_of(finding, EXT4, session.store)
    assert first.cut == FlakeyCut(2)
    assert "# kernel:6.1 never showed this after a crash at this instant, in 3 runs on a disk" in " ".join(
        first.text.split()
    )
    for line in ("a found: file, 0 bytes", "a on kernel:6.1, in the nearest that it showed: not there"):
        assert f"#   {line}\n" in first.text
    assert "[ -f a ] &&\n    holds a\n" in first.text
    assert not any(isinstance(each.cut, FlakeyCut) for each in others)


def test_at_another_instant_nobody_knows_what_the_reference_shows(make_finding: MakeFinding) -> None:
    """A crash between two operations is another instant than one within an operation."""
    finding, session = compared(make_finding("ext4-current"), started=2, returned=1)
    cuts = [each.cut for each in reproducers_of(finding, EXT4, session.store)]
    assert cuts and not any(isinstance(cut, FlakeyCut) for cut in cuts)


def test_what_only_the_mode_or_the_links_tell_is_tests(make_finding: MakeFinding) -> None:
    """Names of one file are looked at where the reference has other names for it."""
    two = [{**FILE, "nlink": 2}, {**FILE, "nlink": 2, "path": "b"}]
    one = [{**FILE, "mode": 0o644}, {**FILE, "mode": 0o644, "path": "b", "inode": 2}]
    tests = looked_for(
        compared(make_finding("ext4-current"), observation=report(*two), reference_outcome=report(*one))[0]
    )
    assert {'[ "$(stat -c %a a)" = 600 ]', '[ "$(stat -c %h a)" = 2 ]', "[ a -ef b ]"} <= tests
    tests = looked_for(
        compared(make_finding("ext4-current"), observation=report(*one), reference_outcome=report(*two))[0]
    )
    assert "[ ! a -ef b ]" in tests


def looked_for(finding: Finding) -> set[str]:
    history = History(parse_workload(finding.workload_text, "w"), finding.started, finding.returned)
    return set(outcome_symptom(finding, history, Observation.from_wire(finding.observation)).tests)


def test_a_mount_that_fails_on_one_side_only(make_finding: MakeFinding) -> None:
    vfat = target_named("vfat")  # of which no document says that it mounts
    finding, session = compared(make_finding("vfat"), observation=report(errno=5))
    text = reproducers_of(finding, vfat, session.store)[0].text
    assert "found: mount failed with EIO" in text and "if ! attach; then" in text
    finding, session = compared(make_finding("vfat"), reference_outcome=report(errno=5))
    assert "on kernel:6.1 instead: mount failed with EIO" in reproducers_of(finding, vfat, session.store)[0].text
    finding, session = compared(make_finding("vfat"), observation=report(errno=5), reference_outcome=report(errno=117))
    with pytest.raises(NoCommandError, match="there is no tree"):
        reproducers_of(finding, vfat, session.store)


def test_a_test_of_fstests_needs_a_rule(make_finding: MakeFinding) -> None:
    finding, session = compared(make_finding("ext4-current"))
    with pytest.raises(NoCommandError, match=r"no rule is broken: only kernel:6\.1 does otherwise"):
        written(finding, session)


def written(finding: Finding, session: Session) -> str:
    more = {"name": "999", "statement": "It is so.", "script": None, "kernel": "UML"}
    return fstests_test(session.store, finding_to_show(finding, EXT4), target=EXT4, **more).text  # type: ignore[arg-type]


def test_a_state_that_breaks_a_rule_too_is_shown_by_the_judge_of_this_rule(make_finding: MakeFinding) -> None:
    lost = {"message": "a is missing", "observation": report(), "reference_outcome": report(FILE)}
    finding, session = compared(make_finding("ext4-current"), **lost)
    assert finding_to_show(finding, EXT4).checker == "durability"
    first = reproducers_of(finding, EXT4, session.store)[0].text
    assert first.startswith("#!/bin/bash\n# ext4-current, durability: ")
    assert "is_wrong()" in written(finding, session)
    (explained,) = with_block_names([finding], session.store)
    assert explained.explanation is not None
    assert [said.partition(":")[0] for said in explained.explanation.objections] == ["durability"]


def test_a_report_is_about_the_finding_that_breaks_a_rule(make_finding: MakeFinding) -> None:
    """Minimizing may come to a smaller workload whose state breaks none."""
    made = make_finding("ext4-current")
    broken, _ = compared(made, observation=report(), reference_outcome=report(FILE))
    unbroken, _ = compared(made)
    assert finding_to_report(broken, unbroken, EXT4) is broken
    assert finding_to_report(unbroken, broken, EXT4) is broken
    assert finding_to_report(made[0], made[0], EXT4) is made[0]
