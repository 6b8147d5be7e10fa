"""The client of the SQLite measurement enters whole orders."""

import random
import sqlite3
from pathlib import Path

from side_by_side.sqlite import SQLite
from side_by_side.sqlite_client import enter


def test_an_order_has_its_lines_and_its_number(tmp_path: Path) -> None:
    SQLite(1).set_up(tmp_path)
    database = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    choice = random.Random(7)
    for _ in range(20):
        enter(database, choice)
    assert database.execute("SELECT count(*) FROM orders").fetchone() == (20,)
    assert database.execute("SELECT count(*) FROM line NATURAL JOIN orders").fetchone() == (200,)
    assert database.execute("SELECT sum(50 - quantity) FROM stock").fetchone() == (1000,)
    assert database.execute("SELECT sum(next_order - 1) FROM district").fetchone() == (20,)
    database.close()
