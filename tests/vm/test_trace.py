"""The workload made from a program's trace goes through `check` without changes."""

import json
import sys
from pathlib import Path

from .command import postcrash

SQLITE = """
import sqlite3
connection = sqlite3.connect('data/my.db')
connection.execute('create table t (x)')
connection.execute('insert into t values (1)')
connection.commit()
"""


def test_sqlite_s_calls_are_checked(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    traced = postcrash(tmp_path, "trace", "--root", "data", "-o", "x.ops", "--", sys.executable, "-ESsc", SQLITE)
    assert (traced.returncode, traced.stderr) == (0, "")
    checked = postcrash(tmp_path, "check", "x.ops", "--target", "ext4-current", "--judge", "durability", "--json", "-")
    assert checked.returncode == 0, checked.stderr
    report = json.loads(checked.stdout)
    assert report["states"] == report["states_total"]
    assert int(report["states"]) > report["recoveries"] + report["remembered"] > len(report["intervals"]) > 10
    assert report["judges"]["durability"]["relevant"]


REPLACED = """
import os
old, new = (os.open(f'data/{name}', os.O_CREAT | os.O_RDWR) for name in 'fg')
os.write(old, b'x' * 5000)
os.rename('data/g', 'data/f')
os.fsync(new)
os.pwrite(old, b'z' * 4096, 0)
os.fsync(old)
"""


def test_writes_to_a_file_that_another_has_replaced_are_checked(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    traced = postcrash(tmp_path, "trace", "--root", "data", "-o", "x.ops", "--", sys.executable, "-ESsc", REPLACED)
    assert (traced.returncode, traced.stderr) == (0, "")
    operations = [line.split("  #")[0] for line in (tmp_path / "x.ops").read_text().splitlines() if line[0] != "#"]
    assert operations[3:] == ["open f", "rename g f", "fsync f", "write @f 0 4096", "fsync @f", "close @f"]
    checked = postcrash(tmp_path, "check", "x.ops", "--target", "ext4-current", "--judge", "durability")
    assert checked.returncode == 0, checked.stderr
