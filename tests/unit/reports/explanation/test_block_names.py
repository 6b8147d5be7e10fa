"""Written blocks get the names that the file systems' own tools give them, on real images made here.

The tests find the places of blocks without those tools: by their content, or because the place is fixed.
"""

import json
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postcrash._core import Recording, write_recording
from postcrash.reports.explanation import disk_image, programs
from postcrash.reports.explanation.block_names import WriteNames, block_names
from postcrash.reports.explanation.block_part import DiskWrite

pytestmark = pytest.mark.slow

MIB = 1 << 20
BOX = programs._box()
DATA = b"".join(b"line %6d of a\n" % number for number in range(2000))[:20_000]


def made(folder: Path, mib: int, *command: str) -> Path:
    """The image that mkfs makes of a folder with a file, `docs/a`."""
    (folder / "tree/docs").mkdir(parents=True)
    (folder / "tree/docs/a").write_bytes(DATA)
    image = folder / "disk.img"
    image.touch()
    os.truncate(image, mib * MIB)
    subprocess.run([*command, str(image)], check=True, capture_output=True, env={"PATH": programs._PATH})
    return image


@pytest.fixture
def ext4(tmp_path: Path) -> Path:
    """An ext4 with two transactions in its journal. One of them has a copy of the inode table."""
    image = made(tmp_path, 24, "mkfs.ext4", "-q", "-b", "4096", "-N", "256", "-J", "size=4", "-d", f"{tmp_path}/tree")
    copied = tmp_path / "block"
    copied.write_bytes(bytes(8192))
    for blocks in ("36", "5000"):
        commands = f"jo\njw -b {blocks} {copied}\njc\n"
        command = ["debugfs", "-w", "-f", "-", str(image)]
        subprocess.run(command, input=commands.encode(), check=True, capture_output=True, env={"PATH": programs._PATH})
    return image


def ext3(tmp_path: Path) -> Path:
    return made(tmp_path, 24, "mkfs.ext3", "-q", "-b", "1024", "-N", "256", "-d", f"{tmp_path}/tree")


def btrfs(tmp_path: Path) -> Path:
    return made(tmp_path, 128, "mkfs.btrfs", "-q", "--rootdir", f"{tmp_path}/tree")


def xfs(tmp_path: Path) -> Path:
    return made(tmp_path, 300, "mkfs.xfs", "-q")


def at(image: Path, start: int, length: int = 4096) -> DiskWrite:
    """A write of what the image has at this place."""
    with image.open("rb") as file:
        file.seek(start)
        return DiskWrite(start, file.read(length))


def named(fstype: str, image: Path, *written: DiskWrite, ends: tuple[DiskWrite, ...] = ()) -> WriteNames:
    """The names of writes on a disk that is as they left it at the crash. `ends` are written after the crash."""
    path = image.with_suffix(".pcr")
    events: list[tuple[Any, ...]] = [("durable",)]
    for number, write in enumerate((*written, *ends)):
        events += [("write", number, write.start // 512, write.data, False, False), ("complete", number)]
    write_recording(path, image.stat().st_size // 512, "{}", events)
    return block_names(fstype, Recording(path), image, 1 + 2 * len(written), written)


def journal_blocks(image: Path) -> list[tuple[int, int, int]]:
    """Place, kind and sequence of the blocks that begin as jbd2's blocks do."""
    content = image.read_bytes()
    found = []
    for start in range(0, len(content), 4096):
        magic, kind, sequence = struct.unpack_from(">III", content, start)
        if magic == 0xC03B3998:
            found.append((start, kind, sequence))
    return found


def test_ext4_structures_with_a_fixed_place(ext4: Path) -> None:
    found = named("ext4", ext4, at(ext4, 0), at(ext4, 4096), at(ext4, 4096, 8192))
    assert (found.tool, found.problem) == ("debugfs", "")
    assert found.names == ("superblock", "group descriptors", "group descriptors; reserved group descriptors")


def test_ext4_data_belongs_to_its_file(ext4: Path) -> None:
    start = ext4.read_bytes().index(DATA)
    found = named("ext4", ext4, at(ext4, start, 4096), at(ext4, start + 8192, 12_288))
    assert found.names == ("data of docs/a, bytes 0 to 4096", "data of docs/a, bytes 8192 to 20480")


def test_ext4_journal_blocks_have_a_kind_and_a_transaction(ext4: Path) -> None:
    words = {1: "descriptor", 2: "commit"}
    blocks = [(start, kind, sequence) for start, kind, sequence in journal_blocks(ext4) if kind in words]
    assert len(blocks) == 4
    found = named("ext4", ext4, *(at(ext4, start) for start, _, _ in blocks))
    assert list(found.names) == [f"journal {words[kind]} block of transaction {number}" for _, kind, number in blocks]
    (superblock,) = (start for start, kind, _ in journal_blocks(ext4) if kind == 4)
    assert named("ext4", ext4, at(ext4, superblock)).names == ("journal superblock",)


def test_ext4_journal_copies_are_of_something(ext4: Path) -> None:
    descriptor = next(start for start, kind, _ in journal_blocks(ext4) if kind == 1)
    (name,) = named("ext4", ext4, at(ext4, descriptor + 4096)).names
    assert name.startswith("journal copy (transaction ") and ") of inode table of group 0 (inodes 1 to 16" in name
    assert name.endswith(", 12 = docs, 13 = docs/a)")


def test_a_block_that_was_written_again_keeps_only_what_its_place_says(ext4: Path) -> None:
    commit = next(start for start, kind, _ in journal_blocks(ext4) if kind == 2)
    others = DiskWrite(commit, os.urandom(4096)), DiskWrite(0, at(ext4, 0).data)
    path = ext4.with_suffix(".pcr")
    write_recording(path, ext4.stat().st_size // 512, "{}", [("durable",)])
    names = block_names("ext4", Recording(path), ext4, 1, others).names
    assert names == ("journal block", "superblock")


def test_ext3_block_maps_and_directories(tmp_path: Path) -> None:
    image = ext3(tmp_path)
    content = image.read_bytes()
    start = content.index(DATA[:1024])
    mapped = content.index(DATA[12 * 1024 : 13 * 1024])
    # The first block of an inode after twelve is its map, which begins with the number of the next block.
    map_start = next(
        at for at in range(0, len(content), 1024) if content[at : at + 4] == struct.pack("<I", mapped // 1024)
    )
    entry = content.index(b"a\0\0\0", content.index(b"\x01\x01a")) // 1024 * 1024
    found = named("ext3", image, *(at(image, place, 1024) for place in (start, mapped, map_start, entry)))
    assert found.names == (
        "data of docs/a, bytes 0 to 1024",
        "data of docs/a, bytes 12288 to 13312",
        "block map of docs/a",
        "directory block of docs",
    )


def test_btrfs(tmp_path: Path) -> None:
    image = btrfs(tmp_path)
    content = image.read_bytes()
    superblock = content[65536 : 65536 + 4096]
    generation = struct.unpack_from("<Q", superblock, 72)[0]
    fsid = superblock[32:48]
    trees = {1: "root tree", 5: "fs tree", 7: "checksum tree"}
    nodes: dict[int, list[int]] = {}
    for start in range(0, len(content), 4096):
        owner, level = struct.unpack_from("<QxxxxB", content, start + 88)[0], content[start + 100]
        written = struct.unpack_from("<Q", content, start + 80)[0]
        if (content[start + 32 : start + 48], written, level) == (fsid, generation, 0) and owner in trees:
            nodes.setdefault(owner, []).append(start)
    writes = [at(image, 65536), at(image, 64 * MIB), at(image, content.index(DATA), 8192)]
    wanted = [
        f"superblock (generation {generation})",
        f"superblock copy 1 (generation {generation})",
        "data of docs/a, bytes 0 to 8192",
    ]
    for owner, copies in nodes.items():
        for number, start in enumerate(sorted(copies)):
            writes.append(at(image, start, 16384))
            wanted.append(f"{trees[owner]} leaf (generation {generation}){', copy 2' if number else ''}")
    assert len(nodes) == len(trees)
    found = named("btrfs", image, *writes)
    assert (found.problem, list(found.names)) == ("", wanted)


def test_xfs(tmp_path: Path) -> None:
    image = xfs(tmp_path)
    content = image.read_bytes()
    group_bytes = struct.unpack_from(">I", content, 84)[0] * 4096
    record = content.index(struct.pack(">I", 0xFEEDBABE))
    places = (0, 512, 1024, 1536, group_bytes + 512, record)
    found = named("xfs", image, *(at(image, start, 512) for start in places))
    kinds = ("superblock", "AGF", "AGI", "AGFL")
    assert found.problem == ""
    assert found.names[:4] == tuple(f"{kind} of allocation group 0" for kind in kinds)
    assert found.names[4] == "AGF of allocation group 1"
    assert found.names[5].startswith("log record at cycle 1, block ")


@pytest.mark.parametrize("fstype", ["ext2", "ext4", "btrfs", "xfs"])
@pytest.mark.parametrize("fill", [bytes, os.urandom], ids=["zeros", "noise"])
def test_an_image_without_a_file_system_gives_no_names(
    tmp_path: Path, fstype: str, fill: Callable[[int], bytes]
) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(fill(4 * MIB))
    found = named(fstype, image, at(image, 0), at(image, 65536, 16384))
    assert (found.names, found.problem) == (("", ""), "")


@pytest.mark.parametrize("make", [ext3, btrfs], ids=["ext3", "btrfs"])
def test_a_damaged_file_system_breaks_nothing(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    image = make(tmp_path)
    with image.open("r+b") as file:
        for start in range(128 * 1024, image.stat().st_size, 64 * 1024):
            file.seek(start)
            file.write(os.urandom(8192))
    found = named(make.__name__, image, at(image, 65536), at(image, 128 * 1024, 16384))
    assert (len(found.names), found.problem) == (2, "")


def test_a_missing_tool_is_named_with_its_package(ext4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_PATH", "/nonexistent")
    found = named("ext4", ext4, at(ext4, 0))
    assert (found.names, found.problem) == (("",), "dumpe2fs is not installed: apt-get install e2fsprogs")


@pytest.mark.parametrize("script", ["exec sleep 60", "exec cat /dev/zero", "kill -SEGV $$"])
def test_a_tool_that_goes_wrong_is_cut_off(
    tmp_path: Path, ext4: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("debugfs", "dumpe2fs"):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setattr(programs, "_PATH", f"{tools}:{programs._PATH}")
    monkeypatch.setattr(programs, "_box", lambda: (*BOX, "--ro-bind", str(tools), str(tools)))
    monkeypatch.setattr(programs, "TIMEOUT_S", 1)
    assert named("ext4", ext4, at(ext4, 0)).names == ("",)
    assert len(programs.output("debugfs", image=str(ext4))) <= programs.OUTPUT_BYTES_MAX


def test_a_tool_sees_the_image_and_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secret := tmp_path / "secret").write_text("secret")
    (image := tmp_path / "image").write_text("the image")
    assert programs.output("cat", image=str(image)) == "the image"
    ours = f"{secret} {Path.home()} /etc/passwd /sys /proc/{os.getpid()}"
    seen = programs.output(
        "sh", "-c", f"ls -d {ours} /proc/1 /usr; touch /usr/x && echo written; cat $0", image=str(image)
    )
    assert seen == "/proc/1\n/usr\nthe image"


def test_where_there_can_be_no_box_no_tool_is_run(ext4: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (refusing := tmp_path / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: no permission to make namespaces' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(programs, "_PATH", f"{tmp_path}:{programs._PATH}")
    monkeypatch.setattr(programs, "_box", programs._box.__wrapped__)
    found = named("ext4", ext4, at(ext4, 0))
    assert found.names == ("",)
    assert found.problem == "file systems' tools cannot be run in a sandbox: bwrap: no permission to make namespaces"


def test_a_disk_that_is_too_large_is_not_copied(ext4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_image, "IMAGE_BYTES_MAX", MIB)
    found = named("ext4", ext4, at(ext4, 0))
    assert found.names == ("",)
    assert "25165824 bytes" in found.problem


def test_names_that_are_no_text_are_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "tree/docs").mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(tmp_path / "tree") + b"/odd\xff")).write_bytes(DATA[::-1])
    image = tmp_path / "disk.img"
    image.touch()
    os.truncate(image, 24 * MIB)
    command = ["mkfs.ext4", "-q", "-b", "4096", "-d", f"{tmp_path}/tree", str(image)]
    subprocess.run(command, check=True, capture_output=True, env={"PATH": programs._PATH})
    found = named("ext4", image, at(image, image.read_bytes().index(DATA[::-1])))
    assert found.names == ("data of odd\\xff, bytes 0 to 4096",)
    json.dumps(found.names).encode()


def test_a_file_system_without_known_tools_has_no_names(ext4: Path) -> None:
    assert named("f2fs", ext4, at(ext4, 0)) == WriteNames(("",))


def test_the_copy_is_removed(ext4: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    assert named("ext4", ext4, at(ext4, 0)).names == ("superblock",)
    assert list(folder.iterdir()) == []
