"""Files that were emptied, written anew and closed."""

import pytest

from postcrash.checkers.in_place import InPlace
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload

ROOT = Entry(".", "dir", inode=1)
OLD = "creat a; write a 0 4096; ---; open a; "
REPLACED = f"{OLD}truncate @a 0; write @a 0 100; close @a"
SAID = "close @a (operation 6) and then commit (operation 7) had returned, but a, which was written anew, is empty"


def found(operations: str, size: int | None, *, returned: int | None = None) -> str:
    """What is said of an `a` of so many bytes after all operations, or while the last one runs; None: it is missing."""
    workload = parse_workload(operations.replace("; ", "\n"), "case")
    started = len(workload.operations)
    history = History(workload, started, started if returned is None else returned)
    entries = [ROOT] if size is None else [ROOT, Entry("a", "file", inode=2, size=size, segments=segments(size))]
    observation = Observation(0, Tree(entries))
    opinion = InPlace().examine(history, observation)
    assert opinion.relevant or not opinion.message
    return opinion.message


def segments(size: int) -> tuple[Segment, ...]:
    return (Segment(0, size, "zero"),) if size else ()


def test_a_file_that_was_replaced_in_place_is_not_empty_after_a_commit() -> None:
    assert found(f"{REPLACED}; commit", 0) == SAID
    assert found(f"{REPLACED}; commit; creat b", 0, returned=7) == SAID
    assert found(f"{OLD}truncate @a 0; write @a 0 100; append @a 50; close @a; commit", 0)
    assert found(f"{OLD}truncate @a 0; commit; write @a 0 100; close @a; commit", 0)
    assert found(f"{OLD}truncate @a 0; setxattr @a user.k v; write @a 0 100; close @a; commit", 0)
    assert found(f"{OLD}truncate @a 0; creat b; write @a 0 100; unlink b; close @a; sync; commit", 0)


@pytest.mark.parametrize("size", [100, 4096, None])
def test_old_and_new_content_are_fine(size: int | None) -> None:
    """A name that is missing is for other checkers."""
    assert found(f"{REPLACED}; commit", size) == ""


@pytest.mark.parametrize(
    "operations",
    [
        REPLACED,
        f"{REPLACED}; fsync .",
        f"{OLD}truncate @a 0; write @a 0 100; commit; close @a",
        f"{OLD}truncate @a 0; write @a 0 100; commit",
        f"{OLD}truncate @a 0; close @a; commit",
        f"{OLD}truncate @a 0; truncate @a 100; close @a; commit",
        "creat a; ---; creat b; write b 0 9; rename b a; open a; truncate @a 0; write @a 0 100; close @a; commit",
        f"{OLD}truncate @a 0; close @a; write a 0 100; commit",
        f"{OLD}truncate @a 50; write @a 0 100; close @a; commit",
        f"{OLD}truncate @a 0; write a 0 100; close @a; commit",
        f"{OLD}truncate @a 0; write @a 0 100; write a 0 100; close @a; commit",
        f"{OLD}truncate @a 0; setxattr a user.k v; write @a 0 100; close @a; commit",
        f"{REPLACED}; truncate a 0; commit",
        f"{REPLACED}; commit; truncate a 0; append a 10",
        f"{REPLACED}; creat b; rename b a; commit",
        f"{REPLACED}; unlink a; commit",
        f"creat b; {OLD}rename b a; truncate @a 0; write @a 0 100; close @a; commit",
        "creat a; ---; open a; truncate @a 0; write @a 0 100; close @a; commit",
        "creat a; ---; creat b; write b 0 4096; open b; truncate @b 0; write @b 0 100; close @b; rename b a; commit",
    ],
)
def test_an_empty_file_that_nobody_promises_to_fill(operations: str) -> None:
    assert found(operations, 0) == ""


def test_a_commit_that_is_running_has_filled_nothing_yet() -> None:
    assert found(f"{REPLACED}; commit", 0, returned=6) == ""


def test_a_file_that_could_not_be_read_is_for_other_checkers() -> None:
    workload = parse_workload(f"{REPLACED}; commit".replace("; ", "\n"), "case")
    unread = Observation(0, Tree([ROOT, Entry("a", "file", inode=2, error=117)]))
    assert InPlace().examine(History(workload, 7, 7), unread).verdict is Verdict.HOLDS
