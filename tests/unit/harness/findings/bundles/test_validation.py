"""A finding whose parts do not belong together, or that would have something run or cost too much, is refused.

Whoever makes a bundle can give it the ids that fit. So here they always do, except where ids are what is wrong.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postcrash._core import write_recording
from postcrash.apps import application_named
from postcrash.harness.auditing.judge import about
from postcrash.harness.examination.recording_metadata import about_target
from postcrash.harness.findings.bundles.validation import BundleParts, RefusedError, validated
from postcrash.store.consoles import Casualty
from postcrash.store.json_codec import Json
from postcrash.store.kernel_build import ComparedWith, KernelBuild
from postcrash.store.records import Finding, state_id
from postcrash.targets import STACKS, TARGETS, VARIANTS, target_named

from ....conftest import places
from ....reports.conftest import observation
from .conftest import ORIGINAL, Made, named
from .test_import_bundle import JSON, put

(FIELDS,) = about_target(ORIGINAL).keys() - {"target"}
OWN = replace(ORIGINAL, name="own", options="noauto_da_alloc,commit=1", mkfs=(*ORIGINAL.mkfs, "-I", "256"), size_mib=9)


def refused(parts: BundleParts) -> str:
    with pytest.raises(RefusedError) as caught:
        validated(parts)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_finding_that_is_what_it_says_is_admitted(made: Made) -> None:
    finding = validated(made.parts())
    assert finding.explanation is not None
    assert [write.what for write in finding.explanation.lost] != []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"interval": 3}, "its crash state is "),
        ({"choices": ()}, "its crash state is "),
        ({"recording": "r-0123456789abcdef"}, "its recording is 'r-0123456789abcdef'"),
        ({"base": "b-0123456789abcdef"}, "its base is 'b-0123456789abcdef'"),
        ({"base": "../../etc/passwd"}, "its base is '../../etc/passwd'"),
        ({"state": ""}, "its crash state is ''"),
        ({"lost": ()}, "its crash state loses "),
        ({"torn": 5}, "its crash state loses "),
        ({"started": 5}, "it has no instant at which 5 operations had started and 5 had returned"),
        ({"started": 100, "returned": 100}, "started=100, returned=100 of 7 operations cannot be"),
        ({"observation": {"mount_errno": 0}}, "expected "),
        ({"workload_text": "creat"}, "replace:1:"),
        ({"workload_text": "unlink gone\n"}, "of 1 operations cannot be"),
        ({"model": "none"}, "none"),
        ({"model": "x" * 12_000}, "unknown device model …"),
        ({"message": "red \x1b[31m"}, "expected text that can be printed, found 'red \\x1b[31m'"),
        ({"message": "two\nlines"}, "expected text that can be printed"),
        ({"kernel": "\u202eLMU"}, "expected text that can be printed"),
        ({"workload_name": "\x07"}, "expected text that can be printed"),
        ({"built": KernelBuild("0" * 64, "\x1b[2J")}, "expected text that can be printed"),
        ({"compared": ComparedWith("", "", KernelBuild("\n"), "")}, "expected text that can be printed"),
        ({"target": "ext4-current"}, "it is on 'ext4-current', but was recorded on ext4-original"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(made: Made, changed: dict[str, Any], said: str) -> None:
    assert said in refused(made.parts(**changed))


@pytest.mark.parametrize(
    ("interval", "choices", "said"),
    [
        (100, (), "it has crash interval 100, and its recording has 7"),
        (4, ((99, 1),), "99"),
        (4, ((0, 99),), "99"),
        (4, ((0, 2**32 - 1),), "4294967295"),
        (4, ((2**32 - 1, 1),), "4294967295"),
        (4, ((2**70, 1),), "expected numbers up to 4294967295"),
        (4, ((0, -1),), "expected a crash state's id"),
        (4, ((0, 1), (0, 1)), "components must be named once and in order"),
        (-1, (), "expected a crash state's id"),
    ],
)
def test_a_crash_state_is_one_of_the_recording(made: Made, interval: int, choices: Any, said: str) -> None:
    state = state_id(made.parts().finding.recording, interval, choices)
    assert said in refused(made.parts(interval=interval, choices=choices, state=state))


@pytest.mark.parametrize("name", ["id", "kernel", "guest", "message", "model", "checker"])
def test_the_id_is_that_of_what_the_finding_says(made: Made, name: str) -> None:
    parts = made.parts()
    other = {"id": "f-0123456789abcdef", "model": "torn", "checker": "mounts"}.get(name, "other")
    change: dict[str, Any] = {name: other}
    assert "but its content is that of f-" in refused(replace(parts, finding=replace(parts.finding, **change)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"base": "../../x"}, "its recorded base is '../../x'"),
        ({"base": None}, "base: Input should be a valid string, found None"),
        ({"recorder": "../x"}, "there is no recorder '../x'"),
        ({"requested": "evil"}, "there is no recorder 'evil'"),
        ({"held": "1"}, "held: Input should be a valid integer, found '1'"),
        ({"held": -1}, "held: "),
        ({"held": True}, "held: "),
        ({FIELDS: {}}, ": name, title, fstype, mkfs, size_mib: Field required"),
        ({FIELDS: 7}, "the recording of f-"),
        ({"application": 7}, "application: Input should be a dictionary"),
        ({"application": {"__dataclass_self__": 7}}, "application."),
    ],
)
def test_metadata_that_postcrash_did_not_write_is_refused(made: Made, changed: dict[str, Any], said: str) -> None:
    assert said in refused(made.parts(made.metadata(**changed)))


def test_a_target_of_ones_own_may_differ_in_options_and_sizes(made: Made) -> None:
    assert validated(made.parts(on=OWN)).target == "own"
    assert validated(made.parts(on=replace(OWN, recover_options="", fsck=(), repair=()))).target == "own"
    assert validated(made.parts(on=replace(OWN, package="", source=""))).target == "own"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"mkfs": ("/bin/sh", "-c", "evil")},
            "its target own has mkfs = ['/bin/sh'], which no ext4 of the catalogue has",
        ),
        ({"fsck": ("/bin/sh",)}, "fsck = ['/bin/sh']"),
        ({"fsck": (*OWN.fsck, "-E", "x")}, "fsck = "),
        ({"repair": ("/sbin/e2fsck", "-y")}, "repair = "),
        ({"after_mkfs": ("/bin/sh", "-c", "evil")}, "after_mkfs = ['/bin/sh', '-c', 'evil']"),
        ({"helper": ("/bin/sh",)}, "helper = ['/bin/sh']"),
        ({"files": ("/etc/shadow",)}, "files = ['/etc/shadow']"),
        ({"modules": ("evil",)}, "modules = ['evil']"),
        ({"package": "evil"}, "package = ['evil']"),
        ({"title": "a\x9b2J"}, "expected text that can be printed"),
        ({"fstype": "hostfs"}, "mkfs = ['mkfs.ext4'], which no hostfs of the catalogue has"),
        ({"fstype": "overlay", "options": "lowerdir=/"}, "which no overlay of the catalogue has"),
    ],
)
def test_a_target_brings_no_commands(made: Made, changed: dict[str, Any], said: str) -> None:
    assert said in refused(made.parts(on=replace(OWN, **changed)))


def test_a_target_of_the_catalogue_mounts_as_it_does(made: Made) -> None:
    for target in (*TARGETS, *VARIANTS, *STACKS):
        assert validated(made.parts(on=target)).target == target.name
    assert "helper = " in refused(made.parts(on=replace(target_named("fuse2fs"), options="logfile=/x")))


@pytest.mark.parametrize(
    "recover",
    [
        {"repair": ["/bin/sh", "-c", "evil", "/dev/vda"]},
        {"fsck": ["/sbin/e2fsck", "-y", "/dev/vda"]},
        {"mount": {"fstype": "hostfs", "options": "/"}},
        {"mount": {"fstype": "ext4", "options": ""}},
        {"mount": {**ORIGINAL.mount.to_wire(), "helper": ["/bin/sh"]}},
        {"walk": "yes"},
    ],
)
def test_a_recovery_is_one_of_the_target(made: Made, recover: Json) -> None:
    wire = json.loads(json.dumps(ORIGINAL.recovery(walk=True, fsck=False).to_wire()))
    assert "it was not recovered as ext4-original is: " in refused(made.parts(recover=wire | recover))


def test_a_recovery_has_the_fields_of_one(made: Made) -> None:
    assert "mount, map, use_after, fsck: Field required" in refused(made.parts(recover={"walk": True}))
    wire = ORIGINAL.recovery(walk=True, fsck=False).to_wire()
    assert "evil: " in refused(made.parts(recover=wire | {"evil": 1}))


@pytest.mark.parametrize(
    "name",
    ["P9", "", "same-as:", "same-as:kernel:/tmp/evil", "same-as:kernel:here", "same-as:target:own.toml", "same-as:x:y"],
)
def test_a_judge_is_one_of_ours_and_no_file(made: Made, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.folder)
    Path("here").touch()
    assert f"there is no judge {name!r}" in refused(made.parts(checker=name))


def test_a_judge_may_have_a_name_that_no_file_can_have(made: Made) -> None:
    name = "same-as:kernel:" + "a" * 5000
    assert validated(made.parts(checker=name)).checker == name


@pytest.mark.parametrize("name", ["mounts", "same-as:kernel:6.12", "same-as:target:xfs", "same-recovery", "guest"])
def test_each_kind_of_judge_is_admitted(made: Made, name: str) -> None:
    assert validated(made.parts(checker=name)).checker == name


def test_what_a_reference_shows_is_checked_like_any_report(made: Made) -> None:
    shown = observation([[0, 5000, "write:1"]])
    explanation = validated(made.parts(checker="same-as:kernel:6.12", reference_outcome=shown)).explanation
    assert explanation is not None
    (path,) = [each for each in explanation.comparison if each.path == "A"]
    assert path.differs and path.reference[1] == "bytes 0 to 5000: those of write B 0 5000"
    damaged = made.parts(checker="same-as:kernel:6.12", reference_outcome={**shown, "tree": 5})
    assert "what kernel:6.12 shows cannot be read: tree: expected an array, found 5" in refused(damaged)
    assert "'mounts' compares with none" in refused(made.parts(checker="mounts", reference_outcome=shown))


RAN = 'creat A\nappend A 4096\n---\nrun "sh -c evil" 60\nsays one\nends\ncommit\nsync\n'


def audited(made: Made, told: object, **changed: Any) -> BundleParts:
    return made.parts(made.metadata(application=told), workload_text=RAN, **changed)


def test_an_application_is_one_of_the_catalogue(made: Made) -> None:
    told = about(application_named("sqlite-3.40").with_parameters({}))
    for judge in ("application", "mounts"):
        assert validated(audited(made, told, checker=judge)).checker == judge
        said = "is not of the catalogue, and no others are run"
        assert said in refused(audited(made, {**told, "check": "evil"}, checker=judge))
        assert "it runs a program of no application" in refused(made.parts(workload_text=RAN, checker=judge))
    assert "seconds: " in refused(audited(made, {**told, "seconds": "x"}, checker="application"))
    assert "it runs a program of no application" in refused(made.parts(checker="application"))


def test_no_program_is_run_to_see_a_finding_again(made: Made) -> None:
    told = about(application_named("sqlite-3.40").with_parameters({}))
    said = "to see it again its workload would have to run a program"
    lost: dict[str, Any] = {"recover": {}, "checker": "guest", "observation": None, "casualty": Casualty("it hangs")}
    assert said in refused(audited(made, told, checker="same-as:kernel:6.1"))
    assert said in refused(audited(made, told, **lost, state="", choices=()))


def test_a_guest_lost_while_it_ran_the_workload_has_no_crash_state(made: Made) -> None:
    last = {"interval": 6, "started": 6, "returned": 6}
    lost: dict[str, Any] = {
        "recover": {},
        "checker": "guest",
        "observation": None,
        "casualty": Casualty("it hangs"),
        **last,
    }
    nothing: dict[str, Any] = {"state": "", "choices": (), "lost": (), "torn": 0}
    assert validated(made.parts(**lost, **nothing)).casualty == Casualty("it hangs")
    assert "its crash state is 'r-" in refused(made.parts(**lost))


@pytest.mark.parametrize(
    ("sectors", "log", "said"),
    [
        (1 << 34, [("durable",)], "its disk has 17179869184 sectors, and a guest's disk has at most 2097152"),
        (1 << 21, [("zero", n, 0, 1 << 21, True) for n in range(5)], "its recording writes 1310725 blocks in 5 events"),
    ],
)
def test_what_costs_too_much_to_look_at_is_refused(made: Made, sectors: int, log: list[Any], said: str) -> None:
    parts = made.parts()
    write_recording(parts.recording, sectors, json.dumps(made.metadata()), log)
    assert said in refused(parts)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_other_finding_and_metadata_are_refused_or_admitted(made: Made, data: st.DataObject) -> None:
    """Nothing else is raised, also where the ids fit."""
    parts = made.parts()
    if data.draw(st.booleans()):
        metadata = made.metadata()
        place = data.draw(st.sampled_from(places(metadata)[1:]))
        parts = made.parts(put(metadata, place, data.draw(JSON)))
    told = parts.finding.to_json()
    place = data.draw(st.sampled_from(places(told)[1:]))
    try:
        finding = Finding.from_json(json.loads(json.dumps(put(told, place, data.draw(JSON | st.integers(-3, 9))))))
    except ValueError:
        return
    parts = replace(parts, finding=named(finding, ORIGINAL, made.metadata()))
    try:
        assert validated(parts).id == parts.finding.id
    except RefusedError:
        return
