"""docs/extending.md: what its examples define can be used."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pydantic
import pytest

from postcrash.checkers import Checker
from postcrash.harness.examination.judges import CheckerJudge, PropertyJudge
from postcrash.harness.examination.recording import Recorder
from postcrash.model import Entry, History, Observation, Tree, Verdict
from postcrash.properties import Property
from postcrash.properties.conformance import check_property
from postcrash.targets import Rule, load_target

PAGE = (Path(__file__).resolve().parents[3] / "docs/extending.md").read_text(encoding="utf-8")
ROOT = Entry(".", "dir", nlink=2, inode=1)


def example(title: str) -> str:
    """The example of a section."""
    section = PAGE[PAGE.index(f"## To add {title}\n") :]
    found = re.search(r"```\w+\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def defined(title: str, name: str) -> Any:
    """What the example of a section defines by that name."""
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
    judged = PropertyJudge(prop).opinion(done, Observation(0, Tree([ROOT])))
    assert (judged.verdict, judged.relevant) == (Verdict.VIOLATED, True)


def test_the_checker_judges() -> None:
    checker: Checker = defined("a checker", "NoSockets")()
    prop: Property = defined("a property", "LINK_THEN_UNLINK")
    history = History(prop.workloads()[0], 0, 0)
    socket = Observation(0, Tree([ROOT, Entry("s", "socket", nlink=1, inode=2)]))
    assert CheckerJudge(checker).opinion(history, socket).verdict is Verdict.VIOLATED
    assert CheckerJudge(checker).opinion(history, Observation(0, Tree([ROOT]))).verdict is Verdict.HOLDS
    assert CheckerJudge(checker).opinion(history, Observation(0, Tree())).verdict is Verdict.UNDECIDED


def test_the_rule_is_one() -> None:
    rules = pydantic.TypeAdapter(dict[str, Rule]).validate_python(tomllib.loads(example("an expectation rule")))
    assert [list(rule.promises) for rule in rules.values()] == [["one-name"]]


def test_the_recorder_is_one() -> None:
    recorder: Recorder = defined("a recorder", "Patient")()
    assert recorder.name == "patient"


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\b(?:[a-z]+/)+[a-z_0-9]+\.(?:py|rs|toml|md)\b", PAGE))))
def test_what_it_names_is_there(path: str) -> None:
    assert (Path(__file__).resolve().parents[3] / path).exists()
