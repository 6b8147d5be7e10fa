"""The commands that come next when a gate fails, which can be pasted, and what a green one does not have."""

import shlex
from typing import Any

import pytest

from postcrash.reports.gate.next_steps import next_steps
from postcrash.store.gate_run import GateRun

from .conftest import KNOWN, failure, part, run

PAGE = "docs/findings/btrfs-half-a-rename.md"


def upstream_and_new() -> GateRun:
    known = failure(KNOWN, judge="A-rename", upstream=PAGE)
    return run(part(verdict="violated", failures=(known, failure())))


def test_a_finding_that_is_known_upstream_is_counted_and_shown_apart() -> None:
    told = upstream_and_new()
    assert (told.counts().new, told.counts().upstream) == (1, 1)
    assert [each.upstream for _, each in told.failures()] == ["", PAGE]
    assert told.verdict.name == "VIOLATED"


def test_it_can_be_accepted_apart_from_what_is_new() -> None:
    lines = list(next_steps(upstream_and_new()))
    assert lines[3:5] == [
        "to accept 1 finding known upstream, so that only what is new fails the gate:",
        "    postcrash gate --accept-upstream",
    ]
    assert lines[-1] == '    postcrash gate --accept "not looked into yet"'


def test_where_all_is_known_upstream_nothing_else_is_to_accept() -> None:
    lines = list(next_steps(run(part(verdict="violated", failures=(failure(upstream=PAGE),)))))
    assert lines[-1] == "    postcrash gate --accept-upstream"


def test_the_commands_name_the_file_the_parts_and_the_store() -> None:
    told = upstream_and_new().model_copy(update={"file": "my gate.toml", "names": ("small",)})
    commands = [shlex.split(line) for line in next_steps(told, "postcrash --store there") if line.startswith("    ")]
    assert commands[-1] == [
        *("postcrash", "--store", "there", "gate", "my gate.toml", "--part", "small"),
        *("--accept", "not looked into yet"),
    ]


def test_what_a_line_accepts_is_no_step_and_a_shard_accepts_nothing() -> None:
    accepted = run(part(failures=(failure(upstream=PAGE, known="seen"),)))
    assert not any("postcrash" in line for line in next_steps(accepted))
    shard = upstream_and_new().model_copy(update={"shards": ("1/2",)})
    assert not any("--accept" in line for line in next_steps(shard))


DEFAULT, RANDOM = 'the default hunt (hunt = "default")', "workloads of 5 to 20 operations (random = 1000)"


@pytest.mark.parametrize(
    ("kinds", "missing"),
    [
        (["properties", "application"], f"{DEFAULT}, {RANDOM}"),
        (["hunt"], RANDOM),
        (["random"], DEFAULT),
        (["hunt", "random"], "random workloads beyond these"),
    ],
)
def test_a_green_gate_says_which_workloads_it_does_not_have(kinds: list[str], missing: str) -> None:
    green = run(*(part(kind=kind, name=kind) for kind in kinds))
    assert list(next_steps(green)) == [f"not in this gate: {missing} (docs/gate.md)"]


@pytest.mark.parametrize("changes", [{"shards": ("1/2",)}, {"names": ("small",)}, {"interrupted": True}])
def test_what_is_not_the_whole_gate_says_nothing_of_the_gate(changes: dict[str, Any]) -> None:
    assert list(next_steps(run(part()).model_copy(update=changes))) == []
