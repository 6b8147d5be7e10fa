"""The plugin of pytest as far as no guest is needed: what it collects, how it is asked, and what it refuses."""

import fnmatch
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "postcrash.harness.testing.plugin")
OPS = "creat A\nappend A 4096\n"
TEST = """
import pytest

def test_plain():
    pass

def test_save(crash_fs):
    assert False, crash_fs.target
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with a workload file and a test file. The plugin is enabled by its name alone, installed or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makefile(".ops", save=OPS)
    pytester.makepyfile(test_save=TEST)
    pytester.makeini("[pytest]\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess(*PLUGIN, "-rs", *arguments, timeout=100)


def collected(project: pytest.Pytester, *arguments: str) -> list[str]:
    ran = run(project, "--collect-only", "-q", *arguments)
    assert ran.ret == 0, ran.outlines
    return sorted(line for line in ran.outlines if "::" in line)


def test_without_the_switch_nothing_of_postcrash_runs_and_nothing_is_lost_silently(project: pytest.Pytester) -> None:
    ran = run(project)
    ran.assert_outcomes(passed=1, skipped=1)
    ran.stdout.fnmatch_lines(["*crash states take a guest: run  pytest --postcrash"])


def test_pytest_starts_as_fast_as_without_the_plugin() -> None:
    """What is slow to import is not imported."""
    slow = (
        "z3",
        "pydantic",
        "rich",
        "click",
        "jinja2",
        "postcrash._core",
        "postcrash.model",
        "postcrash.harness.examination.session",
    )
    code = f"import sys, postcrash.harness.testing.plugin; print([name for name in {slow} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_workload_and_test_is_run_on_every_target(project: pytest.Pytester) -> None:
    assert collected(project, "--postcrash") == [
        "save.ops::ext4-current",
        "test_save.py::test_plain",
        "test_save.py::test_save[ext4-current]",
    ]
    assert collected(project, "--postcrash", "--postcrash-target", "btrfs, xfs,btrfs", "-m", "postcrash") == [
        "save.ops::btrfs",
        "save.ops::xfs",
        "test_save.py::test_save[btrfs]",
        "test_save.py::test_save[xfs]",
    ]


def test_a_workload_has_a_test_for_each_property(project: pytest.Pytester) -> None:
    asked = collected(project, "--postcrash", "--postcrash-properties", "P1,P5", "save.ops")
    assert asked == ["save.ops::ext4-current-P1", "save.ops::ext4-current-P5"]


def test_a_marker_names_targets_and_properties(project: pytest.Pytester) -> None:
    marked = '@pytest.mark.postcrash(target="xfs,btrfs", property="P2")\ndef test_save(crash_fs)'
    project.makepyfile(test_save=TEST.replace("def test_save(crash_fs)", marked))
    assert collected(project, "--postcrash", "--postcrash-target", "vfat", "test_save.py")[1:] == [
        "test_save.py::test_save[btrfs-P2]",
        "test_save.py::test_save[xfs-P2]",
    ]


def test_the_configuration_file_says_the_same(project: pytest.Pytester) -> None:
    (project.path / "mine.toml").write_text('name = "mine"\nlike = "xfs"\n')
    project.makeini("[pytest]\naddopts = --postcrash\npostcrash_target = btrfs,mine.toml\npostcrash_properties = P4\n")
    (project.path / "sub").mkdir()
    (project.path / "save.ops").rename(project.path / "sub/save.ops")
    assert collected(project, "sub") == ["sub/save.ops::btrfs-P4", "sub/save.ops::mine-P4"]
    assert collected(project, "sub", "--postcrash-target", "vfat") == ["sub/save.ops::vfat-P4"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--postcrash-target", "ext5"), "unknown target 'ext5', did you mean 'ext2'?"),
        (("--postcrash-target", "none.toml"), "none.toml: No such file or directory"),
        (("--postcrash-properties", "P9"), "no property is called 'P9'"),
        (("--postcrash-expect", "miracles"), "'miracles' is no expectation"),
        (("--postcrash-budget", "soon"), "'soon' is no budget"),
        (("--postcrash-properties", "P1", "--postcrash-expect", "kernel:6.1"), "and so does kernel:6.1"),
    ],
)
def test_a_wrong_option_is_one_line(project: pytest.Pytester, arguments: tuple[str, ...], said: str) -> None:
    ran = run(project, "--postcrash", *arguments)
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in ran.errlines if line]
    assert line.startswith("ERROR: postcrash: ") and said in line
    assert not (project.path / ".postcrash").exists()


WRONG_MARKERS = {
    "colour=1": "a marker is written postcrash(target=..., property=...)",
    '"P5"': "a marker is written postcrash(target=..., property=...)",
    'property="P9"': "no property is called 'P9'",
    'target="ext5"': "unknown target 'ext5'",
}


def test_a_wrong_marker_is_refused(project: pytest.Pytester) -> None:
    marked = {
        f"test_{number}": f"import pytest\n@pytest.mark.postcrash({marker})\ndef test_save(crash_fs): pass\n"
        for number, marker in enumerate(WRONG_MARKERS)
    }
    project.makepyfile(**marked)
    ran = run(project, "--postcrash", *(f"{name}.py" for name in marked))
    ran.assert_outcomes(errors=len(WRONG_MARKERS))
    shown = [line for line in ran.outlines if line.startswith("test_") and "::test_save: " in line]
    assert all(said in line for line, said in zip(shown, WRONG_MARKERS.values(), strict=True)), shown


def test_a_mistake_in_a_workload_shows_its_place(project: pytest.Pytester) -> None:
    project.makefile(".ops", save="creat A\nwrite A zero 4096\n", gone="unlink nothing\n")
    ran = run(project, "--postcrash")
    ran.assert_outcomes(errors=2)
    ran.stdout.fnmatch_lines(["*save.ops:2:9: expected OFFSET*"])
    ran.stdout.fnmatch_lines(["*gone.ops:1: *ENOENT*"])
    ran.stdout.no_fnmatch_line("*Traceback*")


WRONG_TESTS = {
    "pass": "nothing was judged: the test did not call crash_fs.check()",
    "crash_fs.check()": "postcrash: crash_fs.check() comes after crash_fs.operations() or crash_fs.run()",
    "crash_fs.operations('creat A b')": "postcrash: operations:1:9: expected end of line, found 'b'",
    "crash_fs.operations('unlink A')": "postcrash: operations:1: *would fail with ENOENT",
    "crash_fs.operations('creat A'); crash_fs.operations('creat A')": "postcrash: a test runs one thing: *",
    "crash_fs.operations('creat A'); crash_fs.check('x' * 5000)": "postcrash: *one line of at most 4000 bytes*",
    "assert crash_fs.target == 'xfs'; assert 0, 'mine'": "E       AssertionError: mine",
}


def test_what_a_test_does_wrong_is_one_line(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_save="".join(f"def test_{n}(crash_fs):\n    {body}\n" for n, body in enumerate(WRONG_TESTS))
    )
    ran = run(project, "--postcrash", "--postcrash-target", "xfs", "test_save.py")
    ran.assert_outcomes(failed=len(WRONG_TESTS))
    failures = ran.stdout.str().partition("FAILURES")[2].split("\n____")[1:]
    for failure, (body, said) in zip(failures, WRONG_TESTS.items(), strict=True):
        lines = failure.splitlines()[1:]
        assert [line for line in lines if fnmatch.fnmatchcase(line, said)], (body, lines)
        assert len(lines) == 1 or "mine" in body, lines


def test_a_property_and_a_check_are_not_asked_at_once(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_save="import pytest\n@pytest.mark.postcrash(property='P5')\ndef test_save(crash_fs):\n"
        "    crash_fs.operations('creat A')\n    crash_fs.check('true')\n"
    )
    ran = run(project, "--postcrash", "test_save.py")
    ran.stdout.fnmatch_lines(["postcrash: the property P5 judges, and so does the check: give one of them"])


def test_workers_of_xdist_collect_the_same(project: pytest.Pytester) -> None:
    project.makepyfile(test_save=TEST.replace("assert False", "crash_fs.is_checked = True; assert True"))
    project.makefile(".ops", save="unlink nothing\n")
    ran = run(project, "-p", "xdist", "-n", "2", "--postcrash", "--postcrash-target", "xfs,btrfs", "test_save.py")
    ran.assert_outcomes(passed=3)


def test_counts_of_any_length_can_be_told_where_crash_states_are_explored(project: pytest.Pytester) -> None:
    """A write of 64 MiB leaves 2^16384 crash states, and Python writes no number of so many digits by itself."""
    project.makepyfile(test_long="def test_long():\n    str(1 << 16384)\n")
    run(project, "test_long.py", "--postcrash").assert_outcomes(passed=1)
    run(project, "test_long.py").assert_outcomes(failed=1)
