"""What decides the content of a base image, where that can be known."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.targets import TARGETS, Target, recipe_of, target_named
from postcrash.targets.programs import always_find_out, file_digest, found_program

MKE2FS = target_named("ext4-current").mkfs


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made_by(*mkfs: str) -> Target:
    return replace(target_named("ext4-current"), mkfs=mkfs)


def digest(*more: str) -> str | None:
    """That of ext4's recipe, with more arguments for mke2fs."""
    return recipe_of(made_by(*MKE2FS, *more)).digest


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_it_is_known_for_the_whole_catalogue(target: Target) -> None:
    """So that images are not made again each time."""
    if found_program(target.mkfs[0]) is None:
        pytest.skip(f"{target.mkfs[0]} is not installed")
    assert recipe_of(target).digest is not None
    assert recipe_of(target).digest == recipe_of(target).digest


@pytest.mark.parametrize(
    "words", [("file",), ("-l", "file"), ("-lfile",), ("--blocks=file",), ("-J", "size=4,log=file"), ("a=b=file",)]
)
def test_a_file_that_an_argument_names_counts_by_its_content(words: tuple[str, ...]) -> None:
    without = digest(*words)
    Path("file").write_text("one")
    one = digest(*words)
    Path("file").write_text("two")
    assert len({without, one, digest(*words)}) == 3


def test_what_an_argument_names_besides_files_is_not_known() -> None:
    Path("folder").mkdir()
    assert digest("-d", "folder") is None
    assert digest("-J", "device=/dev/null") is None


@pytest.mark.parametrize(
    "after", [("-w", "-R", "write file seed"), ("-w", "-f", "file"), ("-w", "-R", "rdump / ."), ("-z", "file")]
)
def test_what_debugfs_reads_by_a_request_is_not_known(after: tuple[str, ...]) -> None:
    target = target_named("ext4-current")
    assert recipe_of(replace(target, after_mkfs=("/sbin/debugfs", *after))).digest is None
    known = ("/sbin/debugfs", "-w", "-R", "set_super_value volume_name a")
    assert recipe_of(replace(target, after_mkfs=known)).digest is not None


def test_what_a_prototype_names_is_not_known() -> None:
    target = target_named("xfs")
    assert recipe_of(replace(target, mkfs=(*target.mkfs, "-p", "proto"))).digest is None


def test_a_folder_behind_joined_options_is_not_known() -> None:
    Path("folder").mkdir()
    assert digest("-Fdfolder") is None


def test_a_variable_of_mke2fs_counts_and_the_file_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = digest()
    Path("mke2fs.conf").write_text("[defaults]\n")
    monkeypatch.setenv("MKE2FS_CONFIG", str(Path("mke2fs.conf").absolute()))
    one = digest()
    Path("mke2fs.conf").write_text("[defaults]\nblocksize = 1024\n")
    assert len({usual, one, digest()}) == 3
    assert recipe_of(made_by(*MKE2FS)).environment["MKE2FS_CONFIG"] == os.environ["MKE2FS_CONFIG"]


def test_a_variable_that_does_not_count_is_kept_from_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = digest()
    monkeypatch.setenv("ANYTHING", "1")
    assert digest() == usual
    assert "ANYTHING" not in recipe_of(made_by(*MKE2FS)).environment


@pytest.mark.parametrize("suffix", ["mkfs.ext4", "mke2fs", "libext2fs.so.2", "libc.so.6", "mke2fs.conf"])
def test_the_program_its_libraries_and_its_configuration_count(suffix: str) -> None:
    def with_another(question: str, files: tuple[Path, ...], find_out: object) -> str:
        """One of the files has another content."""
        (file, *_) = files
        if question != "sha256":
            return always_find_out(question, files, find_out)  # type: ignore[arg-type]
        changed.extend([file] * file.name.endswith(suffix))
        return file_digest(file) + "another" * file.name.endswith(suffix)

    changed: list[Path] = []
    other = recipe_of(made_by(*MKE2FS), with_another).digest
    assert (other != digest()) == bool(changed)
    assert changed or suffix == "mke2fs", "Debian's mkfs.ext4 is a link to it"


@pytest.mark.parametrize("place", ["mkfs.ext4", "mkfs.mine"])
def test_a_program_that_debian_did_not_install_is_not_known(place: str) -> None:
    program = found_program("mkfs.ext4")
    assert program is not None
    Path(place).write_bytes(Path(program).read_bytes())
    Path(place).chmod(0o755)
    assert recipe_of(made_by(str(Path(place).absolute()))).digest is None
