"""Workloads are read from users' files. What cannot be read or cannot succeed is named with its place."""

from pathlib import Path

import pytest

from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.files.workload_files import loaded, loaded_from, simulated
from postcrash.model import parse_workload


def test_a_folder_without_workloads_selects_nothing(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError, match=r"has no file whose name ends in \.ops$"):
        loaded_from(tmp_path)


def test_a_broken_workload_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.ops").write_text("creat a\n")
    (tmp_path / "b.ops").write_text("sync\nunlink b\n")
    with pytest.raises(UsageError, match=r"b\.ops:2: line 2: `unlink b` would fail with ENOENT$"):
        loaded_from(tmp_path)


def test_workloads_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.ops", "a.ops", "c.txt", "ops"):
        (tmp_path / name).write_text("creat a\n---\nsync\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d.ops").write_text("sync\n")
    assert [each.name for each in loaded_from(tmp_path)] == ["a", "b"]
    assert {each.to_text() for each in loaded_from(tmp_path)} == {"creat a\n---\nsync\n"}


def test_a_workload_has_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "my bug.ops").write_text("sync\n")
    found = loaded(str(tmp_path / "my bug.ops"))
    assert (found.name, found.to_text()) == ("my bug", "sync\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"create a\n", r"a\.ops:1:1: expected an operation"),
        (b"creat a\n---\nunlink b\n", r"a\.ops:3: line 3: `unlink b` would fail with ENOENT$"),
        (b"creat a\nunlink a\n---\nsync\nunlink a\n", r"a\.ops:5: line 5: "),
        (b"creat \xff\n", r"a\.ops"),
        (b"", r"a\.ops"),
    ],
)
def test_what_is_no_workload_is_refused_with_its_file(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "a.ops"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        loaded(str(file))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.ops").mkdir()
    for name, why in (("absent.ops", "No such file or directory"), ("a.ops", "Is a directory")):
        with pytest.raises(UsageError, match=f"^{tmp_path / name}: {why}$"):
            loaded(str(tmp_path / name))
    with pytest.raises(UsageError, match=r"Is a directory$"):
        loaded_from(tmp_path)


def test_a_folder_that_is_not_there_has_no_workloads(tmp_path: Path) -> None:
    with pytest.raises(NothingSelectedError, match="absent has no file"):
        loaded_from(tmp_path / "absent")


def test_a_workload_that_can_succeed_stays_as_it_is() -> None:
    workload = parse_workload("creat a\nunlink a\n", "w")
    assert simulated(workload, "any.ops") is workload
