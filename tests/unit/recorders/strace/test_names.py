"""Calls that change names and attributes become operations, unless the trace cannot have happened as it says."""

from pathlib import Path

import pytest

from ..test_strace import not_mapped, operations

MADE = [
    'mkdir("/r/D", 0777) = 0',
    'creat("/r/D/a", 0600) = 3</r/D/a>',
    'creat("/r/b", 0600) = 4</r/b>',
    *("close(3) = 0", "close(4) = 0"),
]
"""A folder with a file, and another file. Nothing is open."""
OPERATIONS = ["mkdir D", "creat D/a", "creat b"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('mkdir("/r/E", 0777) = 0', "mkdir E"),
        ('mkdirat(AT_FDCWD</r/D>, "E", 0777) = 0', "mkdir D/E"),
        ('mkdirat(7</r/D>, "../E", 0777) = 0', "mkdir E"),
        ('unlink("/r/b") = 0', "unlink b"),
        ('unlinkat(7</r/D>, "a", 0) = 0', "unlink D/a"),
        ('link("/r/b", "/r/D/c") = 0', "link b D/c"),
        ('linkat(7</r/D>, "a", AT_FDCWD</r>, "c", 0) = 0', "link D/a c"),
        ('symlink("../b", "/r/D/s") = 0', "symlink ../b D/s"),
        ('symlinkat("gone", 7</r/D>, "s") = 0', "symlink gone D/s"),
        ('rename("/r/b", "/r/D/a") = 0', "rename b D/a"),
        ('renameat(7</r/D>, "a", AT_FDCWD</r>, "c") = 0', "rename D/a c"),
        ('renameat2(AT_FDCWD</r>, "b", 7</r/D>, "c", RENAME_NOREPLACE) = 0', "rename b D/c"),
        ('renameat2(AT_FDCWD</r>, "b", 7</r/D>, "a", RENAME_EXCHANGE) = 0', "exchange b D/a"),
        ('setxattr("/r/b", "user.x", "v", 1, 0) = 0', "setxattr b user.x v"),
        ('lsetxattr("/r/b", "user.x", "", 0, XATTR_CREATE) = 0', 'setxattr b user.x ""'),
    ],
)
def test_each_call_is_its_operation(file: Path, line: str, expected: str) -> None:
    assert operations(file, *MADE, line) == [*OPERATIONS, expected]


def test_a_flag_decides_what_unlinkat_removes(file: Path) -> None:
    lines = ['unlinkat(7</r/D>, "a", 0) = 0', 'unlinkat(AT_FDCWD</r>, "D", AT_REMOVEDIR) = 0', 'mkdir("/r/D", 0) = 0']
    assert operations(file, *MADE, *lines, 'rmdir("/r/D") = 0')[3:] == ["unlink D/a", "rmdir D", "mkdir D", "rmdir D"]


def test_attributes_of_an_open_file_are_set_under_the_name_that_it_has_then(file: Path) -> None:
    lines = [
        'open("/r/b", O_RDONLY) = 3</r/b>',
        'rename("/r/b", "/r/c") = 0',
        'fsetxattr(3</r/c>, "user.x", "v", 1, 0) = 0',
        'fremovexattr(3</r/c>, "user.x") = 0',
        'setxattr("/r/c", "user.y", "w", 1, 0) = 0',
        'removexattr("/r/c", "user.y") = 0',
    ]
    assert operations(file, *MADE, *lines)[3:] == [
        *("rename b c", "setxattr c user.x v", "removexattr c user.x", "setxattr c user.y w", "removexattr c user.y"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('mkdir("/r/D", 0777) = 0', "D is there already"),
        ('mkdir("/r", 0777) = 0', ". is there already"),
        ('rmdir("/r/D") = 0', "D is no empty directory"),
        ('rmdir("/r/b") = 0', "b is no empty directory"),
        ('rmdir("/r") = 0', "is no empty directory"),
        ('unlink("/r/D") = 0', "D is a directory"),
        ('unlink("/r/c") = 0', "c is not there"),
        ('link("/r/D", "/r/E") = 0', "D is a directory"),
        ('link("/r/b", "/r/D/a") = 0', "a is there already"),
        ('link("/elsewhere", "/r/c") = 0', "the file that gets a second name is outside of the folder"),
        ('linkat(4</r/b>, "", AT_FDCWD</r>, "c", AT_EMPTY_PATH) = 0', "a name for an open file"),
        ('symlink("x", "/r/b") = 0', "b is there already"),
        ('rename("/r/b", "/elsewhere") = 0', "one of the names is outside of the folder"),
        ('rename("/elsewhere", "/r/b") = 0', "one of the names is outside of the folder"),
        ('rename("/r/c", "/r/b") = 0', "c is not there"),
        ('rename("/r/D", "/r/D/E") = 0', "a directory would get into itself"),
        ('rename("/r/b", "/r/D") = 0', "D is of another type"),
        ('rename("/r/D", "/r/b") = 0', "b is of another type"),
        ('rename("/r/D", "/r") = 0', "a directory would get into itself"),
        ('renameat2(AT_FDCWD</r>, "b", 7</r/D>, "a", RENAME_WHITEOUT) = 0', "workloads have no such rename"),
        ('renameat2(AT_FDCWD</r>, "b", 7</r/D>, "c", RENAME_EXCHANGE) = 0', "c is not there"),
        ('renameat2(AT_FDCWD</r>, "D", 7</r/D>, "a", RENAME_EXCHANGE) = 0', "a directory would get into itself"),
        ('renameat2(7</r/D>, "a", AT_FDCWD</r>, "D", RENAME_EXCHANGE) = 0', "a directory would get into itself"),
        ('renameat2(AT_FDCWD</r>, "D", 7</r>, ".", RENAME_EXCHANGE) = 0', "one of the names is the folder itself"),
        ('setxattr("/r/b", "user.x", "v"..., 99, 0) = 0', "strace printed only the start of the value"),
        ('removexattr("/r/c", "user.x") = 0', "c is not there"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_reported_and_changes_nothing(file: Path, line: str, reason: str) -> None:
    """The calls behind it find all as it was."""
    behind = ['link("/r/D/a", "/r/E") = 0', 'unlink("/r/D/a") = 0', 'rmdir("/r/D") = 0', 'unlink("/r/b") = 0']
    (found,) = not_mapped(file, *MADE, line, *behind)
    assert found.startswith("line 6: ") and reason in found.replace("'", "")


def test_a_directory_replaces_an_empty_one_alone(file: Path) -> None:
    lines = ['mkdir("/r/E", 0777) = 0', 'rename("/r/D", "/r/E") = 0', 'unlink("/r/E/a") = 0']
    assert operations(file, *MADE, *lines)[3:] == ["mkdir E", "rename D E", "unlink E/a"]
    (found,) = not_mapped(file, *MADE, lines[0], 'rename("/r/E", "/r/D") = 0')
    assert "'D' is no empty directory" in found


def test_names_that_change_places_take_what_is_below_along(file: Path) -> None:
    lines = ['renameat2(AT_FDCWD</r>, "D", AT_FDCWD</r>, "b", RENAME_EXCHANGE) = 0', 'unlink("/r/b/a") = 0']
    assert operations(file, *MADE, *lines, 'unlink("/r/D") = 0')[3:] == ["exchange D b", "unlink b/a", "unlink D"]


def test_a_rename_to_another_name_of_the_file_leaves_both(file: Path) -> None:
    """rename(2): "If oldpath and newpath are existing hard links referring to the same file, […] does nothing"."""
    lines = ['link("/r/b", "/r/c") = 0', 'rename("/r/b", "/r/c") = 0', 'unlink("/r/b") = 0', 'unlink("/r/c") = 0']
    assert operations(file, *MADE, *lines)[3:] == ["link b c", "rename b c", "unlink b", "unlink c"]
    swapped = 'renameat2(AT_FDCWD</r>, "b", AT_FDCWD</r>, "c", RENAME_EXCHANGE) = 0'
    assert operations(file, *MADE, lines[0], swapped, *lines[2:])[4:] == ["exchange b c", "unlink b", "unlink c"]


def test_a_link_is_followed_for_attributes_and_for_a_second_name_only_where_the_call_says_so(file: Path) -> None:
    made = [*MADE, 'symlink("b", "/r/s") = 0']
    followed = ['setxattr("/r/s", "user.x", "v", 1, 0) = 0', 'removexattr("/r/s", "user.x") = 0']
    assert operations(file, *made, *followed)[4:] == ["setxattr b user.x v", "removexattr b user.x"]
    second = 'linkat(AT_FDCWD</r>, "s", AT_FDCWD</r>, "c", {}) = 0'
    assert operations(file, *made, second.format("AT_SYMLINK_FOLLOW"))[4:] == ["link b c"]
    assert operations(file, *made, second.format("0"))[4:] == ["link s c"]
    for call in ("lsetxattr", "lremovexattr"):
        (found,) = not_mapped(file, *made, f'{call}("/r/s", "user.x", "v", 1, 0) = 0')
        assert found.endswith("workloads have no attributes of symbolic links")
