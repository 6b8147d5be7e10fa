"""Logs of dm-log-writes, seen from Python: made by the kernel, by QEMU and by hand; and exports, replayed.

logs/linux-6.1.log was made by the log-writes target of Debian's user-mode-linux 6.1, over 64 KiB of zeros: write A to
sector 0 and B to 1 and 2, mark, write C to 8 (O_DSYNC), D to 9, fsync, discard 16 to 23, write E to 16, remove the
target. logs/qemu-7.2.log was made by qemu-io 7.2 with blklogwrites: write A to 0 and B to 1 and 2 (FUA), flush, discard
16 to 23, write zeros to 8, write C to 17, close.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from postcrash._core import (
    Recording,
    count_states,
    export_dm_log_writes,
    import_dm_log_writes,
    intervals,
    read_dm_log_writes,
    scan_dm_log_writes,
    state_bytes,
    write_recording,
)
from postcrash.model.units import SECTOR_BYTES

Event = tuple[Any, ...]
LOGS = Path(__file__).parent / "logs"
MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD, MARK, METADATA = (1 << bit for bit in range(5))
DISK_SECTORS = 128
DURABLE: Event = ("durable",)


def superblock(entries: int, sector_bytes: int = SECTOR_BYTES) -> bytes:
    return struct.pack("<QQQI", MAGIC, 1, entries, sector_bytes).ljust(sector_bytes, b"\0")


def entry(sector: int, sectors: int, flags: int = 0, data: bytes = b"", sector_bytes: int = SECTOR_BYTES) -> bytes:
    """An entry with its data. For a mark, `data` is its text."""
    text = data if flags & MARK else b""
    header = struct.pack("<QQQQ", sector, sectors, flags, len(text)) + text
    return header.ljust(sector_bytes, b"\0") + (b"" if flags & MARK else data)


def letters(text: str, sector_bytes: int = SECTOR_BYTES) -> bytes:
    return b"".join(letter.encode() * sector_bytes for letter in text)


def log(*entries: bytes, sector_bytes: int = SECTOR_BYTES) -> bytes:
    return superblock(len(entries), sector_bytes) + b"".join(entries)


def imported(folder: Path, content: bytes, disk_sectors: int = DISK_SECTORS) -> Recording:
    (folder / "log").write_bytes(content)
    import_dm_log_writes(folder / "log", disk_sectors, folder / "log.pcr", "{}")
    return Recording(folder / "log.pcr")


def base_image(folder: Path) -> Path:
    path = folder / "base"
    path.write_bytes(b"." * SECTOR_BYTES * DISK_SECTORS)
    return path


def requests(recording: Recording) -> list[Event]:
    """The events without ids and completions. A write has its letters."""
    found: list[Event] = []
    for number, event in enumerate(recording.events()):
        match event:
            case ("write", _, sector, _, fua, _):
                found.append(("write", sector, recording.data(number)[::SECTOR_BYTES].decode(), fua))
            case ("zero", _, sector, sectors, discard):
                found.append(("zero", sector, sectors, discard))
            case (("flush" | "durable") as kind, *_):
                found.append((kind,))
    return found


def test_a_log_of_the_kernel(tmp_path: Path) -> None:
    path = LOGS / "linux-6.1.log"
    summary = scan_dm_log_writes(path, DISK_SECTORS)
    assert summary["marks"] == [(1, "two-writes"), (19, "dm-log-writes-end")]
    assert (summary["entries"], summary["writes"], summary["fua_writes"]) == (11, 6, 1)
    # The FUA write was submitted after A and B had completed, and the mark was set between them.
    assert requests(imported(tmp_path, path.read_bytes())) == [
        *(DURABLE, ("write", 8, "C", True), ("write", 0, "A", False), ("write", 1, "B", False)),
        *(("write", 2, "B", False), ("flush",), ("write", 9, "D", False), ("flush",)),
        *(("zero", 16, 8, True), ("write", 16, "E", False)),
    ]


def test_a_log_of_qemu(tmp_path: Path) -> None:
    path = LOGS / "qemu-7.2.log"
    assert requests(imported(tmp_path, path.read_bytes())) == [
        *(DURABLE, ("write", 0, "A", False), ("write", 1, "BB", False), ("flush",), ("flush",)),
        *(("zero", 16, 8, True), ("write", 8, "\0", False), ("flush",), ("write", 17, "C", False)),
        *(("flush",), ("flush",)),
    ]


def test_a_log_as_fstests_makes_them(tmp_path: Path) -> None:
    """On a 4 KiB device: mkfs, its mark, a journal commit (flush, then FUA), a discard, the mark of an fsync."""
    size = 4096
    content = log(
        entry(2, 1, METADATA, letters("A", size), size),
        entry(0, 0, FLUSH, sector_bytes=size),
        entry(0, 0, MARK, b"mkfs", size),
        entry(3, 1, FUA | METADATA, letters("C", size), size),
        entry(4, 2, DISCARD, sector_bytes=size),
        entry(0, 0, MARK, b"fsync-0", size),
        sector_bytes=size,
    )
    recording = imported(tmp_path, content)
    summary = scan_dm_log_writes(tmp_path / "log", DISK_SECTORS)
    assert (summary["log_sector_bytes"], summary["metadata_flags"]) == (4096, 2)
    assert summary["marks"] == [(5, "mkfs"), (9, "fsync-0")]
    assert requests(recording) == [
        *(DURABLE, ("write", 16, "A" * 8, False), ("flush",), ("write", 24, "C" * 8, True), ("zero", 32, 16, True)),
    ]


def test_the_crash_states_of_an_import(tmp_path: Path) -> None:
    content = log(
        *(entry(0, 1, 0, letters("A")), entry(9, 1, 0, letters("B")), entry(0, 0, FLUSH)),
        *(entry(0, 1, 0, letters("C")), entry(9, 1, FUA, letters("D"))),
    )
    recording, base = imported(tmp_path, content), base_image(tmp_path)
    found = intervals(recording, base, "cache")
    assert [interval.states for interval in found] == [4, 4, 2]
    assert count_states(recording, base, "cache") == (3, 10)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes cannot hold a superblock (byte 0)"),
        (b"PCREC01\n".ljust(512), "it starts with 0xa31304345524350 instead of 0x6a736677736872 (byte 0)"),
        (superblock(1), "entry 0 of 1: the log ends too early: 512 bytes are needed from byte 512 on, 0 are there"),
        (log(entry(0, 9, 0, letters("A"))), "entry 0 of 1: the log ends too early: 4608 bytes are needed"),
        (
            log(entry(0, 0, FLUSH), entry(128, 1, DISCARD)),
            "entry 1 of 2: 1 sectors of 512 bytes from sector 128 do not",
        ),
        (log(entry(0, 0, FLUSH), b"\xff" * 512), "entry 1 of 2: unknown flags 0xffffffffffffffff (byte 1024)"),
    ],
)
def test_a_hostile_log_gets_one_clear_error(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match="not a log of dm-log-writes") as error:
        imported(tmp_path, content)
    assert reason in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    with pytest.raises(OSError, match=r"absent: No such file"):
        scan_dm_log_writes(tmp_path / "absent", DISK_SECTORS)


@given(st.data())
def test_changed_logs_of_kernel_and_qemu_do_no_harm(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    content = bytearray((LOGS / data.draw(st.sampled_from(["linux-6.1.log", "qemu-7.2.log"]))).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        sector, at = data.draw(st.integers(0, len(content) // 512 - 1)), data.draw(st.integers(0, 31))
        content[sector * 512 + at] = data.draw(st.integers(0, 255))
    try:
        recording = imported(folder, bytes(content))
    except ValueError:
        assert [path.name for path in folder.iterdir()] == ["log"]
    else:
        assert recording.events()[0] == DURABLE


def entries_of(content: bytes) -> Iterator[tuple[int, int, int, bytes, bytes]]:
    """(sector, sectors, flags, text, data) of each entry, by the kernel's log-writes.rst, as strictly as replay-log."""
    magic, version, count, sector_bytes = struct.unpack_from("<QQQI", content)
    assert (magic, version, sector_bytes) == (MAGIC, 1, SECTOR_BYTES)
    at = sector_bytes
    for _ in range(count):
        sector, sectors, flags, length = struct.unpack_from("<QQQQ", content, at)
        text = content[at + 32 : at + 32 + length]
        assert flags or sectors, "replay-log calls this malformed"
        assert flags == MARK or content[at + 32] == 0, "and this"
        assert content[at + 32 + length] == 0, "it compares a mark with the zero behind it"
        at += sector_bytes
        data = b"" if flags & DISCARD else content[at : at + sectors * sector_bytes]
        at += len(data)
        yield sector, sectors, flags, text, data
    assert at == len(content)


def replay(content: bytes, disk: bytearray, end_mark: bytes | None = None) -> None:
    """The effect of `replay-log --replay` on a file that cannot discard."""
    for sector, sectors, flags, text, data in entries_of(content):
        written = bytes(sectors * SECTOR_BYTES) if flags & DISCARD else data
        assert len(written) <= 128 << 20, "it leaves out larger discards"
        disk[sector * SECTOR_BYTES : sector * SECTOR_BYTES + len(written)] = written
        if end_mark is not None and text == end_mark:
            return


def requests_with(*flags: bool) -> st.SearchStrategy[Event]:
    """A request without its id. FUA and PREFLUSH are drawn from `flags`."""
    sector, flag = st.integers(0, DISK_SECTORS - 20), st.sampled_from(flags)
    write = st.tuples(st.just("write"), sector, st.text("ABCD", min_size=1, max_size=9).map(letters), flag, flag)
    return st.one_of(write, st.tuples(st.just("zero"), sector, st.integers(1, 20), flag), st.just(("flush",)))


def numbered(drawn: list[Event]) -> list[Event]:
    return [(kind, ident, *rest) for ident, (kind, *rest) in enumerate(drawn)]


@given(drawn=st.lists(requests_with(False), max_size=8))
def test_export_and_import_keep_the_crash_states(tmp_path_factory: pytest.TempPathFactory, drawn: list[Event]) -> None:
    folder = tmp_path_factory.mktemp("kept")
    base = base_image(folder)
    events = [DURABLE]
    for submitted in numbered(drawn):
        events += [submitted, ("complete", submitted[1])]
    write_recording(folder / "first.pcr", DISK_SECTORS, "{}", events)
    first = Recording(folder / "first.pcr")
    export_dm_log_writes(first, folder / "out", [])
    second = imported(folder, (folder / "out").read_bytes())
    before, after = (intervals(recording, base, "cache") for recording in (first, second))
    assert [(each.states, each.contents) for each in before] == [(each.states, each.contents) for each in after]
    assert [each.components for each in before] == [each.components for each in after]
    assert [contents(first, base, each.index) for each in before] == [
        contents(second, base, each.index) for each in after
    ]


@given(drawn=st.lists(requests_with(False, True), max_size=8), data=st.data())
def test_replaying_an_export_gives_the_final_disk(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Event], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("replayed")
    base = base_image(folder)
    events, under_way = [DURABLE], []
    for submitted in [*numbered(drawn), None]:
        if submitted is not None:
            events.append(submitted)
            under_way.append(submitted[1])
        while under_way and (submitted is None or data.draw(st.booleans())):
            events.append(("complete", under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))))
    write_recording(folder / "log.pcr", DISK_SECTORS, "{}", events)
    recording = Recording(folder / "log.pcr")
    said = export_dm_log_writes(recording, folder / "out", [])
    assume(said["overtaken"] == 0)
    disk = bytearray(base.read_bytes())
    replay((folder / "out").read_bytes(), disk)
    assert disk == contents(recording, base, len(intervals(recording, base, "cache")) - 1)


def contents(recording: Recording, base: Path, interval: int) -> bytes:
    """The disk with nothing lost."""
    return state_bytes(recording, base, "cache", interval, [], 0, DISK_SECTORS)


def test_marks_are_where_replay_log_finds_them(tmp_path: Path) -> None:
    events: list[Event] = [
        *(DURABLE, ("started", 0), ("write", 0, 0, letters("A"), False, False), ("complete", 0), ("returned", 0, 0)),
        *(("write", 1, 0, letters("B"), False, False), ("complete", 1)),
    ]
    write_recording(tmp_path / "log.pcr", DISK_SECTORS, "{}", events)
    export_dm_log_writes(Recording(tmp_path / "log.pcr"), tmp_path / "out", [(1, "before"), (5, "after write A")])
    for mark, expected in [(b"before", b"."), (b"after write A", b"A"), (None, b"B")]:
        disk = bytearray(base_image(tmp_path).read_bytes())
        replay((tmp_path / "out").read_bytes(), disk, mark)
        assert disk[:1] == expected


@pytest.mark.parametrize("name", ["linux-6.1.log", "qemu-7.2.log"])
def test_an_import_exported_again_is_the_same_log(tmp_path: Path, name: str) -> None:
    content = (LOGS / name).read_bytes()
    recording = imported(tmp_path, content)
    marks = scan_dm_log_writes(LOGS / name, DISK_SECTORS)["marks"]
    export_dm_log_writes(recording, tmp_path / "out", marks)
    assert (tmp_path / "out").read_bytes() == content


@pytest.mark.parametrize("name", ["linux-6.1.log", "qemu-7.2.log"])
def test_what_is_read_is_what_is_imported(tmp_path: Path, name: str) -> None:
    recording = imported(tmp_path, (LOGS / name).read_bytes())
    events = recording.events()
    read = read_dm_log_writes(LOGS / name, DISK_SECTORS)
    for entry, place in read:
        found: Any = events[place] if entry[0] != "mark" else ()
        match entry:
            case ("write", sector, data, fua):
                sectors = len(data) // SECTOR_BYTES
                assert (*found[:1], *found[2:]) == ("write", sector, sectors, fua, False)
                assert recording.data(place) == data
            case ("discard", sector, sectors):
                assert (*found[:1], *found[2:]) == ("zero", sector, sectors, True)
            case ("flush", _):
                assert found[0] == "flush"
    marks = [(place, entry[1]) for entry, place in read if entry[0] == "mark"]
    assert marks == scan_dm_log_writes(LOGS / name, DISK_SECTORS)["marks"]
    assert 2 * (len(read) - len(marks)) + 1 == len(events)


def test_large_discards_are_cut_and_zeros_are_holes(tmp_path: Path) -> None:
    sectors = (300 << 20) // SECTOR_BYTES
    events: list[Event] = [
        ("zero", 0, 7, sectors, True),
        ("complete", 0),
        ("zero", 1, 7, sectors, False),
        ("complete", 1),
    ]
    write_recording(tmp_path / "log.pcr", 2 * sectors, "{}", events)
    out = tmp_path / "out"
    assert export_dm_log_writes(Recording(tmp_path / "log.pcr"), out, [])["entries"] == 6
    assert out.stat().st_size == SECTOR_BYTES * (1 + 6 + sectors)
    assert out.stat().st_blocks * 512 < 1 << 20
    summary = scan_dm_log_writes(out, 2 * sectors)
    assert (summary["discards"], summary["writes"]) == (3, 3)
    import_dm_log_writes(out, 2 * sectors, tmp_path / "again.pcr", "{}")
    assert (tmp_path / "again.pcr").stat().st_size < 1 << 20
