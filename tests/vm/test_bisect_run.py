"""`git bisect run postcrash bisect-run` on real kernels: it comes to the commit that planted the bug."""

import shlex
import subprocess
from pathlib import Path

from postcrash.harness.guests.kernels.kernel import find_kernel

from .command import COMMAND
from .mutant_kernel import RETURN_SUCCESS, mutant


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_comes_to_the_commit_that_planted_the_bug(tmp_path: Path) -> None:
    """Its fsync does nothing. One commit before it does not build, and one after it does not boot."""
    stock, planted = find_kernel().path, mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS).path
    dead = mutant(tmp_path, "ext4_init_fs", bytes.fromhex("0f0b")).path
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "-q")
    (source / "own.ops").write_text("creat a\nappend a 100\nfsync a\n")
    (source / ".gitignore").write_text("linux\n.postcrash\n")
    builds = [stock, stock, Path("absent"), stock, planted, dead, planted, planted]
    commits = []
    for number, kernel in enumerate(builds):
        (source / "built-from").write_text(f"{kernel}\n{number}\n")
        git(source, "add", "-A")
        git(source, "commit", "-q", "-m", f"number {number}")
        commits.append(git(source, "rev-parse", "HEAD").strip())
    git(source, "bisect", "start", commits[-1], commits[0])
    build = shlex.quote('cp "$(head -1 built-from)" linux')
    check = "check own.ops --target ext4-current --kernel ./linux --expect practice"
    run = git(source, "bisect", "run", "sh", "-c", f"{shlex.join(COMMAND)} bisect-run --build {build} -- {check}")
    assert f"{commits[4]} is the first bad commit" in run
