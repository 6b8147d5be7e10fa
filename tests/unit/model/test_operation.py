"""The table of operations, and how an operation is printed and sent."""

import pytest

from postcrash.model.operation import FORMS, Operation


def test_the_table_has_the_words_of_the_language() -> None:
    words = (
        "mkdir rmdir creat mknod open tmpfile close write append dwrite awrite mmapwrite truncate fallocate reflink "
        "dedupe link symlink unlink rename "
        "exchange setxattr removexattr fsync fdatasync msync sync syncfs write-osync write-odsync dwrite-osync "
        "awrite-odsync writeback commit checkpoint drop-caches sleep"
    )
    assert " ".join(FORMS) == words


def test_classes_of_operations() -> None:
    own = {"write-osync", "write-odsync", "dwrite-osync", "awrite-odsync"}
    data = {"write", "append", "dwrite", "awrite", "mmapwrite", *own}
    assert {f.word for f in FORMS.values() if f.data} == data
    assert {f.word for f in FORMS.values() if f.untorn} == {"awrite", "awrite-odsync"}
    environment = {"writeback", "commit", "checkpoint", "drop-caches", "sleep"}
    assert {f.word for f in FORMS.values() if f.environment} == environment
    persistence = {"fsync", "fdatasync", "msync", "sync", "syncfs", *own}
    assert {f.word for f in FORMS.values() if f.persistence} == persistence


@pytest.mark.parametrize(
    ("operation", "text", "wire"),
    [
        (Operation("mkdir", "D"), "mkdir D", {"op": "mkdir", "path": "D"}),
        (
            Operation("write", "a b", offset=0, length=9, tag=0),
            'write "a b" 0 9',
            {"op": "write", "path": "a b", "offset": 0, "length": 9, "tag": 0},
        ),
        (
            Operation("append", "F", length=5, tag=254),
            "append F 5",
            {"op": "append", "path": "F", "length": 5, "tag": 254},
        ),
        (Operation("open", "d/F"), "open d/F", {"op": "open", "path": "d/F"}),
        (Operation("fsync", "@d/F"), "fsync @d/F", {"op": "fsync", "path": "@d/F"}),
        (Operation("truncate", "F", length=0), "truncate F 0", {"op": "truncate", "path": "F", "length": 0}),
        (
            Operation("fallocate", "F", mode="none", offset=1, length=2),
            "fallocate F none 1 2",
            {"op": "fallocate", "path": "F", "mode": "none", "offset": 1, "length": 2},
        ),
        (Operation("mknod", "F", mode="char"), "mknod F char", {"op": "mknod", "path": "F", "mode": "char"}),
        (
            Operation("reflink", "A", offset=0, to="B", to_offset=4096, length=9),
            "reflink A 0 B 4096 9",
            {"op": "reflink", "path": "A", "offset": 0, "to": "B", "to_offset": 4096, "length": 9},
        ),
        (Operation("rename", "A", to="B"), "rename A B", {"op": "rename", "path": "A", "to": "B"}),
        (Operation("symlink", "P", to="T"), "symlink T P", {"op": "symlink", "to": "T", "path": "P"}),
        (
            Operation("setxattr", "F", name="user.a", value=""),
            'setxattr F user.a ""',
            {"op": "setxattr", "path": "F", "name": "user.a", "value": ""},
        ),
        (Operation("writeback", "F"), "writeback F", {"op": "writeback", "path": "F"}),
        (
            Operation("writeback", "F", offset=0, length=1),
            "writeback F 0 1",
            {"op": "writeback", "path": "F", "offset": 0, "length": 1},
        ),
        (Operation("fsync", "."), "fsync .", {"op": "fsync", "path": "."}),
        (Operation("commit"), "commit", {"op": "commit"}),
        (Operation("checkpoint"), "checkpoint", {"op": "checkpoint"}),
    ],
)
def test_text_and_wire(operation: Operation, text: str, wire: dict[str, object]) -> None:
    assert str(operation) == text
    assert operation.to_wire() == wire


def test_line_does_not_count_in_comparisons() -> None:
    assert Operation("sync", line=3) == Operation("sync", line=4)


def test_usage() -> None:
    assert FORMS["write"].usage == "write F OFFSET LENGTH"
    assert FORMS["writeback"].usage == "writeback F [OFFSET LENGTH]"
    assert FORMS["sync"].usage == "sync"
