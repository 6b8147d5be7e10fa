"""The result store: a folder with a SQLite file, `verdicts.db`, and the recordings of its runs with their base images.

The file is created under another name and then renamed. Every result is committed in one transaction, and a recording
is moved in only when it is complete. So everything in the store is complete, even after an interruption. Processes and
threads may share a store.
"""

import errno
import fcntl
import itertools
import json
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from postcrash.model.text import one_line
from postcrash.model.validation import shown
from postcrash.store.consoles import Casualty, keep_console
from postcrash.store.json_codec import Json, PlainError
from postcrash.store.records import Cell, Finding, IdError, check_base_id, check_finding_id, check_recording_id

DATABASE = "verdicts.db"
RECORDINGS = "recordings"
BASES = "bases"
APPLICATION_ID = 0x70637273
"""Identifies our SQLite files (the letters "pcrs")."""
SCHEMA_VERSION = 6
BUSY_TIMEOUT_S = 30.0

_SCHEMA = f"""
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE finding (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, value TEXT NOT NULL);
CREATE TABLE cell (
    number INTEGER PRIMARY KEY,
    target TEXT NOT NULL, property TEXT NOT NULL, kernel TEXT NOT NULL, model TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (target, property, kernel, model)
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_PUT_FINDING = """
INSERT INTO finding (id, value) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET value = json_set(
    excluded.value,
    '$.minimal', coalesce(json_extract(excluded.value, '$.minimal'), json_extract(finding.value, '$.minimal')),
    '$.needed', json(coalesce(json_extract(excluded.value, '$.needed'), json_extract(finding.value, '$.needed')))
)
"""
"""A finding that is found again keeps the results of later commands, such as minimizing."""
_PUT_CELL = (
    "INSERT INTO cell (target, property, kernel, model, value) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (target, property, kernel, model) DO UPDATE SET value = excluded.value"
)
T = TypeVar("T")

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a full disk."""
_SCRATCH = ".scratch-"
_scratch_numbers = itertools.count(1)


class StoreError(RuntimeError):
    """The store cannot be used, or does not have the requested item. The text names the file."""


class NotInStoreError(StoreError):
    """The store does not have the requested item."""


class Store:
    """The results in one folder. Every method raises `StoreError` if the folder or its files cannot be used."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Opens the store in `folder`, or creates an empty one."""
        self.folder = Path(folder)
        self._recordings = self.folder / RECORDINGS
        self._database = self.folder / DATABASE
        self._lock = threading.Lock()
        with _explained(self.folder):
            self._recordings.mkdir(parents=True, exist_ok=True)
            self._create_if_absent()
            for place in (self._recordings, self.folder / BASES):
                _remove_abandoned(place)
        self._connection = self._open()

    def close(self) -> None:
        """Closes the files. All results have been committed."""
        self._connection.close()

    def get_run(self, key: str) -> Json | None:
        """Returns the run with this key."""
        rows = self._rows("SELECT value FROM run WHERE key = ?", key)
        return self._object(rows[0], f"run {key}") if rows else None

    def runs(self) -> Iterator[Json]:
        """Yields all runs, oldest first."""
        for row in self._rows("SELECT value FROM run ORDER BY rowid"):
            yield self._object(row, "run")

    def put_run(self, key: str, run_json: Json, findings: Iterable[Finding] = ()) -> None:
        """Stores the finished exploration of one workload on one target with its findings, atomically.

        `key` is a digest of everything on which the result depends.
        """
        self.put_runs({key: run_json}, findings=findings)

    def put_runs(self, runs: Mapping[str, Json], *, findings: Iterable[Finding]) -> None:
        """Stores finished explorations by their keys, atomically, as `put_run` does with one."""
        rows = [(key, json.dumps(run)) for key, run in runs.items()]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO run VALUES (?, ?)", rows)
            connection.executemany(_PUT_FINDING, map(_finding_row, findings))

    def put_finding(self, finding: Finding) -> None:
        """Stores a finding. It replaces one with the same id, except for results of later commands."""
        with self._transaction() as connection:
            connection.execute(_PUT_FINDING, _finding_row(finding))

    def finding(self, id: str) -> Finding:
        """Returns the finding with this id."""
        try:
            rows = self._rows("SELECT value FROM finding WHERE id = ?", check_finding_id(id))
        except IdError as error:
            raise NotInStoreError(str(error)) from None
        if not rows:
            raise NotInStoreError(f"{self._database}: there is no finding {id}")
        return self._finding(rows[0])

    def findings(self) -> tuple[Finding, ...]:
        """Returns all findings, oldest first."""
        return tuple(map(self._finding, self._rows("SELECT value FROM finding ORDER BY number")))

    def put_cells(self, cells: Iterable[Cell]) -> None:
        """Stores cells. They replace those of the same target, property, guest and device model."""
        with self._transaction() as connection:
            connection.executemany(_PUT_CELL, map(_cell_row, cells))

    def cells(self) -> tuple[Cell, ...]:
        """Returns all cells in the order of their first insertion."""
        rows = self._rows("SELECT value FROM cell ORDER BY number")
        return tuple(self._checked(Cell.from_json, self._object(row, "cell")) for row in rows)

    def scratch(self) -> Path:
        """Returns an unused path for a new recording. `adopt_recording` or the caller removes the file."""
        return self._recordings / f"{_SCRATCH}{os.getpid()}-{next(_scratch_numbers)}.pcr"

    def adopt_recording(self, path: str | os.PathLike[str], id: str) -> Path:
        """Moves the complete recording at `path` into the store, and returns its new path.

        If the store has it already, the file at `path` is removed: recordings with the same id are equal.
        """
        place = self._recording_place(id)
        with _explained(place):
            if place.exists():
                Path(path).unlink()
            else:
                _move(Path(path), place)
        return place

    def recording_path(self, id: str) -> Path:
        """Returns the path of the recording with this id."""
        place = self._recording_place(id)
        if not place.is_file():
            raise NotInStoreError(f"{place}: there is no recording {id}")
        return place

    def keep_console(self, lost: Casualty) -> None:
        """Stores the console of a lost guest."""
        with _explained(self.folder):
            keep_console(self.folder, lost)

    def keep_base(self, path: str | os.PathLike[str], id: str) -> None:
        """Stores the base image at `path`, which never changes, as a hard link if possible."""
        place = self._base_place(id)
        with _explained(place):
            if place.exists():
                return
            place.parent.mkdir(exist_ok=True)
            try:
                os.link(path, place)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
                    raise
                _copy(Path(path), place)

    def base_path(self, id: str) -> Path:
        """Returns the path of the base image with this id."""
        place = self._base_place(id)
        if not place.is_file():
            raise NotInStoreError(f"{place}: there is no base image {id}")
        return place

    def _base_place(self, id: str) -> Path:
        return self.folder / BASES / f"{_id(check_base_id, id)}.img"

    def _recording_place(self, id: str) -> Path:
        return self._recordings / f"{_id(check_recording_id, id)}.pcr"

    def _create_if_absent(self) -> None:
        with locked(self.folder):
            if self._database.exists():
                return
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder) as folder:
                temporary = Path(folder, DATABASE)
                with closing(sqlite3.connect(temporary)) as connection:
                    connection.executescript(f"BEGIN;{_SCHEMA}COMMIT;")
                temporary.rename(self._database)
            _sync_folder(self.folder)

    def _open(self) -> sqlite3.Connection:
        with _explained(self._database):
            connection = sqlite3.connect(
                f"{self._database.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                connection.execute("PRAGMA synchronous = FULL")
                self._check(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raises StoreError if the file is damaged, not ours, or of another version."""
        ((application,),) = connection.execute("PRAGMA application_id")
        ((version,),) = connection.execute("PRAGMA user_version")
        if application != APPLICATION_ID:
            raise StoreError(f"{self._database}: not a store of postcrash (application id {application:#x})")
        if version != SCHEMA_VERSION:
            newer = "a newer" if version > SCHEMA_VERSION else "an older"
            raise StoreError(
                f"{self._database}: written by {newer} postcrash (schema {version}, this one has {SCHEMA_VERSION}): "
                "use that one, or another folder"
            )
        ((result,),) = connection.execute("PRAGMA quick_check(1)")
        if result != "ok":
            raise StoreError(f"{self._database}: damaged: {one_line(result)}")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _explained(self._database):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *parameters: str) -> list[str]:
        with self._lock, _explained(self._database):
            return [value for (value,) in self._connection.execute(query, parameters).fetchall()]

    def _object(self, text: str, what: str) -> Json:
        try:
            value = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise StoreError(f"{self._database}: damaged: {what} is not a JSON object: {shown(text)}")
        return value

    def _finding(self, row: str) -> Finding:
        return self._checked(Finding.from_json, self._object(row, "finding"))

    def _checked(self, read: Callable[[object], T], value: Json) -> T:
        try:
            return read(value)
        except PlainError as error:
            raise StoreError(f"{self._database}: damaged: {error}") from None


def _id(check: Callable[[str], str], id: str) -> str:
    try:
        return check(id)
    except IdError as error:
        raise StoreError(str(error)) from None


@contextmanager
def _explained(place: Path) -> Iterator[None]:
    """Turns errors of the system and of SQLite into a StoreError about `place`."""
    try:
        yield
    except OSError as error:
        where = Path(error.filename) if error.filename else place
        raise StoreError(f"{where}: {os_error_text(error)}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{place}: {one_line(_sqlite_meaning(error))}") from error
    except UnicodeDecodeError as error:  # from SQLite's message about a damaged file
        raise StoreError(f"{place}: damaged, or not a store of postcrash: {error}") from error


def os_error_text(error: OSError) -> str:
    """Describes a file error for users."""
    if error.errno in DISK_FULL:
        return "no space left on the disk; what was there before is unharmed"
    return error.strerror or str(error)


def _sqlite_meaning(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return "no space left on the disk; what was there before is unharmed"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"damaged, or not a store of postcrash: {error}"
    if code == sqlite3.SQLITE_BUSY:
        return f"in use by another process for more than {BUSY_TIMEOUT_S:.0f} s"
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_DBMOVED:
        return "it was moved or removed while it was in use; what was finished is where it is now"
    return str(error)


def _finding_row(finding: Finding) -> tuple[str, str]:
    return finding.id, json.dumps(finding.to_json())


def _cell_row(cell: Cell) -> tuple[str, ...]:
    # Builds of a kernel may share its name. The guest's digest keeps their cells apart.
    kernel = f"{cell.kernel} {cell.guest}".strip()
    return cell.target, cell.property, kernel, cell.model, json.dumps(cell.to_json())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks out other processes that change a store's files beside the database. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _move(source: Path, place: Path) -> None:
    """Moves a file atomically, even from another file system."""
    try:
        source.rename(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, place)
        source.unlink()
    _sync_folder(place.parent)


def _copy(source: Path, place: Path) -> None:
    handle, name = tempfile.mkstemp(prefix=f"{_SCRATCH}{os.getpid()}-", dir=place.parent)
    try:
        with source.open("rb") as content, os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(content, copy)
            copy.flush()
            os.fsync(copy.fileno())
        os.rename(name, place)
    except BaseException:
        os.unlink(name)
        raise


def _remove_abandoned(folder: Path) -> None:
    """Removes scratch files of processes that have ended."""
    for path in folder.glob(f"{_SCRATCH}*"):
        owner = path.name.removeprefix(_SCRATCH).partition("-")[0]
        if not (owner.isdecimal() and Path("/proc", owner).exists()):
            path.unlink(missing_ok=True)
