"""Applications on real file systems: what they acknowledge is put beside what a crash leaves, folder by folder."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from postcrash.apps import Folder
from postcrash.harness.budget import Budget
from postcrash.harness.guests.events import IntervalReport
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import Observation, every_answer
from postcrash.model.operation import RUN, Operation
from postcrash.model.workload import Workload
from postcrash.targets import RecoveryKind, base_image, target_named

from .audits import REFUSED, Audit, made, told


def test_threads_that_flush_at_one_time_and_how_often_they_were_recorded(audit: Audit) -> None:
    """LevelDB's threads share flushes, so that the recorders see another number of these. No two runs need be alike."""
    ran = audit(
        *(made("leveldb-1.23"), "--set", "workload=switch", "--target", "ext4-current"),
        *("--recordings", "2", "--json", "-"),
    )
    (kept,) = json.loads(ran.stdout)["audits"]
    assert (kept["verdict"], ran.returncode) == ("holds", 0), kept
    assert kept["recordings"] == len(kept["disks"]) == 4
    assert 1 <= kept["ways"] <= kept["recordings"]
    assert all(disk["states"] == disk["states_total"] != "0" for disk in kept["disks"])


def test_how_many_runs_may_be_in_other_ways_is_said(audit: Audit) -> None:
    ran = audit("--run", "echo kept >f; sync", "--check", "true", "--target", "ext4-current", "--recordings", "3")
    assert ran.returncode == 0
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("recorded "))
    assert re.fullmatch(r"recorded 6 times, .*: at most \d+% of all runs are in other ways \(confidence 95%\)", line)


def test_a_program_runs_beside_the_one_that_serves_its_mount(audit: Audit) -> None:
    """The first is killed at its end with all that it has started. The second goes on."""
    done = told(audit, "--run", "echo new >f; sleep 100 & echo done", "--check", "true", target="fuse2fs")
    (disk,) = done["disks"]
    assert done["folders"] > 1
    assert disk["states"] == disk["states_total"] != "0"


UNDO = {
    "set_up": "echo old >f",
    "run": "cp f undo; sync; echo new >f; sync; rm undo; sync; echo done",
    "check": "[ ! -e undo ] || cat undo >f; grep -qx -e old -e new f || { echo f has neither content; exit 1; }",
}
"""Changes a file in place, and has what it was before beside it."""


@pytest.mark.parametrize(
    ("recover", "verdict"),
    [
        ("[ ! -e undo ] || { cat undo >f; rm undo; }", "violated"),
        ("[ ! -e undo ] || { cat undo >f; sync; rm undo; }", "holds"),
    ],
)
def test_a_recovery_that_does_not_survive_a_second_crash(audit: Audit, recover: str, verdict: str) -> None:
    """The first one forgets what it was before while it has not flushed the file. One crash does not show it."""
    given = [word for name, value in UNDO.items() for word in (f"--{name.replace('_', '-')}", value)]
    asked = (*given, "--recover", recover, "--target", "ext4-original", "--one-disk", "--recordings", "1")
    assert audit(*asked).returncode == 0
    (done,) = json.loads(audit(*asked, "--twice", "--json", "-").stdout)["audits"]
    second = done["second_crash"]
    assert (done["verdict"], second["verdict"]) == (verdict, verdict)
    assert second["folders"] == done["folders"] > 3
    found = [finding for each in second["recoveries_of_folders"] for finding in each["findings"]]
    assert {finding["message"] for finding in found} == ({"f has neither content"} if found else set())
    if found:
        assert "3 of 3" in audit(found[0]["id"], "--times", "3", command="repro").stdout


def test_a_recovery_may_fail_where_there_is_nothing_yet(audit: Audit) -> None:
    given = ("--run", "echo new >f; sync; echo done", "--target", "ext4-current", "--one-disk", "--recordings", "1")
    (done,) = json.loads(audit(*given, "--check", "true", "--recover", "test -s f", "--twice", "--json", "-").stdout)[
        "audits"
    ]
    assert (done["verdict"], done["second_crash"]["verdict"]) == ("holds", "holds")
    assert 0 < done["second_crash"]["failed"] < done["second_crash"]["folders"]
    # What counts is whether it fails in the guest, where this variable is not.
    for recover in ("false", 'cat "$POSTCRASH_ACKNOWLEDGED"'):
        failing = audit(*given, "--check", "true", "--recover", recover, "--twice")
        assert (failing.returncode, "its recovery fails by itself in every folder" in failing.stdout) == (6, True)
    lacking = audit(*given, "--check", "true", "--recover", "no-such-program", "--twice")
    assert (lacking.returncode, "not found" in lacking.stderr) == (4, True)


def test_a_check_that_accepts_no_folder_leaves_none_to_crash_again(audit: Audit) -> None:
    given = ("--run", "echo new >f; sync; echo done", "--target", "ext4-current", "--one-disk", "--recordings", "1")
    ran = audit(*given, "--check", "false", "--recover", "true", "--twice", "--json", "-")
    (done,) = json.loads(ran.stdout)["audits"]
    assert (done["verdict"], done["second_crash"]["verdict"]) == ("violated", "undecided")
    assert done["second_crash"]["recoveries_of_folders"] == []


@pytest.mark.full
def test_sqlites_recovery_survives_a_second_crash(audit: Audit) -> None:
    done = told(audit, "sqlite-3.40", "--set", "journal=truncate", "--twice")
    assert done["verdict"] == "holds"
    second = done["second_crash"]["recoveries_of_folders"]
    assert len(second) == done["folders"]
    rolled_back = [each for each in second if int(each["states"]) > 100]
    assert len(rolled_back) > 20, "a journal is hot in many of them"


def test_what_has_no_recovery_of_its_own_cannot_be_crashed_twice(audit: Audit) -> None:
    ran = audit("replace-shell", "--target", "ext4-current", "--twice")
    assert ran.returncode == 4
    assert "nobody knows how replace-shell[" in ran.stderr


CARELESS = """\
import os
file = os.open("f", os.O_CREAT | os.O_WRONLY)
os.write(file, b"kept")
if os.urandom(1)[0] % 2:
    os.fsync(file)
print("done", flush=True)
"""


def test_what_only_some_runs_do_wrong_is_found(audit: Audit, tmp_path: Path) -> None:
    """The program flushes its file in every second run. 30 runs all do so once in a thousand million times."""
    (tmp_path / "careless.py").write_text(CARELESS)
    check = "! grep -q done $POSTCRASH_ACKNOWLEDGED || grep -q kept f"
    given = (
        "--run",
        f"{shlex.quote(sys.executable)} {tmp_path}/careless.py",
        "--check",
        check,
        "--target",
        "ext4-current",
    )
    ran = audit(*given, "--one-disk", "--recordings", "30", "--json", "-")
    (done,) = json.loads(ran.stdout)["audits"]
    assert done["verdict"] == "violated"


def test_each_recording_that_was_asked_for_is_made(audit: Audit) -> None:
    given = ("--run", "echo kept >f", "--check", "true", "--target", "ext4-current")
    ran = audit(*given, "--one-disk", "--recordings", "8", "--json", "-")
    (done,) = json.loads(ran.stdout)["audits"]
    assert done["recordings"] == 8
    assert 0.40 < done["unseen_at_most"] <= 1


def test_sqlite_keeps_what_it_promises(audit: Audit) -> None:
    """Not only because nothing is asked: there are many folders, and a check for each."""
    kept = told(audit, "sqlite-3.40")
    assert kept["verdict"] == "holds"
    (disk,) = kept["disks"]
    assert disk["states"] == disk["states_total"]
    assert kept["folders"] > disk["instants"] > 30


@pytest.mark.parametrize("given", [("--set", "synchronous=off"), ("--model", "lying", "--budget", "60")])
def test_sqlite_without_flushes_does_not(audit: Audit, given: tuple[str, ...]) -> None:
    assert told(audit, "sqlite-3.40", *given)["verdict"] == "violated"


@pytest.mark.parametrize(("synchronous", "verdict"), [("full", "holds"), ("off", "violated")])
def test_an_old_sqlite_that_is_built_from_source(audit: Audit, synchronous: str, verdict: str) -> None:
    done = told(audit, made("sqlite-3.7.17"), "--set", f"synchronous={synchronous}")
    assert done["verdict"] == verdict
    assert done["folders"] > 5


@pytest.mark.parametrize(
    ("name", "without", "message"),
    [
        ("atomicwrites-1.4", ("--without-fsync",), "settings has neither content, and 0 bytes"),
        ("write-file-atomic-6", ("--set", "fsync=false"), "settings has neither content, and 0 bytes"),
        pytest.param(
            "replace-rust",
            ("--set", "crate=tempfile", "--set", "durable=atomic"),
            "settings has neither content",
            marks=pytest.mark.full,
        ),
        pytest.param("replace-rust", ("--without-fsync",), "settings has neither content", marks=pytest.mark.full),
        pytest.param("rocksdb-7.8", ("--without-fsync",), "a synced put is lost", marks=pytest.mark.full),
        pytest.param(
            "dpkg-1.21", ("--without-fsync",), "installed, but the database has installed 1", marks=pytest.mark.full
        ),
    ],
)
def test_what_an_application_promises_rests_on_its_fsync(
    audit: Audit, name: str, without: tuple[str, ...], message: str
) -> None:
    """The canary of these checks: they accept what the application leaves, but not what it leaves without its fsync."""
    assert told(audit, made(name))["verdict"] == "holds"
    broken = told(audit, name, *without, target="ext4-original")
    assert broken["verdict"] == "violated"
    assert any(finding["message"].startswith(message) for finding in broken["disks"][0]["findings"])


PUT = """
import os
file = os.open('f', os.O_CREAT | os.O_WRONLY, 0o644)
os.write(file, b'x' * 5000)
os.fsync(file)
print(1, flush=True)
"""
FSYNC_DOES_NOTHING = "int fsync(int fd) { (void)fd; return 0; } int fdatasync(int fd) { (void)fd; return 0; }"


def test_an_application_without_its_fsync_is_noticed(audit: Audit, tmp_path: Path) -> None:
    """The program is the same, and so is its check: its calls of fsync are taken out by a preloaded library."""
    library = tmp_path / "nosync.so"
    (tmp_path / "nosync.c").write_text(FSYNC_DOES_NOTHING)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "nosync.c"], check=True)
    (tmp_path / "put.py").write_text(PUT)
    check = "grep -q 1 $POSTCRASH_ACKNOWLEDGED || exit 0; [ $(wc -c <f) = 5000 ]"
    program = f"/usr/bin/python3 -S {tmp_path}/put.py"
    assert told(audit, "--run", program, "--check", check)["verdict"] == "holds"
    assert told(audit, "--run", f"LD_PRELOAD={library} {program}", "--check", check)["verdict"] == "violated"


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        ("echo new >f; sync f; echo done", "holds"),
        ("echo done; echo new >f; sync f", "violated"),
        ("echo new >f; echo done; sync f", "violated"),
        ("(echo new >f; sync f; echo done) & wait", "holds"),
        ("(echo new >f; sync f) & echo done; wait", "violated"),
        ("echo new >f; sync f; seq -f %0800.0f 100 >/tmp/long; cat /tmp/long; echo done", "holds"),
    ],
)
def test_an_acknowledgement_stands_where_it_was_given(audit: Audit, run: str, verdict: str) -> None:
    check = "grep -q done $POSTCRASH_ACKNOWLEDGED || exit 0; grep -qx new f"
    assert told(audit, "--run", run, "--check", check, "--set-up", "touch f; sync")["verdict"] == verdict


THREADS = """
import os, sys, threading
def put(name):
    file = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(file, b'x' * 5000)
    if name != sys.argv[1]:
        os.fsync(file)
    os.write(1, name.encode() + b'\\n')
threads = [threading.Thread(target=put, args=(name,)) for name in 'abcd']
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize(("unsynced", "verdict"), [("none", "holds"), ("c", "violated")])
def test_each_thread_is_stopped_at_its_acknowledgement(
    audit: Audit, tmp_path: Path, unsynced: str, verdict: str
) -> None:
    (tmp_path / "threads.py").write_text(THREADS)
    check = 'for f in $(cat $POSTCRASH_ACKNOWLEDGED); do [ "$(wc -c <$f)" = 5000 ] || exit 1; done'
    run = f"/usr/bin/python3 -S {tmp_path}/threads.py {unsynced}"
    done = told(audit, "--run", run, "--check", check, target="ext4-nodelalloc")
    assert done["verdict"] == verdict


def test_an_application_has_as_many_inodes_as_it_says_it_needs(audit: Audit, tmp_path: Path) -> None:
    """A finding is recovered on the larger file system."""
    many = 'set_up = "mkdir d && seq 300 | sed s,^,d/, | xargs touch"\nrun = "touch d/301; echo done"\n'
    many += (
        'check = "[ $(ls d | wc -l) = 301 ] || [ ! -s $POSTCRASH_ACKNOWLEDGED ] || { echo a file is lost; exit 1; }"\n'
    )
    (tmp_path / "few.toml").write_text(many)
    (tmp_path / "many.toml").write_text(many + "inodes = 400\n")
    ran = audit("few.toml", "--target", "ext4-current", "--one-disk")
    assert (ran.returncode, "No space left on device" in ran.stderr) == (4, True)
    (finding,) = told(audit, "many.toml")["disks"][0]["findings"]
    assert finding["message"] == "a file is lost"
    assert "fails 2 of 2 times" in audit(finding["id"], "--times", "2", command="repro").stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--set", "fsync=off", "--budget", "100"), "an acknowledged transaction is lost"),
        (("--set", "full_page_writes=off"), "the server does not start"),
        ((), ""),
    ],
)
def test_postgresql(audit: Audit, given: tuple[str, ...], message: str) -> None:
    """It keeps what it promises, and loses transactions or pages without what its promises rest on."""
    done = told(audit, made("postgresql-15"), "--set", "workload=one", *given)
    found = [finding["message"] for finding in done["disks"][0]["findings"]]
    assert any(each.startswith(message) for each in found) if message else found == []
    assert done["verdict"] == ("violated" if message else "holds")
    assert done["folders"] > 10


def test_a_crash_within_the_kernel_s_recovery_is_counted(audit: Audit) -> None:
    asked = ("--run", "echo new >f; sync f; echo done", "--check", "true", "--depth", "2", "--budget", "60")
    ran = audit(*asked, "--target", "ext4-current", "--one-disk", "--recordings", "1")
    assert re.search(r"[1-9][0-9,]* of [1-9][0-9,]* within their recovery", " ".join(ran.stdout.split())), ran.stderr


def test_a_repair_before_the_mount_is_a_recovery_of_its_own(audit: Audit) -> None:
    """e2fsck -p throws a fast commit away (docs/findings), and mounting alone does not."""
    lost = "grep -q done $POSTCRASH_ACKNOWLEDGED || exit 0; grep -qs new f || { echo f is lost; exit 1; }"
    asked = ("--run", "echo new >f; sync f; sync .; echo done", "--check", lost)
    assert told(audit, *asked, target="ext4-fast-commit")["verdict"] == "holds"
    repaired = told(audit, *asked, "--recovery", "both", target="ext4-fast-commit")
    (finding,) = [each for each in repaired["disks"][0]["findings"] if each["checker"] == "application"]
    assert finding["message"] == "after e2fsck -p: f is lost; mounted alone, it is not so"
    again = audit(finding["id"], command="repro")
    assert "fails 1 of 1 times" in again.stdout, again.stderr


def test_a_finding_is_shown_again(audit: Audit) -> None:
    done = told(audit, "replace-python", "--set", "fsync=none", "--set", "durable=atomic", target="xfs")
    assert done["verdict"] == "violated"
    finding = done["disks"][0]["findings"][0]
    assert finding["message"] == "settings has neither content, and 0 bytes"
    again = audit(finding["id"], "--times", "3", command="repro")
    assert again.stdout.startswith(f"{finding['id']}: fails 3 of 3 times"), again.stderr
    explained = audit(finding["id"], command="explain")
    assert "says replaced" in explained.stdout, explained.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--run", "echo broken >&2; exit 4"), "ends with status 4 in the guest: broken"),
        (("--run", "echo a", "--set-up", "exit 5"), "ends with status 5 in the guest"),
        (("--run", "printf 'a\\001\\n'"), "says a line that is not printable"),
        (("--run", "/nowhere/program"), "not found"),
        (("--run", "true", "--set-up", "touch .nilfs"), f"{REFUSED} .nilfs in its folder"),
        (("--run", "true", "--set-up", "mkdir .aged"), f"{REFUSED} .aged in its folder"),
        (("--run", "echo a >.postcrash"), f"{REFUSED} .postcrash in its folder"),
        (("--run", "mv .postcrash a; mv a .postcrash"), f"{REFUSED} .postcrash in its folder"),
        (("--run", "rmdir lost+found"), f"{REFUSED} lost+found in its folder"),
        (("--run", "rmdir lost+found; mkdir lost+found"), f"{REFUSED} lost+found in its folder"),
        (("--run", "yes"), "says more than 4096 lines"),
        (("--run", "yes >f", "--set-up", "seq 5000"), "says more than 4096 lines"),
    ],
)
def test_a_program_that_fails_is_said(audit: Audit, given: tuple[str, ...], said: str) -> None:
    ran = audit(*given, "--check", "true", "--target", "ext4-current", "--one-disk")
    assert ran.returncode == 4, ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_program_that_does_not_end_is_said(audit: Audit, tmp_path: Path) -> None:
    (tmp_path / "endless.toml").write_text('run = "setsid sleep 1000 & sleep 1000"\ncheck = "true"\nseconds = 2\n')
    ran = audit("endless.toml", "--target", "ext4-current", "--one-disk")
    assert ran.returncode == 4, ran.stderr
    assert "did not end" in ran.stderr


def test_a_check_that_cannot_tell_is_undecided(audit: Audit, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text('run = "echo a >f"\ncheck = "sleep 100"\ncheck_seconds = 1\n')
    done = told(audit, "slow.toml")
    assert done["verdict"] == "undecided"
    assert "did not end within 1 s" in done["disks"][0]["judges"]["application"]["reason"]


def test_the_example_of_the_documentation(audit: Audit, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/audit.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (check,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (line,) = re.findall(r"^    postcrash audit (--set-up .*)$", page, re.MULTILINE)
    (tmp_path / "check.sh").write_text(check)
    verdicts = []
    for program in programs:
        (tmp_path / "save.py").write_text(program)
        ran = audit(*shlex.split(line.replace("$PWD", str(tmp_path))))
        verdicts.append(ran.returncode)
        assert ran.stderr == ""
    assert verdicts == [1, 0]


def folders(machine: Machine, source: Source, recover: RecoveryKind, **how: Any) -> list[set[str]]:
    """Digests of the folders that each crash interval can leave."""
    found = []
    for report in machine.explore(source, recover, Budget(), **how):
        if isinstance(report, IntervalReport):
            observed = [Observation.from_wire(outcome.observation) for outcome in report.outcomes]
            answers = (every_answer(partial(Folder.of, each.tree)) for each in observed)
            found.append({folder.digest for each in answers for folder, _ in each})
    return found


@pytest.mark.parametrize("name", ["ext4-current", "ext3-writeback", "btrfs"])
def test_folders_are_those_of_brute_force(machine: Machine, name: str, tmp_path: Path) -> None:
    """Contents that are looked up on the host, and left open, are those that the kernel reads in every single state."""
    target = target_named(name)
    command = "printf '%09000d' 7 >f; sync f; printf 12345678 | dd of=f bs=4 seek=1500 conv=notrunc; mv f g; echo done"
    workload = Workload("w", (), (Operation(RUN, value=command), Operation("sync")))
    base, recording = base_image(target, tmp_path).path, tmp_path / "run.pcr"
    ran = machine.record(base, target.mount, workload, recording, {})
    assert [str(operation) for operation in ran.ops[1:]] == ["says done", "ends", "sync"]
    recover = replace(target.recovery(walk=True, fsck=False), bytes=True)
    source = Source(recording, base, "cache")
    lazily = folders(machine, source, recover)
    assert len(set().union(*lazily)) >= 3
    small = [n for n, each in enumerate(_intervals(machine, source, recover)) if each.contents <= 300]
    everything = folders(machine, source, recover.by_kernel(), brute_force=True, intervals=small)
    assert len(small) > 3
    assert [lazily[number] for number in small] == everything


def _intervals(machine: Machine, source: Source, recover: RecoveryKind) -> list[IntervalReport]:
    told = machine.explore(source, recover, Budget())
    return sorted((each for each in told if isinstance(each, IntervalReport)), key=lambda each: each.index)


SHELL = "echo new >f.new; sync f.new; mv f.new f; echo done"


@pytest.mark.parametrize("target", ["ext4-current", "f2fs"])
def test_system_calls_stand_among_the_requests_that_they_make(audit: Audit, target: str) -> None:
    """sync(1) begins before the first write is sent, and ends when the flush has ended."""
    check = "! grep -q done $POSTCRASH_ACKNOWLEDGED"
    given = ("--run", SHELL, "--check", check, "--target", target, "--one-disk", "--recordings", "1", "--json", "-")
    finding = json.loads(audit(*given).stdout)["audits"][0]["disks"][0]["findings"][0]
    trace = json.loads(audit(finding["id"], "--perfetto", "-", command="explain").stdout)["traceEvents"]
    when = {(event["name"], event["ph"]): event["ts"] for event in trace if event["ph"] in "be"}
    calls = ('openat("f.new", O_WRONLY|O_CREAT|O_TRUNC)', 'write("f.new", 4 bytes)', 'fsync("f.new")')
    ends = [when[call, end] for call in calls for end in "be"]
    assert ends == sorted(ends)
    writes = [when[name, "b"] for name, end in when if end == "b" and name.startswith(("kept: ", "stable: "))]
    synced = when[calls[2], "b"], when[calls[2], "e"]
    assert synced[0] < min(writes), "nothing is written before"
    assert synced[0] < when["flush", "e"] < synced[1]
    threads = {event["args"]["name"] for event in trace if event["name"] == "thread_name"}
    assert {"thread 1, sh", "thread 2, sync", "thread 3, mv"} <= threads


ENDED_IN_A_CALL = """\
import os, signal, time
os.mkfifo("fifo")
child = os.fork()
if not child:
    os.open("fifo", os.O_WRONLY | os.O_CREAT)
time.sleep(0.2)
os.kill(child, signal.SIGKILL)
os.wait()
os.fsync(os.open("f", os.O_WRONLY | os.O_CREAT))
print("done", flush=True)
"""


def test_a_call_in_which_its_process_is_killed_never_returns(audit: Audit, tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(ENDED_IN_A_CALL)
    check = "! grep -q done $POSTCRASH_ACKNOWLEDGED"
    given = (
        "--run",
        f"{shlex.quote(sys.executable)} {tmp_path}/killed.py",
        "--check",
        check,
        "--target",
        "ext4-current",
    )
    done = json.loads(audit(*given, "--one-disk", "--recordings", "1", "--json", "-").stdout)["audits"][0]
    calls = told_of(audit, done["disks"][0]["findings"][0]["id"])
    assert ('openat("fifo", O_WRONLY|O_CREAT)', "never returns") in calls
    assert ('fsync("f")', "0") in calls


def told_of(audit: Audit, id: str) -> list[tuple[str, str]]:
    """The system calls of a finding, with their results."""
    explanation = json.loads(audit(id, "--json", "-", command="explain").stdout)["explanation"]
    return [(call["text"], call["result"]) for call in explanation["calls"]]
