"""docs/extending.md: everything that its examples define can be used."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import create_autospec

import pydantic
import pytest

from postcrash.checkers import Checker
from postcrash.harness.examination.recording import Job, Recorder
from postcrash.harness.guests.machine import Machine
from postcrash.model import Entry, History, Observation, Tree, Verdict, parse_workload
from postcrash.properties import Property
from postcrash.targets import Mount, Rule, load_target

from ..properties.conformance import check_property

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]
PAGE = (PROJECT / "docs/extending.md").read_text(encoding="utf-8")
ROOT = Entry(".", "dir", nlink=2, inode=1)
COMMAND = "import sys; from postcrash.harness.cli.main import main; sys.exit(main())"


def section(title: str) -> str:
    """The page's section on a subject."""
    return PAGE[PAGE.index(f"## To add {title}\n") :].split("\n## ")[0]


def example(title: str) -> str:
    """The first example of a section."""
    found = re.search(r"```\w+\n(.*?)```", section(title), re.DOTALL)
    assert found
    return found[1]


class Edit(NamedTuple):
    """The change of an example in one place of a file."""

    file: str
    old: str
    new: str


def edits(text: str) -> list[Edit]:
    """The edits of all diffs in a text."""
    found = []
    for diff in re.findall(r"```diff\n(.*?)```", text, re.DOTALL):
        for part in diff.split("--- ")[1:]:
            file, *lines = part.splitlines()
            old, new = ("".join(f"{line[1:]}\n" for line in lines if line[0] in marks) for marks in (" -", " +"))
            found.append(Edit(file, old, new))
    return found


class Copy:
    """The Python code with the edits of a section."""

    def __init__(self, title: str, folder: Path) -> None:
        self._folder = folder
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.rs", "target")
        shutil.copytree(PROJECT / "postcrash", folder / "postcrash", ignore=ignored)
        for core in (PROJECT / "postcrash").glob("_core*.so"):
            (folder / "postcrash" / core.name).symlink_to(core)
        for file, old, new in edits(section(title)):
            if file.endswith(".py"):
                path = folder / "postcrash" / file
                path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """The output of Python when it runs in the copy with `arguments`."""
        ran = subprocess.run(
            [sys.executable, *arguments],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(self._folder)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


USES = {
    "a property": "from postcrash.properties import Property\n\nused: Property = LINK_THEN_UNLINK\n",
    "a checker": "from postcrash.checkers import Checker\n\nused: Checker = NoSockets()\n",
    "a recorder": "from postcrash.harness.examination.recording import Recorder\n\nused: Recorder = Patient()\n",
}
"""By a section's title: code that uses what its example defines."""


def test_the_types_of_the_examples_are_right(tmp_path: Path) -> None:
    """Examples are checked as the project's own code is, and are what the project takes."""
    for number, (title, use) in enumerate(USES.items()):
        (tmp_path / f"example{number}.py").write_text(f"{example(title)}\n{use}", encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", *map(str, tmp_path.iterdir())]
    ran = subprocess.run(mypy, cwd=PROJECT, capture_output=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_example_of_python_is_used() -> None:
    assert PAGE.count("```python") == len(USES)


def defined(title: str, name: str) -> Any:
    """The object of that name that the section's example defines."""
    scope: dict[str, Any] = {"__name__": "example"}
    exec(example(title), scope)
    return scope[name]


def test_the_target_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(example("a target"))
    target = load_target(tmp_path / "own.toml")
    assert (target.name, target.fstype, target.options) == ("ext4-lazytime", "ext4", "lazytime")


def test_the_property_judges() -> None:
    prop: Property = defined("a property", "LINK_THEN_UNLINK")
    check_property(prop)
    (workload,) = prop.workloads()
    done = History(workload, len(workload.operations), len(workload.operations))
    judged = prop.check(done, Observation(0, Tree([ROOT])))
    assert (judged.verdict, judged.relevant) == (Verdict.VIOLATED, True)


def test_the_checker_judges() -> None:
    checker: Checker = defined("a checker", "NoSockets")()
    prop: Property = defined("a property", "LINK_THEN_UNLINK")
    history = History(prop.workloads()[0], 0, 0)
    socket = Observation(0, Tree([ROOT, Entry("s", "socket", nlink=1, inode=2)]))
    assert checker.check(history, socket).verdict is Verdict.VIOLATED
    assert checker.check(history, Observation(0, Tree([ROOT]))).verdict is Verdict.HOLDS
    assert checker.check(history, Observation(0, Tree())).verdict is Verdict.UNDECIDED


def test_the_rule_is_one() -> None:
    rules = pydantic.TypeAdapter(dict[str, Rule]).validate_python(tomllib.loads(example("an expectation rule")))
    assert [list(rule.promises) for rule in rules.values()] == [["one-name"]]


def test_the_recorder_is_one() -> None:
    recorder: Recorder = defined("a recorder", "Patient")()
    assert recorder.name == "patient"
    machine = create_autospec(Machine, instance=True)
    job = Job(Path("base"), Mount("ext4", ""), parse_workload("sync", "w"), None)
    assert recorder.can_record(machine)
    assert recorder.record(machine, job, Path("out"), {}) is machine.record.return_value
    machine.record.assert_called_once_with(job.base, job.mount, job.workload, Path("out"), {}, 1)


def test_the_operation_is_one(tmp_path: Path) -> None:
    """Its own tests accept the operation, and a property and a script know it."""
    copy = Copy("an operation of the language", tmp_path)
    tests = [
        str(PROJECT / "tests/unit/model" / name) for name in ("test_forms.py", "test_simulate.py", "test_builder.py")
    ]
    quick = ["-q", "-p", "no:cacheprovider", "-n", "0", "--allow-stale", "-c", str(PROJECT / "pyproject.toml")]
    ran = copy.run("-m", "pytest", *quick, *tests, "-k", "rename-new or every_operation")
    assert "5 passed" in ran
    shown = copy.run("-c", USE_OF_THE_OPERATION)
    assert shown.splitlines() == ["False", "['mv -nT a b']"]


USE_OF_THE_OPERATION = """
from postcrash.model import History, Observation, Verdict, parse_workload, simulate
from postcrash.properties import PROPERTIES
from postcrash.reports.script.shell_operations import commands

workload = parse_workload("creat a\\n---\\nrename-new a b\\ncreat c", "w")
before, _, after = simulate(workload)[1:]
without = after.changed({"b": None, "a": before["a"]})
(ordered,) = (each for each in PROPERTIES if each.name == "P1")
print(ordered.check(History(workload, 3, 3), Observation(0, without)).verdict is Verdict.HOLDS)
print(commands(workload.ops[0], before, "ext4"))
"""


def test_the_recovery_is_one(tmp_path: Path) -> None:
    copy = Copy("a recovery", tmp_path)
    code = """
from postcrash.harness.examination.repair import ways
from postcrash.targets import target_named

print(ways(target_named("ext4-current"), "repair-first"))
"""
    assert copy.run("-c", code) == "[True, False]\n"
    assert "repair-first: each in turn" in " ".join(copy.run("-c", COMMAND, "check", "--help").split())


def test_the_flag_is_one(tmp_path: Path) -> None:
    copy = Copy("a flag of a command", tmp_path)
    listed = ["kernels", "list", "--json", "-", "--engine", "none"]
    assert json.loads(copy.run("-c", COMMAND, *listed)) == {"kernels": []}


@pytest.mark.parametrize("edit", edits(PAGE), ids=lambda edit: edit.file)
def test_what_an_example_quotes_stands_there_once(edit: Edit) -> None:
    assert (PROJECT / edit.file).read_text(encoding="utf-8").count(edit.old) == 1


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\b(?:[a-z]+/)+[a-z_0-9]+\.(?:py|rs|toml|md)\b", PAGE))))
def test_what_it_names_is_there(path: str) -> None:
    assert (PROJECT / path).exists()
