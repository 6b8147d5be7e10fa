"""Configurations of xfstests that are made to take long: each is refused, or read within bounds.

Time grew with the square of a word's length: 512 KiB of brackets took 6 s of a CPU, and 1 MiB took 21 s.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from postcrash.targets.xfstests import NotImportedError, target_of_section
from postcrash.targets.xfstests_config import (
    FILE_BYTES_MAX,
    LINE_CHARACTERS_MAX,
    LINES_MAX,
    SECTIONS_MAX,
    VALUE_CHARACTERS_MAX,
    ConfigError,
    ConfigSection,
    read_sections,
)

CPU_SECONDS = 10.0
"""As for each input of the fuzzer. On a machine that is free the slowest of these takes about 3 s."""


def sections_of(folder: Path, text: str) -> list[ConfigSection]:
    file = folder / "local.config"
    file.write_text(text, encoding="utf-8")
    return read_sections(file)


def headers(count: int) -> str:
    return "".join(f"[s{number}]\n" for number in range(count))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{" * (FILE_BYTES_MAX // 2), ":1: more than 10000 characters in a line"),
        ("FSTYP=xfs\n" + "#" * (LINE_CHARACTERS_MAX + 1), ":2: more than 10000 characters in a line"),
        ("[a]\nMKFS_OPTIONS=" + "é" * LINE_CHARACTERS_MAX, ":2: more than 10000 characters in a line"),
        ("\n" * LINES_MAX, ": more than 20000 lines"),
        (headers(SECTIONS_MAX + 1), ":201: more than 200 sections"),
        ("é" * FILE_BYTES_MAX, ": more than 1048576 bytes"),
        ("#" + "é" * FILE_BYTES_MAX, ": more than 1048576 bytes"),
    ],
    ids=["brackets", "comment", "value", "lines", "sections", "bytes", "bytes that end within a letter"],
)
def test_what_is_too_much_is_one_clear_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        sections_of(tmp_path, text)
    assert str(caught.value) == f"{tmp_path / 'local.config'}{said}"


def test_as_much_as_may_be_is_read(tmp_path: Path) -> None:
    assert len(sections_of(tmp_path, headers(SECTIONS_MAX))) == SECTIONS_MAX
    lines = ["FSTYP=xfs", "#" * LINE_CHARACTERS_MAX, *[""] * (LINES_MAX - 2)]
    (section,) = sections_of(tmp_path, "\n".join(lines))
    assert target_of_section(section, "local.config").target.fstype == "xfs"


@pytest.mark.parametrize("form", ["[a]\nFSTYP=ext4\nMKFS_OPTIONS=-L {}\n", "FSTYP=ext4\nMKFS_OPTIONS='-L {}'\n"])
def test_a_long_value_is_not_taken(tmp_path: Path, form: str) -> None:
    longest = "a" * (VALUE_CHARACTERS_MAX - len("-L "))
    (section,) = sections_of(tmp_path, form.format(longest))
    assert longest in target_of_section(section, "local.config").target.mkfs
    (section,) = sections_of(tmp_path, form.format(longest + "a"))
    with pytest.raises(NotImportedError, match=r"^MKFS_OPTIONS: it has more than 1000 characters$"):
        target_of_section(section, "local.config")


def long_words() -> str:
    return ("{" * (LINE_CHARACTERS_MAX - 1) + "\n") * (FILE_BYTES_MAX // LINE_CHARACTERS_MAX)


def many_blocks() -> str:
    return ("{ " * 25 + "\n") * (LINES_MAX - 1)


def long_options() -> str:
    mkfs, mount = "-" + "v" * (VALUE_CHARACTERS_MAX - 1), "-oa " * (VALUE_CHARACTERS_MAX // 4 - 1)
    return f"[s]\nFSTYP=ext4\nMKFS_OPTIONS={mkfs}\nMOUNT_OPTIONS={mount}\n{headers(SECTIONS_MAX - 1)}"


@pytest.mark.slow
@pytest.mark.parametrize("make", [long_words, many_blocks, long_options])
def test_the_worst_that_is_read_takes_seconds(tmp_path: Path, make: Callable[[], str]) -> None:
    begun = time.process_time()
    sections = sections_of(tmp_path, make())
    for section in sections:
        with pytest.raises(NotImportedError):
            target_of_section(section, "local.config")
    assert sections and time.process_time() - begun < CPU_SECONDS


def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than 1048576 bytes"):
        read_sections(Path("/dev/zero"))
