"""SQLite with one client that enters orders."""

import shutil
import sqlite3
from pathlib import Path

from side_by_side.site import PYTHON, Site
from side_by_side.workload import Figures

PER_MINUTE = "SQLite with 1 client, orders a minute"
_ITEMS = 10_000
_CLIENT = Path(__file__).with_name("sqlite_client.py")
_TABLES = """
CREATE TABLE district (id INTEGER PRIMARY KEY, next_order INTEGER);
CREATE TABLE stock (item INTEGER PRIMARY KEY, quantity INTEGER, data TEXT);
CREATE TABLE orders (district INTEGER, number INTEGER, entered REAL, PRIMARY KEY (district, number)) WITHOUT ROWID;
CREATE TABLE line (district INTEGER, number INTEGER, line INTEGER, item INTEGER, quantity INTEGER,
    PRIMARY KEY (district, number, line)) WITHOUT ROWID;
"""


class SQLite:
    """Orders a minute with `synchronous=FULL` and a rollback journal, measured for some seconds."""

    name = "sqlite"

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds

    def set_up(self, folder: Path) -> None:
        """The database and the client."""
        shutil.copy(_CLIENT, folder)
        with sqlite3.connect(folder / "shop.db") as database:
            database.executescript(_TABLES)
            database.executemany("INSERT INTO district VALUES (?, 1)", [(number,) for number in range(10)])
            database.executemany("INSERT INTO stock VALUES (?, 50, ?)", [(item, "s" * 250) for item in range(_ITEMS)])
        database.close()

    def measure(self, site: Site) -> Figures:
        """Run the client."""
        run = site.run(PYTHON, _CLIENT.name, "shop.db", str(self._seconds))
        return {PER_MINUTE: float(run.output)}
