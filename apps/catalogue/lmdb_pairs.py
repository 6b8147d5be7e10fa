"""LMDB: an environment with one transaction (`set-up`), more (`run`), its recovery (`recover`), and what must be there
after a crash (`check`).

Its documentation promises with `sync = full` (the default) that a commit is durable; with MDB_NOMETASYNC that the last
one may be undone; with MDB_NOSYNC (`none`) nothing on a file system that does not keep the order of writes.
"""

import os
import sys

import lmdb

TRANSACTIONS = 4
FLAGS = {"full": {}, "no-meta": {"metasync": False}, "none": {"sync": False}}


def opened(sync: str) -> lmdb.Environment:
    return lmdb.open("store", map_size=1 << 20, **FLAGS[sync])


def put(environment: lmdb.Environment, number: int) -> None:
    with environment.begin(write=True) as transaction:
        for side in (b"a", b"b"):
            transaction.put(b"%d%s" % (number, side), b"%d " % number * 500)


def check(sync: str) -> str:
    """What is wrong, or nothing."""
    with open(os.environ["POSTCRASH_ACKNOWLEDGED"]) as file:
        last = max(map(int, file), default=0)
    try:
        environment = opened("full")
        with environment.begin() as transaction:
            found = {bytes(key): bytes(content) for key, content in transaction.cursor()}
        put(environment, 100)
        environment.close()
    except lmdb.Error as error:
        return f"the environment does not open: {type(error).__name__}"
    numbers = sorted({int(key[:-1]) for key in found})
    if len(found) != 2 * len(numbers):
        return "a transaction is there in part"
    if any(content != b"%d " % int(key[:-1]) * 500 for key, content in found.items()):
        return "a pair has a value that it never had"
    if numbers != list(range(len(numbers))):
        return "a transaction is there without an earlier one"
    promised = {"full": last, "no-meta": last - 1, "none": 0}[sync]
    return "a committed transaction is lost" if promised >= len(numbers) else ""


if __name__ == "__main__":
    if sys.argv[1] == "set-up":
        with opened("full") as made:
            put(made, 0)
    elif sys.argv[1] == "run":
        with opened(sys.argv[2]) as store:
            for number in range(1, TRANSACTIONS + 1):
                put(store, number)
                print(number, flush=True)
    elif sys.argv[1] == "recover":
        with opened(sys.argv[2]) as store, store.begin() as transaction:
            transaction.stat()
    else:
        sys.exit(check(sys.argv[2]) or 0)
