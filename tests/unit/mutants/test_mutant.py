"""A change is made in its function, at the one place where the old text stands."""

import struct
from pathlib import Path

import pytest

from ...mutants.change import DECLARATION, DEFINED_IN, DEFINITION, MAGIC, MutantError, changed, numbered
from ...mutants.mutant import Mutant, chosen, load_mutants, mutant_changes

SOURCE = """static int flush(struct disk *disk);

static int
flush(struct disk *disk)
{
\tif (disk->barrier)
\t\twait(disk,
\t\t     0);
\treturn 0;
}

int commit(struct disk *disk)
{
\tflush(disk);
\treturn 0;
}

void commit_all(struct disk *disk)
__must_hold(disk)
{
\tcommit(disk);
\tcommit(disk);
}
"""
ROW = """
["{name}"]
file = "fs/x/x.c"
function = "flush"
old = "return 0;"
new = ""
breaks = "Nothing."
target = "xfs"
"""


def mutant(function: str, old: str, new: str) -> Mutant:
    return Mutant("m", "fs/x/x.c", function=function, old=old, new=new, breaks="Nothing is true.", target="xfs")


def test_statements_stand_beside_what_they_replace_and_a_blank_for_any_white_space() -> None:
    made = mutant("flush", "if (disk->barrier) wait(disk, 0);", "skip(disk);").made(SOURCE, "number == 7")
    old = "if (disk->barrier)\n\t\twait(disk,\n\t\t     0);"
    new = f"{{ if (number == 7) {{ skip(disk); }} else {{ {old} }} }}"
    assert made == SOURCE.replace(old, new)


def test_an_expression_stands_beside_what_it_replaces() -> None:
    made = mutant("flush", "disk->barrier", "0").made(SOURCE, "number == 7")
    assert made == SOURCE.replace("(disk->barrier)", "((number == 7 ? (0) : (disk->barrier)))")


def test_only_the_function_is_changed() -> None:
    made = mutant("commit", "return 0;", "return 1;").made(SOURCE, "number == 1")
    assert made.index("return 1;") > made.index("int commit(")
    assert made.count("return 0;") == 2


def test_two_mutants_of_one_place_are_both_there() -> None:
    two = (mutant("commit", "flush(disk);", "one();"), mutant("commit", "flush(disk);", "two();"))
    files = changed(mutant_changes(two), lambda file: {"fs/x/x.c": SOURCE, DEFINED_IN: "main\n"}[file])
    assert files["fs/x/x.c"].startswith(DECLARATION)
    one = "{ if (postcrash_mutant[4] == 1) { one(); } else { { if (postcrash_mutant[4] == 2) { two(); }"
    assert one in files["fs/x/x.c"]
    assert files[DEFINED_IN] == "main\n" + DEFINITION


def test_a_kernel_gets_its_number_and_its_remedies() -> None:
    magic = struct.pack("<4I", *MAGIC)
    assert numbered(b"before" + magic + bytes(8) + b"after", 258, 3) == b"before" + magic + b"\2\1\0\0\3\0\0\0after"
    with pytest.raises(MutantError, match="stands 0 times"):
        numbered(b"before", 1)


@pytest.mark.parametrize(
    ("function", "old", "message"),
    [
        ("flush", "wait(disk, 1);", "m: 'wait(disk, 1);' stands 0 times in flush() of fs/x/x.c"),
        ("commit_all", "commit(disk);", "m: 'commit(disk);' stands 2 times in commit_all() of fs/x/x.c"),
        ("sync", "return 0;", "m: fs/x/x.c has 0 functions sync()"),
    ],
)
def test_a_change_that_does_not_fit_is_an_error_with_its_name(function: str, old: str, message: str) -> None:
    with pytest.raises(MutantError) as raised:
        mutant(function, old, "").made(SOURCE, "number == 1")
    assert str(raised.value) == message


def test_a_row_that_lacks_something_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(ROW.format(name="a").replace('target = "xfs"\n', ""))
    with pytest.raises(MutantError, match="mutant a: a row has"):
        load_mutants(tmp_path)


def test_a_row_with_an_empty_text_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(ROW.format(name="a").replace('"Nothing."', '""'))
    with pytest.raises(MutantError, match="mutant a: breaks is no text, or empty"):
        load_mutants(tmp_path)


def test_a_name_of_two_rows_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(ROW.format(name="a"))
    (tmp_path / "y.toml").write_text(ROW.format(name="a"))
    with pytest.raises(MutantError, match="mutant a is in two tables"):
        load_mutants(tmp_path)


def test_a_mutant_is_chosen_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(ROW.format(name="a") + ROW.format(name="b"))
    rows = load_mutants(tmp_path)
    assert [row.name for row in chosen(rows, ["b"])] == ["b"]
    assert chosen(rows, []) == rows
    with pytest.raises(MutantError, match="there is no mutant c; there are: a, b"):
        chosen(rows, ["c"])
