"""Configuration files of xfstests, read by rule: they are shell fragments, and none of their text is ever run.

A file has sections (xfstests, README.config-sections) or it is a list of shell assignments (README). What a value is
after a shell has filled it in, or a condition has chosen it, is not known here. Such a setting has a `problem`.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FSTYP, MKFS, MOUNT, EXTERNAL = "FSTYP", "MKFS_OPTIONS", "MOUNT_OPTIONS", "USE_EXTERNAL"
DEVICES = ("SCRATCH_LOGDEV", "SCRATCH_RTDEV")
_OF_SECTION = (MKFS, MOUNT, EXTERNAL)
_DEFAULTS = (
    *("EXT_MOUNT_OPTIONS", "XFS_MOUNT_OPTIONS", "F2FS_MOUNT_OPTIONS"),
    *("XFS_MKFS_OPTIONS", "BTRFS_MKFS_OPTIONS", "F2FS_MKFS_OPTIONS", "JFS_MKFS_OPTIONS"),
)
NAMES = (FSTYP, *_OF_SECTION, *DEVICES, *_DEFAULTS)
"""The settings that say how xfstests makes and mounts the scratch device."""
FILE_BYTES_MAX = 1 << 20
LINES_MAX = 20_000
LINE_CHARACTERS_MAX = 10_000
"""The time to split a line into words as a shell does grows with the square of its longest word."""
SECTIONS_MAX = 200
"""Each section has the settings of those before it, and can be a target with a file of its own."""
VALUE_CHARACTERS_MAX = 1_000
_HEADER = re.compile(r"\[([^\]]*)\]")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SET = re.compile(rf"\b({'|'.join(NAMES)}):?=")
_BLOCK = re.compile(r"(?<![\w-])(?:(if|case|for|while|until|select|\{)|(fi|esac|done|\}))(?![\w-])")
_BY_SHELL = re.compile(r"[$`\\]")


class ConfigError(ValueError):
    """A file is no configuration of xfstests; the text shows the file and the place."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value with its line. If there is a `problem`, the value is not known."""

    text: str
    line: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """A section with the settings that hold in it, also those carried over from sections before it.

    A file without sections is one section without a name.
    """

    name: str
    line: int
    settings: Mapping[str, Setting]


def read_sections(path: Path) -> list[ConfigSection]:
    """The sections of a configuration file, in its order. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    lines = list(enumerate(_lines(content, path), start=1))
    if not any(line.startswith("[") for _, line in lines):
        return [ConfigSection("", 1, dict(_of_shell(lines)))]
    return list(_carried(_split(lines, path)))


def _lines(content: bytes, path: Path) -> list[str]:
    """The lines of a file with this content, which is bounded."""
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: more than {FILE_BYTES_MAX} bytes")
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        number = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{number}: not UTF-8: byte {content[error.start]:#04x}") from None
    if len(lines) > LINES_MAX:
        raise ConfigError(f"{path}: more than {LINES_MAX} lines")
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_CHARACTERS_MAX:
            raise ConfigError(f"{path}:{number}: more than {LINE_CHARACTERS_MAX} characters in a line")
    return lines


_Given = tuple[str, int, dict[str, Setting]]
"""A section's name and line, and the settings that stand in it."""


def _split(lines: Iterable[tuple[int, str]], path: Path) -> list[_Given]:
    found: list[_Given] = []
    for number, line in lines:
        header = _HEADER.match(line)
        if header is not None and not _NAME.fullmatch(header[1]):
            raise ConfigError(
                f"{path}:{number}: expected a section's name of letters, digits, _ and -, found {line[:80]!r}"
            )
        if header is not None and len(found) == SECTIONS_MAX:
            raise ConfigError(f"{path}:{number}: more than {SECTIONS_MAX} sections")
        if header is not None:
            found.append((header[1], number, {}))
        elif found:
            found[-1][2].update(_of_section(number, line))
    return found


def _of_section(number: int, line: str) -> Iterator[tuple[str, Setting]]:
    """The setting in a line of a section, as xfstests' parse_config_section reads it."""
    name, is_set, value = line.partition("#")[0].partition("=")
    name, value = name.strip(), value.strip()
    if not is_set or name not in NAMES:
        return
    bare = value.removeprefix('"').removeprefix("'").removesuffix('"').removesuffix("'")
    problem = "quotes stand inside it" if '"' in bare or "'" in bare else _problem(bare)
    yield name, Setting(bare.strip(), number, problem)


def _problem(text: str) -> str:
    """Why a value is not what is written, or why it is not taken; empty if it is."""
    if len(text) > VALUE_CHARACTERS_MAX:
        return f"it has more than {VALUE_CHARACTERS_MAX} characters"
    if found := _BY_SHELL.search(text):
        return f"a shell would have to fill in {found[0]!r}"
    return "" if text.isprintable() else "it is not printable"


def _carried(sections: Iterable[_Given]) -> Iterator[ConfigSection]:
    """Settings hold in later sections too. If FSTYP changes, those of mkfs and mount begin anew (get_next_config)."""
    settings: dict[str, Setting] = {}
    for name, line, given in sections:
        given = {key: setting for key, setting in given.items() if setting.text or setting.problem}
        before = settings
        settings = {**before, **given}
        if FSTYP in before and before[FSTYP].text != settings[FSTYP].text:
            gone = {*_OF_SECTION, *(DEVICES if EXTERNAL not in given else ())} - given.keys()
            settings = {key: setting for key, setting in settings.items() if key not in gone}
        yield ConfigSection(name, line, settings)


def _of_shell(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, Setting]]:
    """The settings of a file without sections. Of one that stands in a block, nobody knows whether it holds."""
    depth, is_quoted = 0, False
    for number, line in lines:
        words = _words(line)
        is_quoted ^= words is None
        assigned = [_ASSIGNMENT.fullmatch(word) for word in words or [line]]
        if words is not None and depth == 0 and not is_quoted and all(assigned):
            for match in filter(None, assigned):
                if match[1] in NAMES:
                    yield match[1], Setting(match[2].strip(), number, _problem(match[2]))
            continue
        code = " ".join(words or [line])
        for match in _SET.finditer(code):
            yield match[1], Setting("", number, "only a shell can tell whether and how it is set")
        for block in _BLOCK.finditer(code):
            depth = max(0, depth + (1 if block[1] else -1))


def _words(line: str) -> list[str] | None:
    """The words of a line of shell, without `export`. None if a quote begins or ends in it."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return None
    return words[1:] if words[:1] == ["export"] else words
