"""Of an archive only the plainest is read. Whatever else a file holds is one clear error, soon and in little memory."""

import gzip
import io
import tarfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postcrash.harness.findings.bundles import archive as archives
from postcrash.harness.findings.bundles.archive import BundleError, read_archive, write_archive

from .conftest import members_of

SIZES = {"a": 2000, "b": 1 << 20}
WHOLE = {"a": b"content", "b": bytes(5000)}
MIB = 1 << 20


def read(path: Path) -> dict[str, bytes]:
    return {member.name: member.read(member.size) for member in read_archive(path, SIZES)}


def refused(path: Path) -> str:
    with pytest.raises(BundleError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ").removeprefix("it is no bundle, or damaged: ")


def written(path: Path, members: dict[str, bytes]) -> Path:
    with path.open("wb") as file:
        write_archive(file, [(name, len(content), io.BytesIO(content)) for name, content in members.items()])
    return path


def headed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A tar of these members, as Python writes them, in gzip."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for about, content in members:
            archive.addfile(about, io.BytesIO(content))
    return gzip.compress(out.getvalue())


def about(name: str, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in more.items():
        setattr(info, field, value)
    return info


def block(**fields: Any) -> bytes:
    """A header of one block, whatever it says."""
    return about("a", **fields).tobuf(tarfile.GNU_FORMAT)


def test_what_is_written_is_read_again_and_tar_reads_it(tmp_path: Path) -> None:
    path = written(tmp_path / "x.tar.gz", WHOLE)
    assert read(path) == WHOLE == members_of(path)


def test_equal_members_give_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(tmp_path / "x", WHOLE).read_bytes()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert written(tmp_path / "another-name", WHOLE).read_bytes() == first


def test_what_is_not_read_of_a_member_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "x", WHOLE)
    assert [(member.name, member.read(3)) for member in read_archive(path, SIZES)] == [("a", b"con"), ("b", bytes(3))]


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "./a", "A", "a\n", "", "a" * 99, "ä"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(headed((about(name), b"")))
    assert "it has a member " in refused(path)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (block(kind=tarfile.SYMTYPE, linkname="/etc/passwd"), "a is not a regular file"),
        (block(kind=tarfile.LNKTYPE, linkname="/etc/passwd"), "a is not a regular file"),
        (block(kind=tarfile.CHRTYPE, devmajor=1, devminor=3), "a is not a regular file"),
        (block(kind=tarfile.BLKTYPE), "a is not a regular file"),
        (block(kind=tarfile.FIFOTYPE), "a is not a regular file"),
        (block(kind=tarfile.DIRTYPE), "a is not a regular file"),
        (block(kind=tarfile.CONTTYPE), "a is not a regular file"),
        (block(kind=tarfile.AREGTYPE), "a is not a regular file"),
        (block(kind=tarfile.GNUTYPE_SPARSE), "a is not a regular file"),
        (block(kind=tarfile.GNUTYPE_LONGNAME, size=100), "a is not a regular file"),
        (block(kind=tarfile.XHDTYPE, size=1 << 33), "a is not a regular file"),
        (block(kind=tarfile.XGLTYPE), "a is not a regular file"),
        (block(size=2001), "a has 2001 bytes, and may have 2000"),
        (block(size=1 << 60), "a has 1152921504606846976 bytes, and may have 2000"),
        (block(size=-1), "a has -1 bytes, and may have 2000"),
        (block()[:-1] + b"x", "bad checksum"),
        (b"x" * 512, "invalid header"),
        (block()[:148] + bytes(8) + block()[156:], "bad checksum"),
        (b"", "cut short"),
        (bytes(100), "cut short"),
    ],
)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, header: bytes, said: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(header))
    assert said in refused(path)


def test_links_and_devices_are_refused_where_they_come_after_a_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(headed((about("a", size=1), b"x"), (about("b", tarfile.SYMTYPE, linkname="a"), b"")))
    assert refused(path) == "b is not a regular file"


def test_a_member_may_not_come_twice(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(headed((about("a", size=1), b"x"), (about("a", size=1), b"y")))
    assert refused(path) == "a is in it twice"


def test_a_name_from_a_pax_header_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(headed((about("a", pax_headers={"path": "/etc/passwd"}), b"")))
    assert "it has a member " in refused(path)


def test_each_shorter_file_is_cut_short(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole", WHOLE).read_bytes()
    path = tmp_path / "x"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert "cut short" in refused(path), length


@pytest.mark.parametrize("more", [b"x", gzip.compress(b"x", mtime=0), bytes(1)], ids=["x", "gzip", "zero"])
def test_nothing_follows(tmp_path: Path, more: bytes) -> None:
    path = written(tmp_path / "x", WHOLE)
    with path.open("ab") as file:
        file.write(more)
    assert refused(path) == "there is more after its end"


def test_nothing_follows_within(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(gzip.decompress(written(path, WHOLE).read_bytes()) + b"more"))
    assert refused(path) == "there is more after its end"


@pytest.mark.parametrize("bomb", ["behind its end", "in a member", "in a header of gzip"])
def test_a_bomb_is_not_unpacked(tmp_path: Path, bomb: str) -> None:
    """Of 200 MiB that come from 200 KiB, almost nothing is unpacked."""
    contents = {
        "behind its end": lambda: gzip.compress(bytes(200 * MIB), 1),
        "in a member": lambda: gzip.compress(block(size=200 * MIB) + bytes(200 * MIB), 1),
        "in a header of gzip": lambda: b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * (20 * MIB),
    }
    path = tmp_path / "x"
    path.write_bytes(contents[bomb]())
    tracemalloc.start()
    started = time.process_time()
    try:
        refused(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * MIB
    assert time.process_time() - started < 2


def test_a_large_member_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(block(size=100 * MIB) + bytes(100 * MIB + 1024), 1))
    tracemalloc.start()
    try:
        (member,) = read_archive(path, {"a": 100 * MIB})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (member.name, member.size) == ("a", 100 * MIB)
    assert peak < 2 * MIB


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(tmp_path) == refused(Path("/dev/zero")) == refused(tmp_path / "absent") == "it is not a file"
    monkeypatch.setattr(archives, "FILE_BYTES_MAX", 10)
    assert refused(written(tmp_path / "x", WHOLE)) == "a bundle has at most 10 bytes"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=2000), wrap=st.sampled_from([bytes, gzip.compress]))
def test_any_bytes_are_refused_or_read(tmp_path: Path, content: bytes, wrap: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "x"
    path.write_bytes(wrap(content))
    assert refused(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_has_the_members_that_are_allowed(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "x"
    content = bytearray(gzip.decompress(written(path, {"a": b"abc", "b": bytes(600)}).read_bytes()))
    at = data.draw(st.integers(0, 3000))
    content[at : at + data.draw(st.integers(0, 12))] = data.draw(st.binary(max_size=12))
    path.write_bytes(gzip.compress(bytes(content)))
    try:
        found = read(path)
    except BundleError:
        return
    assert found.keys() <= SIZES.keys()
    assert all(len(found[name]) <= SIZES[name] for name in found)
