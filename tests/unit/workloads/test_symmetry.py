"""Which workloads count as the same one."""

import random
import re

import pytest

from postcrash.model import Workload, parse_workload
from postcrash.workloads import GRAMMARS, Grammar, WorkloadSpace, canonical

pytestmark = pytest.mark.slow

SWAPS = [{}, {"foo": "bar", "bar": "foo"}, {"A": "B", "B": "A"}, {"foo": "bar", "bar": "foo", "A": "B", "B": "A"}]


def renamed(workload: Workload, names: dict[str, str]) -> Workload:
    """The workload with names exchanged, word by word of its text."""
    lines = [re.sub(r"\w+", lambda part: names.get(part[0], part[0]), line) for line in workload.to_text().splitlines()]
    return parse_workload("\n".join(lines), workload.name)


@pytest.mark.parametrize("grammar", GRAMMARS.values(), ids=lambda grammar: grammar.name)
def test_one_form_for_those_that_an_exchange_of_names_makes_equal_and_for_no_others(grammar: Grammar) -> None:
    space = WorkloadSpace(GRAMMARS[grammar.name], 2)
    drawn = [space[number] for number in random.Random(2).sample(range(len(space)), 700)]
    classes: dict[str, set[str]] = {}
    for workload in drawn:
        images = {renamed(workload, names).to_text() for names in SWAPS}
        assert {canonical(parse_workload(text, "w")) for text in images} == {canonical(workload)}
        assert classes.setdefault(canonical(workload), images) == images


def test_the_form_is_one_of_the_workloads() -> None:
    workload = parse_workload("mkdir B\ncreat B/bar\nwrite B/bar 0 1\nrename B/bar bar\nfsync B\nfsync .", "w")
    assert canonical(workload) == "mkdir A\ncreat A/foo\nwrite A/foo 0 1\nrename A/foo foo\nfsync A\nfsync ."


def test_other_names_stay() -> None:
    assert canonical(parse_workload("creat x\nlink x bar", "w")) == "creat x\nlink x foo"


def test_a_durable_set_up_makes_another_workload() -> None:
    texts = ("creat foo\n---\nwrite foo 0 1\nsync", "creat foo\nwrite foo 0 1\nsync")
    assert len({canonical(parse_workload(text, "w")) for text in texts}) == 2
    assert canonical(parse_workload(texts[0].replace("foo", "bar"), "w")) == canonical(parse_workload(texts[0], "w"))
