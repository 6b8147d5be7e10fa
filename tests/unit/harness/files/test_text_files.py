"""Small files that users name are UTF-8 and not too large; otherwise the error names the file."""

from pathlib import Path

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.files.text_files import text_of


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", ""), (b"a\r\n\xc3\xa4", "a\r\nä"), (b"\xef\xbb\xbfa", "a"), (b"a\xef\xbb\xbf", "a\ufeff"), (b"\0", "\0")],
)
def test_the_text_is_as_it_stands_there_without_its_mark(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "list").write_bytes(content)
    assert text_of(tmp_path / "list", 100) == text


def test_a_file_may_have_just_so_many_bytes(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("ää")
    assert text_of(file, 4) == "ää"
    with pytest.raises(UsageError, match=f"^{file}: more than 3 bytes$"):
        text_of(file, 3)
    with pytest.raises(UsageError, match=r"^/dev/zero: more than 1000 bytes$"):
        text_of(Path("/dev/zero"), 1000)


@pytest.mark.parametrize("content", [b"\xff", b"a\xc3", b"\xed\xa0\x80", "ä".encode("utf-16")])
def test_what_is_not_utf_8_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "list"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"^{file}: not UTF-8: "):
        text_of(file, 100)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for place, why in ((tmp_path / "absent", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError, match=f"^{place}: {why}$"):
            text_of(place, 100)
