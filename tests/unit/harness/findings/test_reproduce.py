"""Findings for which there can be no script."""

from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.findings.reproduce import reproducers, reproducers_of
from postcrash.reports.script.shell_operations import NoCommandError

RAN = 'creat a\n---\nrun "rm a" 60\nsays done\nends\nsync\n'


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"is_of_run": True}, "guests were lost while they ran the workload"),
        ({"base": "r-0123456789abcdef/2/-"}, "within recovery"),
    ],
)
def test_there_is_no_script_without_one_crash_of_the_workload(changed: dict[str, Any], said: str) -> None:
    nothing: Any = None
    finding: Any = SimpleNamespace(**{"is_of_run": False, "base": "b-0123456789abcdef", **changed})
    with pytest.raises(NoCommandError, match=said):
        reproducers_of(finding, nothing, nothing)


@pytest.mark.parametrize(
    ("model", "said"), [("cache", "what its program does to files is not known"), ("lying", "flushes do not persist")]
)
def test_what_a_program_does_and_a_disk_that_lies_are_beyond_a_script(model: str, said: str) -> None:
    nothing: Any = None
    finding: Any = SimpleNamespace(model=model, workload_text=RAN, workload_name="ran")
    with pytest.raises(NoCommandError, match=said):
        reproducers(finding, nothing, nothing, nothing)
