"""What a script checks, and which scripts may be tried."""

import pytest

from postcrash.harness.findings.symptom import objects, symptom
from postcrash.model import Entry, History, Observation, Segment, Tree, parse_workload
from postcrash.reports.script.shell_operations import NoCommandError

REPLACE = parse_workload("creat a\nappend a 4096\ncreat c\n---\ncreat b\nappend b 4096\nrename b a\n", "replace")
HISTORY = History(REPLACE, 6, 6)
DURABLE = History(parse_workload("mkdir d\n---\ncreat d/a\nappend d/a 10\nsync\ncreat b\n", "durable"), 5, 5)


def observed(history: History, **changes: Entry | None) -> Observation:
    return Observation(0, history.trees[history.returned].changed(changes))


def test_only_the_name_that_matters_is_looked_at() -> None:
    empty = Entry("a", "file", 0o644, 1, 5)
    found = symptom("P5", HISTORY, observed(HISTORY, a=empty, b=None))
    assert found.tests == ("[ -f a ]", "holds a")
    assert found.claims[1] == "a found: file, 0 bytes"


def test_bytes_are_those_of_the_scripts_writes() -> None:
    mixed = Entry(
        "a", "file", 0o644, 1, inode=5, size=4096, segments=(Segment(0, 100, "stale"), Segment(100, 4096, "zero"))
    )
    assert symptom("P5", HISTORY, observed(HISTORY, a=mixed)).tests == ("[ -f a ]", "holds a 100:377 3996:000")
    unknown = Entry("a", "file", 0o644, 1, inode=5, size=10, segments=(Segment(0, 10, "other"),))
    with pytest.raises(NoCommandError, match="bytes are other"):
        symptom("P5", HISTORY, observed(HISTORY, a=unknown))


def test_a_missing_name_in_a_folder() -> None:
    found = symptom("durability", DURABLE, observed(DURABLE, **{"d/a": None}))
    assert found.tests == ("[ ! -e d/a ] && [ ! -L d/a ]",)
    assert found.claims[0] == "d/a after the operations: file, 10 bytes; bytes 0 to 10: those of append d/a 10"


def test_nothing_is_left_out_on_which_the_judgement_rests() -> None:
    found = observed(DURABLE, **{"d/a": None})
    assert objects("durability", DURABLE, found)
    assert not objects("durability", DURABLE, observed(DURABLE))
    assert not objects("durability", History(DURABLE.workload, 3, 3), found)


@pytest.mark.parametrize("checker", ["kernel-log", "usable", "guest", "same-recovery"])
def test_what_no_script_can_look_for_is_refused_with_a_reason(checker: str) -> None:
    with pytest.raises(NoCommandError, match=f"a script cannot look for what {checker} found"):
        symptom(checker, HISTORY, Observation(0, Tree()))


def test_mount_and_fsck_have_forms_of_their_own() -> None:
    assert symptom("mounts", HISTORY, Observation(5, Tree())).kind == "mount"
    assert symptom("fsck", HISTORY, Observation(0, Tree())).kind == "fsck"
