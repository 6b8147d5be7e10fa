"""Operations as shell commands. tests/vm/test_report.py runs them and compares the result with the simulation."""

import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.model import FORMS, Operation, Tree, parse_workload, simulate
from postcrash.reports.script.shell_operations import NoCommandError, byte_of, commands

SETUP = "mkdir D; mkdir e; creat A; append A 5000; creat B; setxattr A user.x 1; link B C; creat D/x_y; open A; "

EXPECTED = {
    "mkdir f": ["mkdir f"],
    "rmdir e": ["rmdir e"],
    "creat 'x'": [": >''\"'\"'x'\"'\"''"],
    "creat -f": [": >./-f"],
    "write A 10 20": ['xfs_io -c "pwrite -q -S 0x62 -b 20 10 20" A'],
    "append A 4096": ['xfs_io -c "pwrite -q -S 0x62 -b 4096 5000 4096" A'],
    "dwrite A 512 512": ['xfs_io -d -c "pwrite -q -S 0x62 -b 512 512 512" A'],
    "awrite A 8192 4096": ['xfs_io -d -c "pwrite -q -V 1 -A -S 0x62 -b 4096 8192 4096" A'],
    "awrite-odsync A 0 512": ['xfs_io -d -c "pwrite -q -V 1 -A -D -S 0x62 -b 512 0 512" A'],
    "write-osync A 0 1": ['xfs_io -s -c "pwrite -q -S 0x62 -b 1 0 1" A'],
    "write-odsync A 0 1": ['xfs_io -c "pwrite -q -V 1 -D -S 0x62 -b 1 0 1" A'],
    "dwrite-osync A 0 512": ['xfs_io -d -s -c "pwrite -q -S 0x62 -b 512 0 512" A'],
    "mmapwrite A 0 10": ['xfs_io -c "mmap -rw 0 10" -c "mwrite -S 0x62 0 10" A'],
    "mmapwrite A 6000 9": ['xfs_io -c "truncate 6009" -c "mmap -rw 0 6009" -c "mwrite -S 0x62 6000 9" A'],
    "truncate A 7": ['xfs_io -c "truncate 7" A'],
    "fallocate A none 0 9000": ['xfs_io -c "falloc 0 9000" A'],
    "fallocate A keep-size 0 9000": ['xfs_io -c "falloc -k 0 9000" A'],
    "fallocate A zero-range 1 2": ['xfs_io -c "fzero 1 2" A'],
    "fallocate A zero-range-keep-size 1 2": ['xfs_io -c "fzero -k 1 2" A'],
    "fallocate A punch-hole 1 2": ['xfs_io -c "fpunch 1 2" A'],
    "fallocate A collapse-range 0 4096": ['xfs_io -c "fcollapse 0 4096" A'],
    "fallocate A insert-range 4096 8192": ['xfs_io -c "finsert 4096 8192" A'],
    "reflink A 0 B 8192 4096": ['xfs_io -c "reflink A 0 8192 4096" B'],
    'rename A "-s"; reflink "-s" 0 B 0 4096': ["xfs_io -c 'reflink ./-s 0 0 4096' B"],
    "reflink @A 0 B 0 5000": ['xfs_io -c "reflink /proc/self/fd/$held_A 0 0 5000" B'],
    "reflink A 0 B 0 5000; dedupe A 0 B 0 5000": ['xfs_io -c "dedupe A 0 0 5000" B'],
    "mknod f fifo": ["mknod -m 644 f p"],
    "mknod f char": ["mknod -m 644 f c 1 3"],
    "mknod f block": ["mknod -m 644 f b 7 0"],
    "mknod f socket": ["perl -e 'exit(syscall(133, $ARGV[0], 0140644, 0) != 0)' f"],
    "tmpfile D/t": [
        "coproc perl -e '$| = 1; sysopen F, shift, 0x410002, 0644 or die $!; "
        'print "/proc/$$/fd/", fileno F, "\\n"; <STDIN>\' D',
        'read -r place <&"${COPROC[0]}"',
        'exec {held_D_2f_t}<>"$place"',
        "exec {COPROC[1]}>&-",
        "wait",
    ],
    "drop-caches": ["for _ in 1 2 3 4; do echo 3 >/proc/sys/vm/drop_caches; done"],
    "link A D/l": ["ln -T A D/l"],
    "link @A D/l": ["ln -LT /proc/self/fd/$held_A D/l"],
    'symlink "-t o" l': ["ln -sT -- '-t o' l"],
    "unlink B": ["unlink B"],
    "rename A B": ["mv -fT A B"],
    "rename B C": [":"],
    "setxattr A user.y abc": ["setfattr -n user.y -v abc A"],
    'setxattr A user.y "0x a"': ["setfattr -n user.y -v 0x30782061 A"],
    'setxattr A user.y ""': ["setfattr -n user.y A"],
    "removexattr A user.x": ["setfattr -x user.x A"],
    "fsync .": ['xfs_io -c "fsync" .'],
    "fdatasync A": ['xfs_io -c "fdatasync" A'],
    "msync A": ['xfs_io -c "mmap -rw 0 5000" -c "msync -s 0 5000" A'],
    "msync A 4100 10": ['xfs_io -c "mmap -rw 0 4110" -c "msync -s 4096 14" A'],
    "msync B": [":"],
    "open D/x_y": ["exec {held_D_2f_x_5f_y}<>D/x_y"],
    "close @A": ["exec {held_A}>&-"],
    "append @A 4096": ['xfs_io -c "pwrite -q -S 0x62 -b 4096 5000 4096" /proc/self/fd/$held_A'],
    "setxattr @A user.y abc": ["setfattr -n user.y -v abc /proc/self/fd/$held_A"],
    "sync": ["sync"],
    "syncfs": ["sync -f ."],
    "writeback A": ['xfs_io -c "sync_range -b -w -a 0 0" A'],
    "writeback A 4096 10": ['xfs_io -c "sync_range -b -w -a 4096 10" A'],
    "sleep 40": ["sleep 40"],
    "commit": ["touch .other", "xfs_io -c fsync .other"],
    "checkpoint": [
        'perl -e \'open F, "+<", ".other"; my $t = pack "Q", 0; ioctl(F, 0x4004662b, $t) or die $!\''
        " || xfs_io -x -c freeze -c thaw . || sync -f ."
    ],
}


def last_commands(text: str, fstype: str = "ext4") -> list[str]:
    workload = parse_workload((SETUP + text).replace("; ", "\n"), "mapped")
    return commands(workload.operations[-1], simulate(workload)[-2], fstype)


@pytest.mark.parametrize("text", EXPECTED)
def test_commands(text: str) -> None:
    assert last_commands(text) == EXPECTED[text]


HOSTILE = ("a$(: >run)b", "a`: >run`b", "a'; : >run; 'b", 'a"; : >run; "b', "a\n: >run\nb", "a;: >run", "-a$(: >run)")
"""Names of files that make the file `run` if the shell takes a part of them for a command."""


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_name_is_run_as_a_command(hostile: str, tmp_path: Path) -> None:
    """The shell finds no program, and makes `run` without one if a name gets out of its quotes."""
    operations = parse_workload(SETUP.replace("; ", "\n"), "named").operations
    operations += tuple(parse_workload((SETUP + text).replace("; ", "\n"), "named").operations[-1] for text in EXPECTED)
    entries = simulate(parse_workload(SETUP.replace("; ", "\n"), "named"))[-1].values()
    tree = Tree(replace(entry, path=hostile_of(entry.path, hostile)) for entry in entries)
    lines = []
    for operation in operations:
        path, to = hostile_of(operation.path, hostile), hostile_of(operation.to, hostile)
        with suppress(NoCommandError, KeyError):
            lines += commands(replace(operation, path=path, to=to), tree, "ext4")
    assert {line.split()[0] for line in lines} >= {"xfs_io", "mv", "ln", "unlink", "mkdir", "setfattr", "perl", "exec"}
    script = "\n".join([*lines, ": >ended"])
    subprocess.run(["/bin/bash"], input=script, text=True, cwd=tmp_path, env={"PATH": "/nonexistent"}, check=False)
    assert (tmp_path / "ended").exists() and not (tmp_path / "run").exists()


def hostile_of(path: str, hostile: str) -> str:
    """The path, with each name replaced by the hostile one with that name behind it. A handle stays a handle."""
    if path in ("", "."):
        return path
    is_handle, bare = path.startswith("@"), path.removeprefix("@")
    named = "/".join(f"{hostile}{part}" for part in bare.split("/"))
    return f"@{named}" if is_handle else named


def test_a_name_with_a_blank_cannot_be_shared_by_xfs_io() -> None:
    with pytest.raises(NoCommandError, match="'x y', because it has a blank"):
        last_commands('rename A "x y"; reflink "x y" 0 B 0 4096')


def test_every_word_has_commands_and_every_command_is_shell() -> None:
    words = {text.rpartition("; ")[2].split()[0] for text in [*EXPECTED, "exchange A B"]}
    assert words == set(FORMS)
    every = [
        line
        for text in [*EXPECTED, "exchange A B"]
        for fstype in ("ext4", "btrfs")
        for line in last_commands(text, fstype)
    ]
    checked = subprocess.run(["bash", "-n"], input="\n".join(every), text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_journal_of_btrfs_commits_by_its_own_call() -> None:
    (line,) = last_commands("commit", "btrfs")
    assert "0x80089418" in line


def test_a_checkpoint_is_the_call_of_the_file_system_or_a_freeze() -> None:
    assert last_commands("checkpoint", "xfs") == ["xfs_io -x -c freeze -c thaw . || sync -f ."]
    assert [last_commands("checkpoint", "btrfs")[0].split(" || ")[0]] == last_commands("commit", "btrfs")
    assert "0xf507" in last_commands("checkpoint", "f2fs")[0]


def test_bytes_name_their_write() -> None:
    sources = ["zero", "stale", *(f"write:{tag}" for tag in range(254))]
    assert len({byte_of(source) for source in sources}) == len(sources)
    assert all(0 <= byte_of(source) <= 255 for source in sources)


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(NoCommandError, match="only 254 operations"):
        commands(
            Operation("write", "A", offset=0, length=1, tag=254), simulate(parse_workload("creat A", "w"))[-1], "ext4"
        )
    with pytest.raises(NoCommandError, match="bytes are other"):
        byte_of("other")
