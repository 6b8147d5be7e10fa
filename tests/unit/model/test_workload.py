"""Parsing, printing, and errors that say where and what."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postcrash.model import FORMS, Operation, Workload, WorkloadError, load_workload, parse_workload
from postcrash.model.argument import MODES, NODES, RESERVED, RESERVED_ANYWHERE
from postcrash.model.operation import Kind
from postcrash.model.quoting import quote
from postcrash.model.units import SECTOR_BYTES

# Unicode categories that are not printable, except the space
PRINTABLE = st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" ", exclude_characters="/")
COMPONENTS = st.text(PRINTABLE, min_size=1, max_size=20).filter(
    lambda text: not text.startswith("@") and text not in (".", "..", *RESERVED, RESERVED_ANYWHERE)
)
PATHS = st.lists(COMPONENTS, min_size=1, max_size=3).map("/".join)
HANDLES = PATHS.map(lambda path: f"@{path}")
SECTORS = st.integers(1, 100).map(lambda count: str(count * SECTOR_BYTES))
ARGUMENTS = {
    Kind.PATH: PATHS,
    Kind.FILE: PATHS | HANDLES,
    Kind.FILE_OR_ROOT: PATHS | HANDLES | st.just("."),
    Kind.HANDLE: HANDLES,
    Kind.TARGET: PATHS.map(lambda path: "/" + path),
    Kind.OFFSET: st.integers(0, 1 << 30).map(str),
    Kind.SECTOR_OFFSET: SECTORS,
    Kind.LENGTH: st.integers(1, 64 << 20).map(str),
    Kind.SECTOR_LENGTH: SECTORS,
    Kind.SIZE: st.sampled_from(["0", "4K", "1024M"]),
    Kind.SECONDS: st.integers(1, 3600).map(str),
    Kind.MODE: st.sampled_from(MODES),
    Kind.NODE: st.sampled_from(NODES),
    Kind.BLOCK_OFFSET: SECTORS.map(lambda text: str(int(text) * 8)),
    Kind.XATTR_NAME: COMPONENTS.map(lambda text: "user." + text),
    Kind.XATTR_VALUE: COMPONENTS | st.just(""),
}


@st.composite
def lines(draw: st.DrawFn) -> str:
    form = draw(st.sampled_from(list(FORMS.values())))
    count = len(form.arguments) - (form.optional if draw(st.booleans()) else 0)
    words = [draw(ARGUMENTS[argument.kind]) for argument in form.arguments[:count]]
    return " ".join([form.word, *map(quote, words)])


@given(st.lists(lines()), st.lists(lines(), min_size=1))
def test_round_trip(setup: list[str], ops: list[str]) -> None:
    workload = parse_workload("\n".join([*setup, "---", *ops]), "w")
    assert (len(workload.setup), len(workload.ops)) == (len(setup), len(ops))
    assert parse_workload(workload.to_text(), "w") == workload


def parsed(text: str) -> Workload | WorkloadError:
    try:
        return parse_workload(text, "f")
    except WorkloadError as error:
        return error


@given(st.text() | st.lists(st.sampled_from([*FORMS, "---", "a", '"', "#", "0", "512", "\n", " "])).map(" ".join))
def test_any_text_is_a_workload_or_an_error_with_a_place(text: str) -> None:
    outcome = parsed(text)
    if isinstance(outcome, WorkloadError):
        assert str(outcome).startswith(f"f:{outcome.line}:{outcome.column}: expected ")
        assert 1 <= outcome.line <= text.count("\n") + 1
        assert 1 <= outcome.column <= len(text.split("\n")[outcome.line - 1]) + 1
    else:
        assert parsed(outcome.to_text()) == outcome


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wirte A 0 1", "x.ops:1:1: expected an operation (perhaps write), found 'wirte'"),
        ("\n write A 0", "x.ops:2:11: expected LENGTH (write F OFFSET LENGTH), found end of line"),
        ('creat A\nunlink "A B" C', "x.ops:2:14: expected end of line, found 'C'"),
        ("link A", "x.ops:1:7: expected B (link A B), found end of line"),
        ('link "A"', "x.ops:1:9: expected B (link A B), found end of line"),
        ("writeback A 1", "x.ops:1:14: expected LENGTH (writeback F [OFFSET LENGTH]), found end of line"),
        ("creat /a", "x.ops:1:7: expected F: a path relative to the mount point, found '/a'"),
        ("sync\n---\nsync\n---", "x.ops:4:1: expected only one ---, found '---'"),
        ("sync\n--- x", "x.ops:2:5: expected end of line, found 'x'"),
        ("", "x.ops:1:1: expected at least one operation to record, found end of file"),
        ("sync\n---\n", "x.ops:3:1: expected at least one operation to record, found end of file"),
        ('"sync"', "x.ops:1:1: expected an operation (perhaps sync), found 'sync'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_workload(text, "w", "x.ops")
    assert str(caught.value) == message


def test_a_word_like_no_operation_lists_them_all() -> None:
    with pytest.raises(WorkloadError, match=r"one of mkdir, rmdir, .*, commit"):
        parse_workload("zzz", "w")


def test_an_error_has_its_parts() -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_workload("sync\ncreat ..", "w")
    error = caught.value
    assert (error.file, error.line, error.column, error.found) == ("w", 2, 7, "'..'")
    assert error.expected.startswith("F: a path")


def test_tags_number_the_writes_set_up_first() -> None:
    workload = parse_workload("creat A\nappend A 1\n---\nsync\nwrite A 0 1\nwrite-osync A 0 1", "w")
    assert [operation.tag for operation in workload.operations] == [None, 0, None, 1, 2]


def test_lines_are_kept() -> None:
    workload = parse_workload("# first\n\ncreat A # why\r\n", "w")
    assert [operation.line for operation in workload.ops] == [3]


def test_without_separator_all_is_recorded() -> None:
    workload = parse_workload("creat A\nsync\n", "w")
    assert workload == Workload("w", (), (Operation("creat", "A"), Operation("sync")))
    assert workload.to_text() == "creat A\nsync\n"


def test_wire() -> None:
    workload = parse_workload("creat A\n---\nappend A 1", "w")
    assert workload.to_wire() == {
        "setup": [{"op": "creat", "path": "A"}],
        "ops": [{"op": "append", "path": "A", "length": 1, "tag": 0}],
    }


@pytest.mark.parametrize(
    ("ops", "tail"),
    [
        ("creat A", ["creat", "commit", "sync", "checkpoint"]),
        ("fsync .", ["fsync", "commit", "sync", "checkpoint"]),
        ("sync\ncreat A", ["sync", "creat", "commit", "sync", "checkpoint"]),
        ("creat A\nsync", ["creat", "sync", "checkpoint"]),
        ("creat A\nsyncfs", ["creat", "syncfs", "checkpoint"]),
        ("creat A\ncheckpoint", ["creat", "checkpoint"]),
    ],
)
def test_tail(ops: str, tail: list[str]) -> None:
    workload = parse_workload(ops, "w").with_tail()
    assert [operation.word for operation in workload.ops] == tail
    assert workload.with_tail() == workload


def test_limits() -> None:
    with pytest.raises(WorkloadError, match=r"^w:10001:1: expected at most 10000 lines"):
        parse_workload("sync\n" * 10_001, "w")
    assert len(parse_workload("sync\n" * 10_000, "w").ops) == 10_000
    with pytest.raises(WorkloadError, match=r"^w:256:2: expected at most 255 operations that write bytes"):
        parse_workload(" append A 1\n" * 256, "w")
    assert parse_workload("append A 1\n" * 255, "w").ops[-1].tag == 254
    with pytest.raises(WorkloadError, match=r"^w:1:8193: expected at most 8192 characters"):
        parse_workload("#" * 8193, "w")


def test_load(tmp_path: Path) -> None:
    file = tmp_path / "save.ops"
    file.write_text("creat A\n")
    assert load_workload(file).name == "save"
    file.write_text("creat\n")
    with pytest.raises(WorkloadError) as caught:
        load_workload(file)
    assert str(caught.value) == f"{file}:1:6: expected F (creat F), found end of line"


@pytest.mark.parametrize(
    ("content", "place"),
    [(b"\xff", "1:1"), ("# é\ncré".encode() + b"\xc3", "2:4"), (b"sync\n\xe2\x28", "2:1")],
)
def test_load_names_the_byte_that_is_not_utf_8(tmp_path: Path, content: bytes, place: str) -> None:
    file = tmp_path / "w.ops"
    file.write_bytes(content)
    with pytest.raises(WorkloadError, match=f":{place}: expected UTF-8, found byte 0x"):
        load_workload(file)


def test_load_does_not_read_without_end(tmp_path: Path) -> None:
    file = tmp_path / "w.ops"
    with file.open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(WorkloadError, match="at most 16777216 bytes"):
        load_workload(file)
