"""What is expected of which file system, and the rule that is named."""

import re
from pathlib import Path

import pytest

from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import JUDGE_NAMES
from postcrash.harness.expectations.expectation import Expectation
from postcrash.model import Verdict
from postcrash.properties import TORN_BLOCKS
from postcrash.properties.promises import PRACTICE_RULES, RULES, unknown_names
from postcrash.targets import load_target, target_named

DOCUMENTED = [checker.name for checker in CHECKERS]
HELD_TO = [checker.name for checker in PRACTICE]
OF_ALL = [name for name in HELD_TO if name not in ("in-place", "null-files")]
OF_EXT4 = [*OF_ALL, "in-place"]


EXT = ["O-dir", "A-rename", "A-exchange", "A-link", "A-unlink", "A-symlink", "A-xattr"]


@pytest.mark.parametrize(
    ("target", "more", "properties"),
    [
        ("ext4-current", OF_EXT4, ["P5", *EXT]),
        ("ext4-original", OF_ALL, EXT),
        ("btrfs", OF_ALL, []),
        ("xfs", [*OF_ALL, "null-files"], ["P1", *EXT, "R-two-dirs", "R-dir-append"]),
        ("btrfs-flushoncommit", OF_ALL, ["P2", "P2-null", "O-prefix-append", "S-safe-append"]),
        ("ext2", [], []),
        ("ext4-nobarrier", [], []),
        ("f2fs-nobarrier", [], []),
        ("vfat", [], []),
    ],
)
def test_documents_promise_properties_and_practice_adds_checkers(
    target: str, more: list[str], properties: list[str]
) -> None:
    found = {level: judges(Expectation.named(level), target) for level in ("documents", "practice")}
    assert found == {"documents": [*DOCUMENTED, *properties], "practice": [*DOCUMENTED, *more, *properties]}


def judges(expected: Expectation, target: str) -> list[str]:
    return [judge.name for judge in expected.judges(target_named(target), "cache")]


@pytest.mark.parametrize(
    ("like", "setting"),
    [
        ("ext4-current", 'mkfs = ["mkfs.ext4", "-O", "extents,^has_journal"]'),
        ("ext4-current", 'options = "norecovery"'),
        ("btrfs", 'options = "nobarrier"'),
    ],
)
def test_practice_expects_nothing_without_a_journal_or_barriers(like: str, setting: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(f'name = "mine"\nlike = "{like}"\n{setting}')
    names = {judge.name for judge in Expectation.named("practice").judges(load_target(mine), "cache")}
    assert names.isdisjoint(checker.name for checker in PRACTICE)


def test_without_auto_da_alloc_nobody_expects_what_it_does(tmp_path: Path) -> None:
    """The option is switched off by either of its names."""
    for number, option in enumerate(("noauto_da_alloc", "auto_da_alloc=0")):
        mine = tmp_path / f"{number}.toml"
        mine.write_text(f'name = "mine{number}"\nlike = "ext4-current"\noptions = "{option}"')
        names = {judge.name for judge in Expectation.named("practice").judges(load_target(mine), "cache")}
        assert not names & {"P5", "in-place"} and "one-name" in names
    assert {"P5", "in-place"} <= set(judges(Expectation.named("practice"), "ext4-current"))


def test_every_checker_of_practice_has_a_rule_with_its_source() -> None:
    assert not list(unknown_names(PRACTICE_RULES, JUDGE_NAMES))
    assert not PRACTICE_RULES.keys() & RULES.keys()
    for checker in PRACTICE:
        rules = [rule for rule in PRACTICE_RULES.values() if rule.names(checker.name)]
        assert rules
        assert all(re.search("fstests|Documentation/", rule.source) for rule in rules)


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
    said = Expectation.named("practice").standing(target_named("ext4-current"), "cache", judge, verdict)
    assert said.startswith(expected)
    assert bool(said) == bool(expected)


CONTRACT = """{"format": "postcrash contract 1", "kernel": "UML 6.1.176", "model": "cache", "held":
{"ext4-current": {"D-fsync-name": {"states": "77", "workloads": 5, "recoveries": 30}, "P5": {"states": "1",
"workloads": 1, "recoveries": 1}}, "ext2": {}}}"""


def contract(folder: Path) -> Expectation:
    (folder / "c.json").write_text(CONTRACT)
    return Expectation.named(f"contract:{folder}/c.json")


def test_a_contract_adds_the_properties_that_held(tmp_path: Path) -> None:
    ext4, asked = target_named("ext4-current"), contract(tmp_path)
    assert judges(asked, "ext4-current") == [*DOCUMENTED, *OF_EXT4, "P5", *EXT, "D-fsync-name"]
    broken = asked.standing(ext4, "cache", "D-fsync-name", Verdict.VIOLATED)
    assert broken.endswith("c.json (D-fsync-name held on UML 6.1.176, in 77 crash states of 5 workloads)")
    assert broken.startswith("broken: ")


@pytest.mark.parametrize(
    ("target", "model", "said"),
    [
        ("ext4-current", "torn", "c.json is about device model cache, not torn"),
        ("ext2", "cache", "c.json says nothing about ext2; it has ext4-current, ext2"),
    ],
)
def test_a_contract_about_something_else_is_refused(tmp_path: Path, target: str, model: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        contract(tmp_path).judges(target_named(target), model)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(UsageError, match="'contracts' is no expectation: choose one of documents, practice, contract"):
        Expectation.named("contracts")


def test_what_mount_options_make_durable_is_asked_by_properties() -> None:
    asked = judges(Expectation.named("documents"), "ext2-sync")
    assert "D-return-data" in asked
    assert not {"D-fsync-data", "D-osync-data"} & {*asked}


def test_torn_blocks_are_no_question_on_a_device_that_does_not_tear_them() -> None:
    target, expected = target_named("ext4-journal"), Expectation.named("documents")
    asked = {judge.name for judge in expected.judges(target, "cache")}
    assert "P2" in asked and not asked & TORN_BLOCKS
