"""The digest of a file is that of what it holds now."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files import digest
from postcrash.harness.files.digest import content_digest
from postcrash.harness.files.known_files import KnownFiles
from postcrash.targets import file_digest


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "kernel"
    file.write_text("a")
    first = content_digest(file)
    (tmp_path / "new").write_text("b")
    (tmp_path / "new").rename(file)
    assert content_digest(file) != first


@pytest.mark.parametrize("content", [b"", b"a", bytes(3_000_000)])
def test_it_is_the_sha_256_of_all_of_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert content_digest(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_file_that_has_not_changed_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, read = tmp_path / "file", list[Path]()
    file.write_bytes(b"a")
    os.utime(file, (1, 1))

    def counted(path: Path) -> str:
        read.append(path)
        return f"{len(read)}"

    monkeypatch.setattr(sys.modules[file_digest.__module__], "file_digest", counted)
    known = KnownFiles(tmp_path / "known")
    monkeypatch.setattr(digest, "known_files", lambda: known)
    assert [content_digest(file) for _ in range(2)] == ["1", "1"]
    file.write_bytes(b"b")
    assert content_digest(file) == "2"
    assert read == [file, file]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for place, why in ((tmp_path / "absent", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(InfrastructureError, match=f"^{place}: {why}$"):
            content_digest(place)
