"""Tests of pytest on real file systems: they pass, fail and are skipped as docs/pytest.md says."""

import re
import shlex
from pathlib import Path

import pytest

from postcrash.harness.files.places import cache_folder

from .command import postcrash

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs/pytest.md").read_text(encoding="utf-8")
CACHE = cache_folder()
"""Of the user, because pytester has a home folder of its own."""
REPLACE = (ROOT / "examples/rename-replace.ops").read_text()


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("POSTCRASH_CACHE", str(CACHE))
    pytester.makeini("[pytest]\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = "postcrash.harness.testing.plugin"
    return project.runpytest_subprocess("-p", plugin, "--postcrash", "-rsP", *arguments, timeout=300)


def failures(ran: pytest.RunResult) -> dict[str, str]:
    """What each failed test shows, by its name."""
    text = ran.stdout.str().partition("= FAILURES =")[2].partition("\n====")[0]
    parts = re.split(r"^_+ (\S+) _+$", text, flags=re.MULTILINE)
    texts = (re.sub(r"^\n?(\[gw\d\].*\n)?", "", part) for part in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


def command_of(failure: str) -> list[str]:
    """The command that a failure names for seeing it again."""
    (line,) = re.findall(r"^again: postcrash (.*)$", failure, re.MULTILINE)
    return shlex.split(line)


def test_a_workload_file_holds_is_violated_and_is_undecided(project: pytest.Pytester) -> None:
    project.makefile(".ops", replace=REPLACE)
    asked = ("--postcrash-target", "ext4-current,ext4-original", "--postcrash-properties", "P5,P2")
    ran = run(project, *asked)
    ran.assert_outcomes(passed=1, failed=1, skipped=2)
    ran.stdout.fnmatch_lines(["HOLDS on ext4-current, *: * of * crash states at * recoveries, * outcomes"])
    ran.stdout.fnmatch_lines(
        ["SKIPPED*NOT PUT TO THE TEST: P2 on ext4-original*: its premise is true in no crash state*"]
    )
    (said,) = failures(ran).values()
    assert "✗ P5 (not provided: noauto-da-alloc" in said
    assert "creat a\n    append a 1\n    ---\n    creat b\n    append b 1\n    rename b a\n" in said
    assert "✗ append b 1 (operation 4): never sent to the disk" in said
    again = postcrash(Path("/"), *command_of(said))
    assert (again.returncode, again.stderr) == (1, "")
    assert "fails 1 of 1 times (P5 on ext4-original" in again.stdout

    short = run(project, "--postcrash-budget", "1")
    short.assert_outcomes(failed=1)
    (said,) = failures(short).values()
    assert said.startswith("UNDECIDED on ext4-current") and "the budget" in said


def test_what_documents_promise_is_the_default_and_a_target_of_ones_own_may_break_it(project: pytest.Pytester) -> None:
    """A crash that loses a block of the journal's last transaction leaves what does not mount."""
    project.makefile(".ops", fsync="creat a\nappend a 8192\nfsync a\n")
    (project.path / "mine.toml").write_text('name = "mine"\nlike = "ext4-async-commit"\n')
    ran = run(project, "--postcrash-target", "ext4-current,mine.toml")
    ran.assert_outcomes(passed=1, failed=1)
    (said,) = failures(ran).values()
    assert said.startswith("VIOLATED on mine")
    again = postcrash(Path("/"), *command_of(said))
    assert (again.returncode, again.stderr) == (1, "")


def test_an_operation_that_is_not_there_is_skipped(project: pytest.Pytester) -> None:
    project.makefile(".ops", link="creat a\nlink a b\n")
    ran = run(project, "--postcrash-target", "vfat")
    ran.assert_outcomes(skipped=1)
    ran.stdout.fnmatch_lines(["SKIPPED*vfat on * does not support link*"])


def test_an_operation_that_works_in_another_test_is_no_reason_to_skip(project: pytest.Pytester) -> None:
    """A file system that refuses links of empty files as if it had no links at all."""
    example = ROOT / "examples/logfs"
    program = (example / "logfs.py").read_text()
    assert program.count("    def unlink(") == 1
    link = """    def link(self, new, old):
        if not self.tree[old]:
            raise FuseOSError(errno.EPERM)
        return self.change("create", new)

"""
    (project.path / "logfs.py").write_text(program.replace("    def unlink(", f"{link}    def unlink("))
    (project.path / "logfs.py").chmod(0o755)
    (project.path / "mine.toml").write_text((example / "logfs.toml").read_text())
    texts = {"1-empty": "creat a\nlink a b\n", "2-full": "creat a\nappend a 4096\nlink a b\n"}
    project.makefile(".ops", **texts)
    ran = run(project, "--postcrash-target", "mine.toml", "--postcrash-budget", "1")
    ran.assert_outcomes(skipped=1, failed=1)
    assert "link works here on logfs, but a test was skipped because it failed there" in ran.stdout.str()
    for name, first in ("1-empty", "2"), ("2-full", "1"):
        (project.path / f"{name}.ops").rename(project.path / f"{first}.ops")
    ran = run(project, "--postcrash-target", "mine.toml", "--postcrash-budget", "1")
    ran.assert_outcomes(failed=2)
    assert "but it works in another workload" in ran.stdout.str()


def test_an_operation_that_only_the_reference_has_is_no_reason_to_skip(project: pytest.Pytester) -> None:
    project.makefile(".ops", shift="creat a\nappend a 8192\nfallocate a insert-range 0 4096\nsync\n")
    ran = run(project, "--postcrash-target", "ext3-ordered", "--postcrash-expect", "target:ext4-current")
    assert "skipped" not in ran.parseoutcomes() and "passed" not in ran.parseoutcomes()
    assert "but target:ext4-current runs it" in ran.stdout.str()


def test_the_examples_of_the_documentation(project: pytest.Pytester) -> None:
    program, test, mended = re.findall(r"^```python\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    (project.path / "test_save.py").write_text(test)
    (project.path / "save.py").write_text(program)
    ran = run(project)
    said = failures(ran)
    assert set(said) == {
        "test_saved_settings_survive[ext4-current]",
        "test_a_file_is_replaced_as_a_whole[ext4-original-P5]",
    }
    lost = said["test_saved_settings_survive[ext4-current]"]
    assert "✗ application: the setting was saved, and is lost (test_save.py:7)" in lost
    assert "again: pytest --postcrash 'test_save.py::test_saved_settings_survive[ext4-current]'" in lost
    ran.assert_outcomes(passed=1, failed=2)
    (project.path / "save.py").write_text(program.replace("print(", f"{mended}print("))
    run(project, "-k", "survive").assert_outcomes(passed=1)


CHECKS = """
PUT = "echo new >f; {}; echo done"

def test_kept(crash_fs):
    crash_fs.run(PUT.format("sync f"))
    crash_fs.check("grep -q done $POSTCRASH_ACKNOWLEDGED || exit 0; grep -qx new f")

def test_lost(crash_fs):
    crash_fs.run(PUT.format(":"))
    crash_fs.check("grep -q done $POSTCRASH_ACKNOWLEDGED || exit 0; grep -sqx new f || { echo f is lost; exit 1; }")

def test_never_ends(crash_fs):
    crash_fs.run(PUT.format("sync f"))
    crash_fs.check("kill -9 $$")

def test_cannot_fail(crash_fs):
    crash_fs.run(PUT.format("sync f"))
    crash_fs.check(lambda folder, acknowledged: None)

def test_cannot_fail_by_command(crash_fs):
    crash_fs.run(PUT.format("sync f"))
    crash_fs.check("true")

def test_operations(crash_fs):
    crash_fs.operations("creat f; append f 5000; fsync f; fsync .".replace("; ", chr(10)))
    crash_fs.check(lambda folder, done: "fsync ." not in done or (folder / "f").stat().st_size == 5000)

def test_program_fails(crash_fs):
    crash_fs.run("echo broken >&2; exit 4")
    crash_fs.check("true")

def test_no_check(crash_fs):
    crash_fs.run("true")
    crash_fs.check()
"""


def test_checks_keep_lose_and_cannot_tell_on_two_workers(project: pytest.Pytester) -> None:
    project.makepyfile(test_put=CHECKS.replace("None", "None"))
    ran = run(project, "-p", "xdist", "-n", "2")
    ran.assert_outcomes(passed=2, failed=6)
    said = {name.partition("[")[0]: text.rstrip() for name, text in failures(ran).items()}
    assert said["test_lost"].startswith("VIOLATED on ext4-current") and "✗ application: f is lost" in said["test_lost"]
    assert said["test_never_ends"].startswith("UNDECIDED on ext4-current")
    for name in ("test_cannot_fail", "test_cannot_fail_by_command"):
        assert said[name].startswith("NOT PUT TO THE TEST: the check cannot fail: it also accepts an empty folder, ")
    assert "ends with status 4 in the guest: broken" in said["test_program_fails"]
    assert said["test_no_check"] == "postcrash: what a program promises only its check can say: crash_fs.check(CHECK)"
    again = postcrash(Path.cwd(), *command_of(said["test_lost"]))
    assert (again.returncode, again.stderr) == (1, "")


def test_only_pytest_shows_the_finding_of_a_function_again(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_f="def test_f(crash_fs):\n    crash_fs.operations('creat f')\n    crash_fs.check(lambda *_: False)\n"
    )
    ran = run(project)
    (finding,) = set(re.findall(r"f-[0-9a-f]{16}", ran.stdout.str()))
    refused = postcrash(project.path, "repro", finding)
    assert refused.returncode == 4
    assert refused.stderr.endswith(": run  pytest --postcrash 'test_f.py::test_f[ext4-current]'\n")
