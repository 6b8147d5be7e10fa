"""Results of gates, in short."""

from typing import Any

from postcrash.store.gate_run import Failure, Part

from ...reports.gate.conftest import green, hostile, make_failure, make_part, make_run, make_undecided, mixed

__all__ = ("failure", "green", "hostile", "make_failure", "make_part", "make_run", "make_undecided", "mixed", "part")

CAUSE = "c-0123456789abcdef"
OTHER = "c-fedcba9876543210"
FINDING = "f-0123456789abcdef"


def failure(**about: Any) -> Failure:
    given = {"cause": CAUSE, "verdict": "violated", "judge": "P5", "message": "it broke", "finding": FINDING, **about}
    return Failure(**given)


def part(*failures: Failure, **about: Any) -> Part:
    worst = "holds" if not failures else "violated" if any(each.is_violated for each in failures) else "undecided"
    given = {"name": "small", "kind": "hunt", "target": "ext4-current", "kernel": "UML 6.1.176", "model": "cache"}
    return Part(**{**given, "expect": "practice", "verdict": worst, "failures": failures, **about})
