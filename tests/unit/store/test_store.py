"""Whatever is put is there, whole, whatever happens. Damage gives one clear error that names the file."""

import errno
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.model import Verdict
from postcrash.properties.promises import Statements
from postcrash.store.records import Cell
from postcrash.store.store import APPLICATION_ID, DATABASE, SCHEMA_VERSION, Store, StoreError

RECORDING = "r-0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    store = Store(folder)
    yield store
    store.close()


def message(attempt: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        attempt()
    return str(caught.value)


def test_a_new_store_is_empty(store: Store, folder: Path) -> None:
    assert store.cells() == ()
    assert store.findings() == ()
    assert store.get_run("key") is None
    assert sorted(path.name for path in folder.iterdir()) == ["recordings", DATABASE]


def test_what_was_put_is_there_for_the_next_process(store: Store, folder: Path, crash: Any, make_cell: Any) -> None:
    cells = [make_cell("xfs"), make_cell("btrfs", verdict=Verdict.VIOLATED, witness=crash.finding.id)]
    store.put_run("key", {"covered": str(2**70)}, [crash.finding])
    store.put_cells(cells)
    store.close()
    again = Store(folder)
    assert again.get_run("key") == {"covered": str(2**70)}
    assert again.finding(crash.finding.id) == crash.finding
    assert again.findings() == (crash.finding,)
    assert again.cells() == tuple(cells)
    again.close()


def test_a_run_is_put_with_its_findings_or_not_at_all(store: Store, crash: Any) -> None:
    def broken() -> Iterator[Any]:
        yield crash.finding
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.put_run("key", {}, broken())
    assert store.get_run("key") is None
    assert store.findings() == ()
    store.put_run("key", {}, [crash.finding])
    assert store.findings() == (crash.finding,)


def test_a_run_and_a_finding_are_replaced(store: Store, crash: Any) -> None:
    store.put_run("key", {"a": 1}, [crash.finding])
    store.put_run("key", {"a": 2})
    changed = replace(crash.finding, message="\ud800\x00")
    store.put_finding(changed)
    assert store.get_run("key") == {"a": 2}
    assert store.findings() == (changed,)


def test_cells_are_replaced_where_they_stand(store: Store, make_cell: Callable[..., Cell]) -> None:
    store.put_cells([make_cell("a"), make_cell("b"), make_cell("a", model="lying")])
    store.put_cells([make_cell("a", verdict=Verdict.UNDECIDED), make_cell("c")])
    assert [(cell.target, cell.model, cell.verdict.symbol) for cell in store.cells()] == [
        ("a", "cache", "?"),
        ("b", "cache", "✓"),
        ("a", "lying", "✓"),
        ("c", "cache", "✓"),
    ]


def test_cells_of_two_builds_of_a_kernel_stand_beside_each_other(store: Store, make_cell: Callable[..., Cell]) -> None:
    guests = [f"{number:064x}" for number in range(2)]
    store.put_cells([make_cell("a", guest=guests[0])])
    store.put_cells([make_cell("a", guest=guests[1], verdict=Verdict.UNDECIDED)])
    assert [(cell.guest, cell.verdict.symbol) for cell in store.cells()] == list(zip(guests, "✓?", strict=True))


def test_an_unknown_finding(store: Store, folder: Path) -> None:
    assert (
        message(lambda: store.finding("f-0123456789abcdef"))
        == f"{folder / DATABASE}: there is no finding f-0123456789abcdef"
    )
    assert message(lambda: store.finding("it")).endswith("found 'it'")


# Recordings


def test_a_recording_moves_in(store: Store, folder: Path) -> None:
    path = store.scratch()
    assert path.parent == folder / "recordings"
    path.write_bytes(b"recording")
    place = store.adopt_recording(path, RECORDING)
    assert place == store.recording_path(RECORDING)
    assert place.read_bytes() == b"recording"
    assert list((folder / "recordings").iterdir()) == [place]


def test_a_recording_that_is_there_stays(store: Store, folder: Path) -> None:
    for content in (b"first", b"second"):
        path = store.scratch()
        path.write_bytes(content)
        store.adopt_recording(path, RECORDING)
    assert store.recording_path(RECORDING).read_bytes() == b"first"
    assert len(list((folder / "recordings").iterdir())) == 1


def test_scratch_paths_differ(store: Store) -> None:
    assert len({store.scratch() for _ in range(100)}) == 100


def cross_device(_self: Path, _target: Path) -> None:
    raise OSError(errno.EXDEV, "Invalid cross-device link")


def test_a_recording_comes_from_another_file_system(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "elsewhere.pcr"
    path.write_bytes(b"recording")
    monkeypatch.setattr(Path, "rename", cross_device)
    assert store.adopt_recording(path, RECORDING).read_bytes() == b"recording"
    assert not path.exists()


def test_a_disk_that_fills_up_while_copying_leaves_nothing(
    store: Store, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_files: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "elsewhere.pcr"
    path.write_bytes(b"recording")
    monkeypatch.setattr(Path, "rename", cross_device)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    assert "no space left on the disk" in message(lambda: store.adopt_recording(path, RECORDING))
    assert path.read_bytes() == b"recording"
    assert list((folder / "recordings").iterdir()) == []


@pytest.mark.parametrize("id", ["../../etc/passwd", "r-0123", "", "r-0123456789abcdef/../x"])
def test_a_recording_cannot_be_anywhere_else(store: Store, tmp_path: Path, id: str) -> None:
    path = tmp_path / "made.pcr"
    path.touch()
    assert "expected a recording's id" in message(lambda: store.adopt_recording(path, id))
    assert "expected a recording's id" in message(lambda: store.recording_path(id))
    assert path.exists()


@pytest.mark.parametrize("id", ["../../etc/hosts", "b-0123", "", "r-0123456789abcdef"])
def test_a_base_image_cannot_be_anywhere_else(store: Store, tmp_path: Path, id: str) -> None:
    path = tmp_path / "made.img"
    path.touch()
    assert "expected a base image's id" in message(lambda: store.keep_base(path, id))
    assert "expected a base image's id" in message(lambda: store.base_path(id))


def test_a_missing_recording(store: Store, tmp_path: Path) -> None:
    place = store.folder / "recordings" / f"{RECORDING}.pcr"
    assert message(lambda: store.recording_path(RECORDING)) == f"{place}: there is no recording {RECORDING}"
    gone = tmp_path / "gone.pcr"
    assert message(lambda: store.adopt_recording(gone, RECORDING)) == f"{gone}: No such file or directory"


def test_what_dead_processes_left_is_removed(store: Store, folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead = folder / "recordings" / f".scratch-{child.pid}-1.pcr"
    dead.touch()
    mine = store.scratch()
    mine.touch()
    Store(folder).close()
    assert not dead.exists()
    assert mine.exists()


# Damage


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "not a store of postcrash (application id 0x0)"),
        (b"not a database, but long enough to be taken for one" * 100, "damaged, or not a store of postcrash: "),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(folder: Path, content: bytes, expected: str) -> None:
    folder.mkdir(parents=True)
    (folder / DATABASE).write_bytes(content)
    assert message(lambda: Store(folder)).startswith(f"{folder / DATABASE}: {expected}")
    assert (folder / DATABASE).read_bytes() == content


def test_another_programs_database_is_refused(folder: Path) -> None:
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / DATABASE)
    connection.execute("CREATE TABLE run (key, value)")
    connection.close()
    assert "not a store of postcrash" in message(lambda: Store(folder))


@pytest.mark.parametrize(("version", "age"), [(SCHEMA_VERSION + 1, "a newer"), (SCHEMA_VERSION - 1, "an older")])
def test_another_version_is_refused(store: Store, folder: Path, version: int, age: str) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert f"written by {age} postcrash (schema {version}, this one has {SCHEMA_VERSION})" in message(
        lambda: Store(folder)
    )


def test_a_file_that_lost_its_end_is_refused(store: Store, folder: Path, crash: Any) -> None:
    store.put_finding(crash.finding)
    store.close()
    whole = (folder / DATABASE).read_bytes()
    (folder / DATABASE).write_bytes(whole[: len(whole) // 2])
    assert message(lambda: Store(folder)).startswith(f"{folder / DATABASE}: damaged")


@pytest.mark.parametrize(
    ("table", "value"),
    [("finding", "{}"), ("finding", "[]"), ("finding", "{"), ("finding", "[" * 9999), ("cell", '{"states": "1"}')],
)
def test_damaged_values_are_refused(store: Store, folder: Path, crash: Any, table: str, value: str) -> None:
    store.put_finding(crash.finding)
    store.put_cells(
        [
            Cell(
                target="a",
                property="b",
                verdict=Verdict.HOLDS,
                states=1,
                recoveries=1,
                outcomes=1,
                workloads=1,
                relevant=1,
                witness=None,
                reason="",
                kernel="k",
                model="m",
                statements=Statements(None, None),
            )
        ]
    )
    connection = sqlite3.connect(folder / DATABASE)
    connection.execute(f"UPDATE {table} SET value = ?", (value,))
    connection.commit()
    connection.close()
    read: Callable[[], object] = store.findings if table == "finding" else store.cells
    assert message(read).startswith(f"{folder / DATABASE}: damaged: {table}")


def test_a_full_disk_leaves_what_was_there(store: Store, crash: Any) -> None:
    store.put_run("old", {"a": 1}, [crash.finding])
    (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    attempt = message(lambda: store.put_run("new", {"a": "x" * 100_000}, [replace(crash.finding, message="y")]))
    assert "no space left on the disk; what was there before is unharmed" in attempt
    assert store.get_run("new") is None
    assert store.findings() == (crash.finding,)
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    store.put_run("new", {"a": "x" * 100_000})
    assert store.get_run("new") is not None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert message(lambda: Store(tmp_path / "file" / "store")).endswith("file/store/recordings: Not a directory")
    assert message(lambda: Store(tmp_path / "file")).endswith("file/recordings: Not a directory")


def test_a_name_with_anything_in_it(tmp_path: Path) -> None:
    Store(tmp_path / "a?b#c %41\n").close()
    assert [path.name for path in tmp_path.iterdir()] == ["a?b#c %41\n"]


# Several at once


PUT_MANY = """
import sys
from postcrash.store.store import Store
store = Store(sys.argv[1])
for i in range(10):
    store.put_run(f"{sys.argv[2]} {i}", {"i": i})
"""


def test_threads_and_processes_share_a_store(folder: Path) -> None:
    commands: list[list[str | Path]] = [
        [sys.executable, "-c", PUT_MANY, folder, f"process {number}"] for number in range(3)
    ]
    processes = [subprocess.Popen(command) for command in commands]
    store = Store(folder)
    threads = [threading.Thread(target=_put, args=(store, f"thread {number}")) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in processes] == [0, 0, 0]
    names = [f"{kind} {number}" for kind in ("thread", "process") for number in range(3)]
    assert all(store.get_run(f"{name} {i}") == {"i": i} for name in names for i in range(10))
    store.close()


def _put(store: Store, name: str) -> None:
    for i in range(10):
        store.put_run(f"{name} {i}", {"i": i})


BE_KILLED = """
import os, sys
from postcrash.store.store import Store
store = Store(sys.argv[1])
store.put_run("first", {})
with store._transaction() as connection:
    connection.execute("PRAGMA cache_size = 1")
    connection.executemany("INSERT INTO run VALUES (?, ?)", [(f"second {i}", "x" * 10_000) for i in range(1000)])
    os.kill(os.getpid(), 9)
"""


def test_a_process_that_is_killed_leaves_a_whole_store(folder: Path) -> None:
    assert subprocess.run([sys.executable, "-c", BE_KILLED, folder], check=False).returncode == -9
    assert (folder / f"{DATABASE}-journal").stat().st_size
    assert (folder / DATABASE).stat().st_size > 1_000_000
    again = Store(folder)
    assert again.get_run("first") == {}
    assert again.get_run("second 0") is None
    assert (folder / DATABASE).stat().st_size < 1_000_000
    again.close()


def test_the_application_id_is_in_the_file(store: Store, folder: Path) -> None:
    assert (folder / DATABASE).read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big") == b"pcrs"


def test_a_finding_that_is_found_again_keeps_what_was_found_out_later(store: Store, crash: Any) -> None:
    finding = replace(crash.finding, minimal=None)
    least = replace(finding, id="f-" + "1" * 16)
    store.put_finding(replace(finding, minimal=least.id))
    store.put_run("key", {"findings": [finding.id]}, [finding])
    assert store.finding(finding.id) == replace(finding, minimal=least.id)
    store.put_finding(replace(finding, needed=((8, 8), (64, 16))))
    store.put_run("key", {"findings": [finding.id]}, [finding])
    assert store.finding(finding.id) == replace(finding, minimal=least.id, needed=((8, 8), (64, 16)))
    store.put_finding(replace(finding, minimal="f-" + "2" * 16))
    assert store.finding(finding.id).minimal == "f-" + "2" * 16
