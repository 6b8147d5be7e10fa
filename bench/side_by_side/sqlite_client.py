"""`sqlite_client.py DATABASE SECONDS` enters orders and prints how many a minute."""

import random
import sqlite3
import sys
import time

_ITEMS = 10_000
_LINES = 10


def enter(database: sqlite3.Connection, choice: random.Random) -> None:
    """One order with its lines, in one transaction."""
    district, first = choice.randrange(10), choice.randrange(_ITEMS - _LINES)
    database.execute("BEGIN IMMEDIATE")
    changed = "UPDATE district SET next_order = next_order + 1 WHERE id = ? RETURNING next_order"
    ((number,),) = database.execute(changed, (district,)).fetchall()
    database.execute("INSERT INTO orders VALUES (?, ?, ?)", (district, number, time.time()))
    for line in range(_LINES):
        database.execute("UPDATE stock SET quantity = quantity - 5 WHERE item = ?", (first + line,))
        database.execute("INSERT INTO line VALUES (?, ?, ?, ?, 5)", (district, number, line, first + line))
    database.execute("COMMIT")


def main(path: str, seconds: float) -> None:
    """Enter orders for `seconds` and print how many a minute that makes."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous=FULL")
    choice, entered, started = random.Random(1), 0, time.monotonic()
    while time.monotonic() < started + seconds:
        enter(database, choice)
        entered += 1
    database.close()
    print(60 * entered / (time.monotonic() - started))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
