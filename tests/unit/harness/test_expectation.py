"""What is held against which file system, and the rule that is named."""

import pytest

from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.harness.expectation import checker_judges, standing_of
from postcrash.harness.session import JUDGE_NAMES
from postcrash.model import Verdict
from postcrash.properties.promises import PRACTICE_RULES, RULES, unknown_names
from postcrash.targets import target_named

DOCUMENTED = [checker.name for checker in CHECKERS]
HELD_TO = [checker.name for checker in PRACTICE]


@pytest.mark.parametrize(
    ("target", "more"), [("ext4-current", HELD_TO), ("btrfs", HELD_TO), ("xfs", HELD_TO), ("ext2", []), ("vfat", [])]
)
def test_practice_adds_what_file_systems_of_that_kind_are_held_to(target: str, more: list[str]) -> None:
    found = {level: checker_judges(level, target_named(target), "cache") for level in ("documents", "practice")}
    assert [judge.name for judge in found["documents"]] == DOCUMENTED
    assert [judge.name for judge in found["practice"]] == [*DOCUMENTED, *more]


def test_every_checker_of_practice_has_a_rule_with_a_test_of_fstests() -> None:
    assert not list(unknown_names(PRACTICE_RULES, JUDGE_NAMES))
    assert not PRACTICE_RULES.keys() & RULES.keys()
    for checker in PRACTICE:
        rules = [rule for rule in PRACTICE_RULES.values() if rule.names(checker.name)]
        assert rules
        assert all("fstests" in rule.source for rule in rules)


@pytest.mark.parametrize(
    ("judge", "verdict", "expected"),
    [
        ("one-name", Verdict.VIOLATED, "broken in practice: rename-is-whole (fstests generic/"),
        ("one-name", Verdict.HOLDS, "kept in practice: rename-is-whole (fstests generic/"),
        ("one-name", Verdict.UNDECIDED, ""),
        ("durability", Verdict.VIOLATED, "broken: persistence (fsync(2)"),
    ],
)
def test_a_verdict_names_its_rule(judge: str, verdict: Verdict, expected: str) -> None:
    said = standing_of(target_named("ext4-current"), "cache", judge, verdict)
    assert said.startswith(expected)
    assert bool(said) == bool(expected)
