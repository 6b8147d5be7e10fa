"""To whom a mail goes, by the script of a kernel's source."""

from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.findings.recipients import recipients


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source with fs/ext4 and fs/fat, whose script names one list and the last of its arguments."""
    for folder in ("scripts", "fs/ext4", "fs/fat"):
        (tmp_path / folder).mkdir(parents=True)
    asks(tmp_path, 'print "Jane Doe <jane\\@example.org>\\n\\n$ARGV[-1]\\@example.org\\n"')
    return tmp_path


def asks(tree: Path, script: str) -> None:
    (tree / "scripts/get_maintainer.pl").write_text(f"{script};\n")


@pytest.mark.parametrize(("fstype", "folder"), [("ext4", "ext4"), ("ext3", "ext4"), ("vfat", "fat")])
def test_they_are_those_of_the_file_system_s_folder(tree: Path, fstype: str, folder: str) -> None:
    assert recipients(tree, fstype) == ("Jane Doe <jane@example.org>", f"fs/{folder}@example.org")


def test_what_is_no_source_of_a_kernel_with_this_file_system_is_said(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--tree .*: there is no fs/btrfs, so this is no kernel's source"):
        recipients(tree, "btrfs")
    with pytest.raises(UsageError, match=r"there is no scripts/get_maintainer\.pl"):
        recipients(tmp_path / "fs", "ext4")


@pytest.mark.parametrize(
    ("script", "said"), [('die "no MAINTAINERS\\n"', "fails: no MAINTAINERS"), ("exit 0", "fails: it names nobody")]
)
def test_a_script_that_names_nobody_is_an_error(tree: Path, script: str, said: str) -> None:
    asks(tree, script)
    with pytest.raises(InfrastructureError, match=said):
        recipients(tree, "ext4")
