"""Finds the recipients of a mail about a file system with scripts/get_maintainer.pl of a kernel's source."""

import subprocess
from pathlib import Path

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.model.text import one_line

_SCRIPT = Path("scripts/get_maintainer.pl")
_OPTIONS = ("--no-rolestats", "--nogit", "--nogit-fallback", "-f")
_FOLDERS = {"ext3": "ext4", "vfat": "fat", "msdos": "fat"}
"""Folders of fs/ that have another name than the type of the file system."""
_TIMEOUT_S = 60


def recipients(tree: Path, fstype: str) -> tuple[str, ...]:
    """Returns the mail addresses of maintainers and lists of a file system, from the kernel's source in `tree`.

    Raises UsageError if `tree` is no such source, and InfrastructureError if the script fails.
    """
    folder = Path("fs") / _FOLDERS.get(fstype, fstype)
    for needed in (_SCRIPT, folder):
        if not (tree / needed).exists():
            raise UsageError(f"--tree {tree}: there is no {needed}, so this is no kernel's source that has {fstype}")
    command = ["perl", str(_SCRIPT), *_OPTIONS, str(folder)]
    try:
        ran = subprocess.run(
            command, cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InfrastructureError(f"--tree {tree}: {_SCRIPT} does not answer: {error}") from error
    lines = [one_line(line) for line in ran.stdout.decode(errors="backslashreplace").splitlines()]
    if ran.returncode or not any(lines):
        errors = one_line(ran.stderr.decode(errors="backslashreplace"))[-200:]
        raise InfrastructureError(f"--tree {tree}: {_SCRIPT} -f {folder} fails: {errors or 'it names nobody'}")
    return tuple(filter(None, lines))
