"""LevelDB: a store with one pair (`set-up`), more puts (`run`), its recovery (`recover`), and what must be there
after a crash (`check`).

Workloads are `puts`, `switch` (of the log, by large values) and `create` (nothing is set up), as in leveldb-driver.cc.

LevelDB promises that a put with `sync` is durable when it has returned. Other puts may be lost, the last ones first: no
put is there without all that came before it.
"""

import os
import sys
from contextlib import closing

import plyvel

PUTS = 6
SMALL, LARGE = 100, 24 << 10
"""Bytes of a value; the buffer of 64 KiB is full after three large ones."""


def value(number: int, length: int) -> bytes:
    """Of the put with this number."""
    return (b"%d " % number * length)[:length]


def set_up(workload: str) -> None:
    if workload != "create":
        with closing(plyvel.DB("store", create_if_missing=True)) as store:
            store.put(b"0", value(0, SMALL), sync=True)


def run(workload: str, sync: str) -> None:
    creates = workload == "create"
    with closing(plyvel.DB("store", create_if_missing=creates, write_buffer_size=64 << 10)) as store:
        for number in range(0 if creates else 1, PUTS + 1):
            is_synced = sync == "every" or (sync == "second" and number % 2 == 0)
            length = LARGE if workload == "switch" else SMALL
            store.put(b"%d" % number, value(number, length), sync=is_synced)
            if is_synced:
                print(number, flush=True)


def recover(workload: str) -> None:
    plyvel.DB("store", create_if_missing=workload == "create").close()


def check(workload: str) -> str:
    """What is wrong, or nothing."""
    with open(os.environ["POSTCRASH_ACKNOWLEDGED"]) as file:
        acknowledged = [int(line) for line in file]
    try:
        may_be_new = workload == "create" and not acknowledged
        with closing(plyvel.DB("store", create_if_missing=may_be_new)) as store:
            found = {int(key): content for key, content in store.iterator(verify_checksums=True)}
            store.put(b"100", b"used on", sync=True)
        with closing(plyvel.DB("store")) as store:
            used_on = store.get(b"100")
    except plyvel.Error as error:
        return f"the store does not open: {error.args[0].decode()}"
    if used_on != b"used on":
        return "the store cannot be used on"
    if any(content not in (value(number, SMALL), value(number, LARGE)) for number, content in found.items()):
        return "a pair has the value of another one"
    if sorted(found) != list(range(len(found))):
        return "a put is there without an earlier one"
    if max(acknowledged, default=-1 if may_be_new else 0) >= len(found):
        return "a synced put is lost"
    return ""


if __name__ == "__main__":
    if sys.argv[1] == "set-up":
        set_up(*sys.argv[2:])
    elif sys.argv[1] == "run":
        run(*sys.argv[2:])
    elif sys.argv[1] == "recover":
        recover(*sys.argv[2:])
    else:
        sys.exit(check(*sys.argv[2:]) or 0)
