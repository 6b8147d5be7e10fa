"""The rule book: its rules, what they say about targets, and its pages."""

import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pydantic
import pytest

from postcrash._core import device_models
from postcrash.harness.examination.session import JUDGE_NAMES
from postcrash.model import Verdict
from postcrash.properties.promises import (
    RULES,
    Standing,
    Statements,
    standing_text,
    statements_of,
    unknown_names,
    verdict_on_promises,
)
from postcrash.targets import TARGETS, VARIANTS, Rule, Target, load_target, target_named

HOLDS, UNDECIDED, VIOLATED = Verdict.HOLDS, Verdict.UNDECIDED, Verdict.VIOLATED
DOCS = Path(__file__).resolve().parents[3] / "docs"
MODELS = tuple(device_models())


def speaking(rule: Rule) -> list[tuple[Target, str]]:
    return [(t, m) for t, m in product((*TARGETS, *VARIANTS), MODELS) if rule.speaks_of(t.fstype, t.words, m)]


def useless(rules: dict[str, Rule]) -> set[str]:
    """Rules with a name that they promise or deny to no target, even if only because other rules take it back."""
    found = set()
    for name, rule in rules.items():
        there = speaking(rule)
        for pattern in (*rule.promises, *rule.denies):
            judges = [judge for judge in JUDGE_NAMES if replace(rule, promises=(pattern,), denies=()).names(judge)]
            told = [statements_of(target, model, judge, rules) for target, model in there for judge in judges]
            if not any(about.denial if rule.denies else about.promise for about in told):
                found.add(name)
    return found


def contradictions(rules: dict[str, Rule]) -> set[tuple[str, str, str]]:
    """Targets with two rules: one promises what the other denies, although no option or drive makes the difference."""
    return {
        (target.name, promising, denying)
        for promising, promise in rules.items()
        for denying, denial in rules.items()
        if promise.promises and denial.denies and not denial.options and not denial.models
        for target, model in speaking(denial)
        if promise.speaks_of(target.fstype, target.words, model)
        and any(promise.names(judge) and denial.names(judge) for judge in JUDGE_NAMES)
    }


OF_NO_TARGET = {
    "ext-no-replay": ("ext4-current", "noload", "foreign-bytes"),
    "xfs-no-recovery": ("xfs", "norecovery", "durability"),
    "btrfs-barrier": ("btrfs", "nobarrier", "D-sync-data"),
    "f2fs-no-checkpoint": ("f2fs", "checkpoint=disable", "mounts"),
    "f2fs-no-roll-forward": ("f2fs", "disable_roll_forward", "durability"),
    "reiserfs-barrier": ("reiserfs", "barrier=none", "durability"),
}
"""Rules about options that no target of the catalogue has: a target that has them, the option, and what it denies."""


@pytest.mark.parametrize("rule", OF_NO_TARGET)
def test_a_rule_about_an_option_of_a_users_target(rule: str, tmp_path: Path) -> None:
    like, option, judge = OF_NO_TARGET[rule]
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\nlike = "{like}"\noptions = "{option}"\n')
    about = statements_of(load_target(path), "cache", judge)
    assert (about.promise, about.denial and about.denial.rule) == (None, rule)


def test_every_name_is_known_every_rule_is_of_use_and_none_contradicts_another() -> None:
    assert list(unknown_names(RULES, JUDGE_NAMES)) == []
    assert useless(dict(RULES)) == OF_NO_TARGET.keys()
    assert contradictions(dict(RULES)) == set()


def test_planted_mistakes_are_noticed() -> None:
    rule = Rule(statement="Told.", source="x(1)", promises=("P1", "D-nothing-*"))
    assert list(unknown_names({"r": rule}, JUDGE_NAMES)) == ["rule r: no property or checker is called 'D-nothing-*'"]
    on_hfs = Rule(statement="Told.", source="x(1)", promises=("P1",), types=("hfs",))
    to_all = Rule(statement="Told.", source="x(1)", promises=("P2",))
    never = Rule(statement="Told.", source="x(1)", denies=("P2",))
    assert useless({**RULES, "on-hfs": on_hfs}) == {"on-hfs", *OF_NO_TARGET}
    assert useless({"to-all": to_all, "never": never}) == {"to-all"}
    assert ("minix", "to-all", "never") in contradictions({"to-all": to_all, "never": never})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"statement": "Told.", "promises": ("P1",)}, "source"),
        ({"statement": "Told.", "source": "", "promises": ("P1",)}, "source"),
        ({"statement": "", "source": "x(1)", "promises": ("P1",)}, "statement"),
        ({"statement": "Told.", "source": "x(1)"}, "either promises or denies"),
        ({"statement": "Told.", "source": "x(1)", "promises": ("P1",), "denies": ("P2",)}, "either promises or denies"),
        ({"statement": "Told.", "source": "x(1)", "promises": ("P1",), "target": "ext4"}, "target"),
    ],
)
def test_a_rule_is_whole(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=message):
        Rule(**fields)


@pytest.mark.parametrize(
    ("target", "judge", "rule"),
    [
        ("ext2", "D-fsync-data", "fsync"),
        ("vfat", "durability", "persistence"),
        ("ext4-current", "P5", "auto-da-alloc"),
        ("ext4-fast-commit", "foreign-bytes", "ext-ordered"),
        ("ext3-journal", "foreign-bytes", "ext-data-journal"),
        ("ext3-ordered", "A-rename", "ext-journal"),
        ("xfs", "P1", "xfs-order"),
        ("xfs-wsync", "P4", "dirsync"),
        ("ext2-sync", "D-return-name", "sync-mount"),
        ("ext4-async-commit", "mounts", "ext-journal"),
        ("nilfs2", "foreign-bytes", "nilfs2-order"),
        ("btrfs-flushoncommit", "P2", "btrfs-flushoncommit"),
        ("jfs", "mounts", "jfs-integrity"),
        ("f2fs-strict", "fsck", "f2fs-checkpoint"),
        ("xsyncfs", "O-dir-any", "external-synchrony"),
    ],
)
def test_what_is_promised(target: str, judge: str, rule: str) -> None:
    about = statements_of(target_named(target), "cache", judge)
    assert about.promise
    assert (about.promise.rule, about.denial) == (rule, None)


@pytest.mark.parametrize(
    ("target", "judge", "model", "rule"),
    [
        ("ext2", "mounts", "cache", "ext2-no-journal"),
        ("ext3-writeback", "foreign-bytes", "torn", "ext-writeback"),
        ("ext4-async-commit", "foreign-bytes", "cache", "ext-writeback"),
        ("ext4-original", "P5", "cache", "noauto-da-alloc"),
        ("ext4-nobarrier", "durability", "cache", "ext-barrier"),
        ("f2fs-nobarrier", "D-sync-data", "ordered:512", "f2fs-barrier"),
        ("ntfs3", "mounts", "cache", "ntfs3-journal"),
        ("xfs", "D-fsync-data", "lying:512", "drive"),
        ("ext4-current", "P4", "cache", None),
        ("ext4-current", "D-fsync-name", "cache", None),
        ("ext4-current", "P2", "cache", None),
        ("btrfs", "P1", "cache", None),
        ("minix", "mounts", "cache", None),
        ("xfs", "foreign-bytes", "cache", None),
        ("xsyncfs", "O-blocks", "cache", None),
    ],
)
def test_what_is_not_promised(target: str, judge: str, model: str, rule: str | None) -> None:
    about = statements_of(target_named(target), model, judge)
    assert about.promise is None
    assert (about.denial.rule if about.denial else None) == rule


def test_a_users_target_has_the_rules_of_its_type_and_options_and_its_own(tmp_path: Path) -> None:
    def mine(text: str) -> Target:
        path = tmp_path / "mine.toml"
        path.write_text(f'name = "mine"\nlike = "ext4-current"\n{text}')
        return load_target(path)

    def rule(target: Target, judge: str) -> str | None:
        about = statements_of(target, "cache", judge)
        clause = about.promise or about.denial
        return f"{'promised' if about.promise else 'denied'}: {clause.rule}" if clause else None

    assert rule(mine('options = "commit=1,sync"'), "S-sync-dir") == "promised: sync-mount"
    assert rule(mine('options = "commit=1"'), "S-sync-dir") is None
    assert rule(mine('options = "commit=1,nobarrier"'), "durability") == "denied: ext-barrier"
    without = 'mkfs = ["mkfs.ext4", "-O", "extents,^has_journal"]'
    assert rule(mine(without), "mounts") == "denied: ext4-no-journal"
    own = '[rules.mine]\nstatement = "A name is there."\nsource = "mine(5)"\n'
    assert rule(mine(f'{own}promises = ["P4"]'), "P4") == "promised: mine"
    assert rule(mine(f'{own}denies = ["fsck"]'), "fsck") == "denied: mine"
    replaced = own.replace("rules.mine", "rules.persistence")
    assert rule(mine(f'{replaced}denies = ["durability"]'), "durability") == "denied: persistence"


def test_the_four_standings() -> None:
    promised, denied = (statements_of(target_named(name), "cache", "P5") for name in ("ext4-current", "ext4-original"))
    silent = statements_of(target_named("btrfs"), "cache", "P5")
    assert [promised.standing(verdict) for verdict in Verdict] == [Standing.KEPT, None, Standing.BROKEN]
    for about in (denied, silent):
        assert [about.standing(verdict) for verdict in Verdict] == [Standing.PROVIDED, None, Standing.NOT_PROVIDED]
    assert standing_text(promised, HOLDS) == "kept: auto-da-alloc"
    assert standing_text(promised, VIOLATED).startswith("broken: auto-da-alloc (Linux, Documentation/")
    assert standing_text(denied, VIOLATED).startswith("not provided: noauto-da-alloc (Linux, Documentation/")
    assert (standing_text(silent, HOLDS), standing_text(silent, UNDECIDED)) == ("provided", "")


def test_only_what_was_promised_counts() -> None:
    promised, silent = (statements_of(target_named(name), "cache", "P5") for name in ("ext4-current", "btrfs"))
    judged: list[tuple[Verdict, Statements]] = [(VIOLATED, silent), (UNDECIDED, silent), (HOLDS, promised)]
    assert verdict_on_promises(judged) is HOLDS
    assert verdict_on_promises([*judged, (UNDECIDED, promised)]) is UNDECIDED
    assert verdict_on_promises([*judged, (VIOLATED, promised)]) is VIOLATED
    assert verdict_on_promises([(VIOLATED, silent)]) is UNDECIDED


def rows() -> str:
    """The rules as the document shows them."""
    lines = []
    for name, rule in RULES.items():
        kinds = (("", rule.types), ("with ", rule.options), ("on the model ", rule.models), ("without ", rule.unless))
        scope = " ".join(lead + " or ".join(f"`{word}`" for word in words) for lead, words in kinds if words) or "all"
        names = ", ".join(f"`{each}`" for each in rule.promises or rule.denies)
        names = f"not {names}" if rule.denies else names
        lines.append(f"| {name} | {rule.statement} | {rule.source} | {scope} | {names} |\n")
    return "".join(lines)


def test_the_document_has_the_rules_as_they_are() -> None:
    assert (
        (DOCS / "results/promises.md")
        .read_text(encoding="utf-8")
        .endswith(f"| --- | --- | --- | --- | --- |\n{rows()}")
    )


def test_the_documents_example_of_a_rule_is_one() -> None:
    example = (DOCS / "promises.md").read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    rules = tomllib.loads(example)["rules"]
    assert [list(unknown_names({name: Rule(**rule)}, JUDGE_NAMES)) for name, rule in rules.items()] == [[]]
