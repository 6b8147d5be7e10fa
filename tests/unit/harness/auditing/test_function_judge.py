"""The judge whose check is a function: what counts as an objection, and what it is called with."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from postcrash.harness.auditing.function_judge import FunctionJudge
from postcrash.model import Entry, History, Observation, Segment, Tree, Verdict, parse_workload
from postcrash.model.judge import Opinion

RAN = parse_workload("run put\nsays one\nsays two\nends\n", "w")
ROOT = Entry(".", "dir", 0o755)


def observed(**files: bytes) -> Observation:
    entries = [
        Entry(
            name,
            "file",
            0o644,
            inode=inode,
            size=len(content),
            segments=(Segment(0, len(content), f"bytes:{content.hex()}"),),
        )
        for inode, (name, content) in enumerate(files.items(), start=2)
    ]
    return Observation(0, Tree([ROOT, *entries]))


def opinion(check: Callable[[Path, Sequence[str]], object], returned: int = 4, **files: bytes) -> Opinion:
    return FunctionJudge(check, (Exception, KeyboardInterrupt)).check(
        History(RAN, returned, returned), observed(**files)
    )


def test_the_function_gets_the_folder_and_what_was_acknowledged() -> None:
    seen = []

    def check(folder: Path, acknowledged: Sequence[str]) -> None:
        seen.append(({path.name: path.read_bytes() for path in folder.iterdir()}, *acknowledged))
        (folder / "f").unlink()

    for returned in (1, 2, 4):
        assert opinion(check, returned, f=b"1\n", g=b"").verdict is Verdict.HOLDS
    files = {"f": b"1\n", "g": b""}
    assert seen == [(files,), (files, "one"), (files, "one", "two")]


def test_operations_that_had_returned_are_acknowledged() -> None:
    workload, seen = parse_workload("creat A\n---\ncreat B\nrename B A\nsync\n", "w"), []
    judge = FunctionJudge(lambda _, acknowledged: seen.append(acknowledged))
    judge.check(History(workload, 4, 3), observed())
    assert seen == [("creat B", "rename B A")]


def fails_by_assertion(folder: Path, _acknowledged: Sequence[str]) -> None:
    assert (folder / "f").read_bytes() == b"2\n", "the line is lost"


def fails_by_absence(folder: Path, _acknowledged: Sequence[str]) -> None:
    (folder / "none").read_bytes()


def fails_otherwise(_folder: Path, _acknowledged: Sequence[str]) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (fails_by_assertion, "the line is lost"),
        (fails_by_absence, "FileNotFoundError: [Errno 2] No such file or directory: 'none'"),
        (fails_otherwise, "KeyboardInterrupt"),
    ],
)
def test_an_exception_is_an_objection_that_is_the_same_each_time(
    check: Callable[[Path, Sequence[str]], object], message: str
) -> None:
    """A violation is confirmed only if it is told in the same words. The folder is in another place each time."""
    first, second = (opinion(check, f=b"1\n") for _ in range(2))
    assert first == second
    assert first.verdict is Verdict.VIOLATED
    said, _, place = first.message.partition(" (test_function_judge.py:")
    assert said.splitlines()[0] == message
    assert int(place.removesuffix(")")) == check.__code__.co_firstlineno + 1


def test_what_is_returned_does_not_count_but_false() -> None:
    assert opinion(lambda folder, acknowledged: False).message == "the check returned False"
    assert opinion(lambda folder, acknowledged: None).verdict is Verdict.HOLDS


def test_what_is_no_objection_is_not_taken_for_one() -> None:
    with pytest.raises(KeyboardInterrupt):
        FunctionJudge(fails_otherwise).check(History(RAN, 4, 4), observed())
