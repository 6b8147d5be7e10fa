"""What is not made smaller."""

from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.findings.minimize import minimize
from postcrash.model import parse_workload


def test_a_workload_that_runs_a_program_is_refused_and_the_program_is_not_run() -> None:
    ran = 'creat a\n---\nrun "rm a" 60\nsays done\nends\nsync\n'
    nothing: Any = None  # whatever runs or asks something fails on it
    plan: Any = SimpleNamespace(workload=parse_workload(ran, "ran"))
    finding: Any = SimpleNamespace(id="f-0123456789abcdef")
    with pytest.raises(UsageError, match=r"^f-0123456789abcdef: its workload runs a program"):
        minimize(finding, plan, nothing, nothing, nothing)
