"""What a rule is about: types, options, drives, and the judges that it names. One that says nothing is refused."""

from typing import Any

import pytest
from pydantic import ValidationError

from postcrash.targets import Rule


def rule(**given: Any) -> Rule:
    return Rule(**{"statement": "It is so.", "source": "fs(5)", "promises": ("P1",), **given})


@pytest.mark.parametrize(
    ("limits", "speaks"),
    [
        ({}, True),
        ({"types": ("ext2", "ext4")}, True),
        ({"types": ("ext2", "ext3")}, False),
        ({"models": ("cache",)}, True),
        ({"models": ("torn", "lying")}, False),
        ({"options": ("data=journal", "sync")}, True),
        ({"options": ("data=ordered",)}, False),
        ({"options": ("data=journ",)}, False),
        ({"unless": ("nobarrier",)}, True),
        ({"unless": ("nobarrier", "sync")}, False),
        ({"options": ("sync",), "unless": ("data=journal",)}, False),
        ({"types": ("ext4",), "models": ("cache",), "options": ("sync",), "unless": ("nobarrier",)}, True),
        ({"types": ("xfs",), "models": ("cache",), "options": ("sync",)}, False),
    ],
)
def test_a_rule_speaks_of_what_meets_all_its_limits(limits: dict[str, tuple[str, ...]], speaks: bool) -> None:
    assert rule(**limits).speaks_of("ext4", frozenset({"data=journal", "sync"}), "cache") is speaks


def test_the_unit_of_a_drive_is_no_limit() -> None:
    assert rule(models=("cache",)).speaks_of("ext4", frozenset(), "cache:16384")
    assert not rule(models=("cache:16384",)).speaks_of("ext4", frozenset(), "cache:16384")


def test_a_rule_about_options_is_silent_where_there_are_none() -> None:
    assert not rule(options=("sync",)).speaks_of("ext4", frozenset(), "cache")
    assert rule(unless=("sync",)).speaks_of("ext4", frozenset(), "cache")


@pytest.mark.parametrize("side", ["promises", "denies"])
def test_judges_are_named_as_they_are_or_by_patterns(side: str) -> None:
    named = rule(**{"promises": (), side: ("P2", "D-*-data", "A-[lr]*")})
    asked = ["P2", "p2", "P2-null", "D-fsync-data", "D-fsync-size", "A-link", "A-rename", "A-unlink", "", "x-P2"]
    assert [name for name in asked if named.names(name)] == ["P2", "D-fsync-data", "A-link", "A-rename"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"promises": ()}, "a rule has either promises or denies"),
        ({"denies": ("P2",)}, "a rule has either promises or denies"),
        ({"statement": ""}, "statement\n"),
        ({"source": ""}, "source\n"),
        ({"statement": "a\nb"}, "statement\n"),
        ({"statement": "It is so.\n"}, "statement\n"),
        ({"statement": "a" * 1001}, "statement\n"),
        ({"types": ("ext4",) * 101}, "types\n"),
        ({"promises": "P1"}, "promises\n"),
        ({"promise": ("P1",)}, "promise\n"),
    ],
)
def test_what_is_no_rule_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        rule(**changed)
    assert said in str(caught.value)
