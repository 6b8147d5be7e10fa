"""When two findings belong to one group."""

import pytest

from postcrash.harness.hunting.causes import Cause, cause_of
from postcrash.store.explanation_data import ExplainedWrite, Explanation
from postcrash.store.records import Finding


def finding(
    message: str, text: str = "mkdir A\ncreat A/foo\ncreat foo\nfsync A/foo\n", *lost: ExplainedWrite
) -> Finding:
    explanation = Explanation(
        (),
        (),
        epochs_omitted=0,
        lost=lost,
        lost_omitted=0,
        named_by="",
        unnamed="",
        unsent=(),
        failure="",
        comparison=(),
        comparison_omitted=0,
        evidence=(),
    )
    return Finding(
        *(
            "f-0000000000000000",
            "durability",
            message,
            "t",
            "k",
            "m",
            "w",
            text,
            "r-0000000000000000",
            "b",
            "r-0000000000000000/0/-",
        ),
        *(0, (), (), 0, 0, 0, {}, None, {}, explanation),
    )


def write(what: str, name: str = "") -> ExplainedWrite:
    return ExplainedWrite(what, name, sector=0, sectors=8, flags="", during=1, status="lost")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("fsync A/foo (operation 4), but foo is missing", "fsync PATH (operation N), but PATH is missing"),
        ("fsync . (operation 4), but A/foo is missing", "fsync . (operation N), but PATH is missing"),
        ("EXT4-fs error (device vda): lookup:1234: inode #12", "EXT4-fs error (device vda): lookup:N: inode #N"),
        ("the food of foods and B/foo", "the food of foods and B/foo"),
        ("A/bar/b is missing, A/food is back", "PATH is missing, PATH is back"),
    ],
)
def test_names_and_numbers_make_no_difference(message: str, shown: str) -> None:
    assert cause_of(finding(message)).message == shown


@pytest.mark.parametrize(
    "message",
    [
        "fsync {} (operation 3) had returned, but {} is a dir",
        "rename {} A/foo (operation 3): what was durable is neither {} nor A/foo",
        "fallocate {} punch-hole 0 4096 (operation 3) left a file without a name: {}",
        "{} has 2 links, and a name that {} had",
        "write {} 0 4096; link {} A/foo; {}",
    ],
)
def test_a_file_called_a_is_not_the_word(message: str) -> None:
    """A workload with the file `a` has the cause of the same workload with another name."""
    named = {
        name: finding(message.format(*[name] * 3), f"mkdir A\ncreat A/foo\ncreat {name}\n") for name in ("a", "bar")
    }
    causes = {name: cause_of(each).message for name, each in named.items()}
    assert causes["a"] == causes["bar"]
    assert "PATH" in causes["a"]


def test_lost_writes_are_known_by_their_kind() -> None:
    found = finding(
        "m", "sync\n", write("`write foo 0 1` (bytes 0 to 1)", "data of foo"), write("metadata", "block group 3"),
        write("metadata", "block group 7"), write("jbd2 commit block (transaction 4)"),
    )  # fmt: skip
    cause = cause_of(found)
    assert cause == Cause("durability", "m", ("block group N", "file data", "jbd2 commit block (transaction N)"))
    assert Cause.from_json(cause.to_json()) == cause
