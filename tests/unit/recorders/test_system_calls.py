"""The table of system calls is what all tracers go by."""

import re

from postcrash.model import FORMS
from postcrash.recorders.strace import contents, descriptors, names
from postcrash.recorders.strace.importer import HANDLERS, HARMLESS
from postcrash.recorders.system_calls import DIRECTORY_CALLS, FLUSHES, SYSTEM_CALLS, WRITES

NOT_IMPORTED = {
    *("mknod", "mknodat", "chmod", "fchmod", "fchmodat", "bind"),
    *("io_submit", "io_getevents", "io_uring_enter"),
}
"""Calls with an effect that no workload can express. The importer reports them where they concern the folder."""
IMPORTED_ALTHOUGH_HARMLESS = {
    *("read", "readv", "lseek", "dup", "dup2", "dup3", "fcntl", "execve", "chdir", "fchdir"),
    *("mprotect", "munmap", "mremap"),
}
"""They change nothing on the disk, but what later calls mean."""


def test_the_importer_handles_every_call_with_an_effect() -> None:
    effective = {name for name, call in SYSTEM_CALLS.items() if call.effect != "harmless"}
    assert effective - set(HANDLERS) == NOT_IMPORTED
    assert set(HANDLERS) & (set(SYSTEM_CALLS) - effective) == IMPORTED_ALTHOUGH_HARMLESS
    assert set(HANDLERS) - set(SYSTEM_CALLS) == {"close_range", "execveat"}


def test_what_the_importer_skips_has_no_effect() -> None:
    skipped = {name for name in SYSTEM_CALLS if HARMLESS.fullmatch(name)}
    assert skipped and {SYSTEM_CALLS[name].effect for name in skipped} == {"harmless"}


def test_the_importer_sorts_calls_as_the_table_does() -> None:
    effects = {
        contents: {"write", "resize", "truncate", "write-back", "flush", "flush-all", "harmless"},
        names: {"names", "set-attribute", "other"},
        descriptors: {"open", "names", "map", "flush-memory", "harmless"},
    }
    for module, expected in effects.items():
        assert {SYSTEM_CALLS[name].effect for name in module.HANDLERS if name in SYSTEM_CALLS} == expected


def test_flushes_of_workloads_are_flushes() -> None:
    assert set(FLUSHES) == {"fsync", "fdatasync", "sync", "syncfs", "msync"}
    assert set(FLUSHES) <= set(FORMS)


def test_no_call_is_both_a_write_and_a_change_of_names() -> None:
    assert {"write", "pwritev2", "splice"} <= set(WRITES) and not set(WRITES) & set(DIRECTORY_CALLS)


def test_paths_come_behind_the_descriptors_of_their_folders() -> None:
    for call in SYSTEM_CALLS.values():
        assert all(folder is None or folder == path - 1 for folder, path in call.paths), call
        assert bool(re.search("at2?$", call.name)) or all(folder is None for folder, _ in call.paths), call
