"""Scripts in guests do what the simulation says. They show what was found, and nothing if nothing is wrong."""

import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from postcrash._core import Recording, intervals
from postcrash.harness.budget import Budget
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import Crew, run_campaign
from postcrash.harness.examination.certificate import certificates_of
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.violation_count import violating
from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.reproduce import Reproducer, reproducers
from postcrash.harness.findings.symptom import shell_tests
from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.harness.guests.machine import Machine, MachineSettings, Source
from postcrash.harness.guests.script_guest import ScriptResult, run_script, script_root
from postcrash.model import FORMS, History, Observation, Verdict, parse_workload
from postcrash.model.tree import ROOT_PATH
from postcrash.reports.explanation import explanation
from postcrash.reports.script.shell_script import FlakeyCut, LogCut, Symptom, script
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.targets import base_image, target_named

from .command import ROOT, postcrash
from .conftest import reading

EVERY_WORD = """\
mkdir D
creat A
append A 10000
creat "B b"
setxattr A user.gone 1
---
mkdir D/e
mkdir f
rmdir f
creat D/e/-x
write D/e/-x 100 5000
append D/e/-x 3000
dwrite A 4096 1024
mmapwrite A 9000 3000
msync A
msync A 8192 10
truncate D/e/-x 7000
fallocate A punch-hole 0 100
fallocate D/e/-x none 0 9000
fallocate D/e/-x keep-size 0 90000
fallocate A zero-range 5000 10
fallocate A zero-range-keep-size 6000 10
fallocate A insert-range 0 4096
fallocate A collapse-range 4096 4096
tmpfile D/t
append @D/t 5000
link @D/t D/named
mknod fifo fifo
mknod socket socket
mknod char char
mknod block block
drop-caches
link A l
symlink "../no where" D/s
creat g
unlink g
creat h
creat h2
append h 5
rename h h2
exchange "B b" D
setxattr A user.x "dark red"
setxattr A user.empty ""
removexattr A user.gone
open h2
rename h2 h3
append @h2 7
mmapwrite @h2 6 3
setxattr @h2 user.held yes
fsync @h2
rename h3 h2
close @h2
write-osync A 20 20
write-odsync A 40 20
dwrite-osync A 512 512
writeback A
writeback A 0 4096
fdatasync A
sleep 1
fsync A
fsync .
commit
checkpoint
syncfs
sync
"""

SHARED = """\
creat A
append A 10000
creat B
---
reflink A 4096 B 8192 4096
reflink A 0 B 0 4096
dedupe A 0 B 0 4096
fsync B
"""


@cache
def root(target: str = "ext4-current") -> Path:
    return script_root(find_kernel(), target_named(target), cache_folder())


def run(text: str, target: str) -> ScriptResult:
    return run_script(find_kernel(), root(target), target_named(target), text)


def found(settings: MachineSettings, store: Store, target_name: str, judge: str, text: str) -> Finding:
    """The first finding of `judge` for a workload, named."""
    target = target_named(target_name)
    plan = Plan(
        target=target,
        base=base_image(target, cache_folder() / "bases"),
        kernel="UML",
        guest="guest",
        workload=parse_workload(text, "reported").with_tail(),
        judges=judges_named([judge]),
        recoveries=(target.recovery(walk=True, fsck=False),),
        how=Exploration(budget=Budget(2000, 300)),
        explainer=explanation,
    )
    with TerminalProgress(1) as progress:
        (result,) = run_campaign([plan], Crew(settings, 1), store, progress)
    return with_block_names(result.findings, store)[0]


def scripts_of(finding: Finding, store: Store) -> tuple[Reproducer, ...]:
    recording = Recording(store.recording_path(finding.recording))
    interval = intervals(recording, store.base_path(finding.base), finding.model)[finding.interval]
    return reproducers(finding, target_named(finding.target), recording, interval)


def test_every_operation_has_a_script() -> None:
    operations = [operation for text in (EVERY_WORD, SHARED) for operation in parse_workload(text, "w").operations]
    # No file system of the installed kernel has untorn writes. tests/unit/reports/script has their commands.
    assert {operation.word for operation in operations} == set(FORMS) - {"awrite", "awrite-odsync"}


@pytest.mark.parametrize(("text", "target"), [(EVERY_WORD, "ext4-current"), (SHARED, "xfs")])
def test_every_operation_does_in_a_script_what_the_simulation_says(text: str, target: str) -> None:
    workload = parse_workload(text, "every-word")
    history = History(workload, len(workload.operations), len(workload.operations))
    tree = history.trees[-1]
    tests = [test for path in tree if path != ROOT_PATH for test in shell_tests(path, tree, history)]
    right, wrong = (
        script(
            "t",
            target_named(target),
            workload,
            list(history.trees),
            Symptom("tree", shown, ()),
            FlakeyCut(history.started),
        )
        for shown in (tuple(tests), (*tests, "holds A 5:001"))
    )
    ran = run(right, target)
    assert ran.code == 1, ran.printed
    assert run(wrong, target).code == 0


def test_a_report_has_a_script_that_shows_the_finding_and_nothing_on_a_target_without_it(tmp_path: Path) -> None:
    def shown(*arguments: str) -> str:
        done = postcrash(tmp_path, *arguments)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    example = str(ROOT / "examples/rename-replace.ops")
    checked = shown("check", example, "--target", "ext4-original", "--judge", "P5")
    ident = re.search(r"f-[0-9a-f]{16}", checked)
    assert ident is not None
    files = ("-o", "report.txt", "--script", "r.sh", "--fstests", "generic/999")
    shown("report", ident[0], "--try", "--times", "2", *files)
    report, text = (tmp_path / "report.txt").read_text(), (tmp_path / "r.sh").read_text()
    assert "shows it: 2 of 2 times." in report
    assert text in report
    test = tmp_path / "generic/999"
    assert "A script with this power cut showed it on" in test.read_text() and test.stat().st_mode & 0o111
    assert (tmp_path / "generic/999.out").read_text() == "QA output created by 999\nSilence is golden\n"
    safe = text.replace("-o noauto_da_alloc ", "")
    assert safe != text
    ran = run(safe, "ext4-current")
    assert ran.code == 0, ran.printed


def test_a_lost_write_shows_what_it_does_and_nothing_where_it_is_checked(
    settings: MachineSettings, store: Store
) -> None:
    finding = found(settings, store, "ext4-async-commit", "mounts", "creat a\nappend a 8192\nfsync a\n")
    scripts = [each for each in scripts_of(finding, store) if isinstance(each.cut, LogCut) and each.cut.lost]
    text = scripts[0].text
    ran = run(text, "ext4-async-commit")
    assert ran.code == 1, ran.printed
    assert run(text.replace("journal_async_commit,", ""), "ext4-async-commit").code == 0
    nothing_lost = next(each for each in scripts_of(finding, store) if isinstance(each.cut, LogCut))
    assert run(nothing_lost.text, "ext4-async-commit").code == 0


@pytest.mark.parametrize(
    ("target", "judge", "text"),
    [
        ("ext4-original", "P5", "creat a\nappend a 4096\n---\ncreat b\nappend b 8192\nrename b a\n"),
        ("ext3-writeback", "P3", "creat a\ncreat b\n---\nappend a 4096\nappend b 4096\nwriteback b\n"),
    ],
)
def test_states_that_break_a_judge_are_counted_as_by_brute_force(
    machine: Machine, settings: MachineSettings, store: Store, target: str, judge: str, text: str
) -> None:
    finding = found(settings, store, target, judge, text)
    (ran,) = store.runs()
    workload = parse_workload(finding.workload_text, finding.workload_name)
    source = Source(store.recording_path(finding.recording), store.base_path(finding.base), finding.model)
    known = intervals(Recording(source.recording), source.base, source.model)
    (asked,) = judges_named([judge])
    broken = 0
    for interval in known:
        for versions in product(*(range(len(weights)) for _, _, weights in interval.components)):
            choices = list(enumerate(versions))
            event = machine.execute(source, interval.index, choices, reading(target_named(target)))
            for _, started, returned in interval.instants:
                history = History(workload, started, returned)
                opinion = asked.check(history, Observation.from_wire(event.observation))
                broken += interval.covered(choices) if opinion.verdict is Verdict.VIOLATED else 0
    states = sum(interval.states * len(interval.instants) for interval in known)
    assert broken > 0
    counted = violating(certificates_of(ran["certificates"]), known, workload, asked)
    assert counted == (broken, states, ran["recoveries"])


def test_a_script_that_hangs_or_fails_is_not_one_that_shows_something() -> None:
    assert run("exit 0", "ext4-current").code == 0
    assert run("false; exit 7", "ext4-current").code == 7
    assert run("perl -e 'syscall(169, 0xfee1dead, 0x28121969, 0x4321fedc)'; sleep 5", "ext4-current").code is None
