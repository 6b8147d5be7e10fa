"""Sections of xfstests' configuration as targets: how the scratch device is made and mounted there.

Options of mkfs come from a file that others wrote, and mkfs runs on this machine. So only options that are known here
are taken, and none that names a file or a device.
"""

import getopt
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from postcrash.model.validation import first_objection
from postcrash.targets.catalogue import target_named
from postcrash.targets.target import Target
from postcrash.targets.xfstests_config import DEVICES, EXTERNAL, FSTYP, MKFS, MOUNT, ConfigSection, Setting

PREFIX = "xfstests"
_Options = list[tuple[str, str]]
_REASON_MAX = 200
_NOT_TAKEN = "is not taken: it is not plain text, or it names a file or a device"
_PLAIN = re.compile(r"[A-Za-z0-9^_,=.:+%-]+")
_PLACES = frozenset({"name", "file", "logdev", "rtdev", "device", "dev", "offset"})
"""Options within options that name a file or a device, or a place on one."""
_NOT_HERE = frozenset({"dax", "dax=always"})
"""Options of mount that need another kind of disk."""


class NotImportedError(ValueError):
    """A section cannot be a target. The text says why; `line` is where."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class _Mkfs:
    """Which options of a mkfs are taken, as getopt(3) writes them.

    like     the target of the catalogue that supplies everything else
    lists    options whose values are lists, to which the catalogue's are added
    instead  options that do away with others of the catalogue
    default  the setting with the options where MKFS_OPTIONS is not set
    """

    like: str
    short: str = ""
    long: tuple[str, ...] = ()
    lists: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
    default: str = ""


_EXT = _Mkfs("ext4-current", "b:C:E:FG:g:I:i:jJ:L:m:N:O:qr:T:U:v", lists="E", instead={"-i": "-N", "-T": "-N"})
_BTRFS_LONG = (
    *("data=", "metadata=", "mixed", "csum=", "checksum=", "nodesize=", "sectorsize=", "features="),
    *("runtime-features=", "label=", "uuid=", "nodiscard", "force", "quiet"),
)
_PROGRAMS = {
    "ext2": replace(_EXT, like="ext2"),
    "ext3": replace(_EXT, like="ext3-ordered"),
    "ext4": _EXT,
    "xfs": _Mkfs("xfs", "b:d:fi:KL:l:m:n:qr:s:", lists="bdilmnrs", default="XFS_MKFS_OPTIONS"),
    "btrfs": _Mkfs("btrfs", "A:b:d:fKL:MqR:O:m:n:s:U:", _BTRFS_LONG, default="BTRFS_MKFS_OPTIONS"),
    "f2fs": _Mkfs("f2fs", "a:C:E:e:fg:il:mo:O:qrs:St:T:w:z:U:", default="F2FS_MKFS_OPTIONS"),
    "jfs": _Mkfs("jfs", "qfL:", default="JFS_MKFS_OPTIONS"),
    **{name: _Mkfs(name) for name in ("nilfs2", "reiserfs", "vfat", "exfat", "minix", "ntfs3")},
}
_MOUNT_DEFAULTS: dict[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), (("acl", "user_xattr"), "EXT_MOUNT_OPTIONS")),
    "f2fs": (("acl", "user_xattr"), "F2FS_MOUNT_OPTIONS"),
    "xfs": ((), "XFS_MOUNT_OPTIONS"),
}
"""Where MOUNT_OPTIONS is not set: options, and the setting with more of them (common/config, _common_mount_opts)."""


@dataclass(frozen=True, slots=True)
class ImportedTarget:
    """A target with the name of the target of the catalogue that it is like."""

    target: Target
    like: str

    def to_toml(self) -> str:
        """The target's file."""
        texts = {"name": self.target.name, "like": self.like, "title": self.target.title}
        lines = [f"{name} = {_quoted(text)}" for name, text in texts.items()]
        lines.append(f"mkfs = [{', '.join(map(_quoted, self.target.mkfs))}]")
        lines += [f"options = {_quoted(self.target.options)}", f"source = {_quoted(self.target.source)}"]
        return "".join(f"{line}\n" for line in lines)


def target_of_section(section: ConfigSection, file: str) -> ImportedTarget:
    """The target of a section of the configuration `file`. Raises NotImportedError."""
    settings = section.settings
    fstype = settings.get(FSTYP, Setting("", section.line, "xfstests would look at what is on TEST_DEV"))
    _require_known(FSTYP, fstype)
    program = _PROGRAMS.get(fstype.text)
    if program is None:
        raise NotImportedError(fstype.line, f"{FSTYP}={fstype.text[:80]}: no target has this file system")
    _refuse_external(settings)
    like = target_named(program.like)
    called = f"section {section.name} of {file}" if section.name else file
    name = "-".join(filter(None, (PREFIX, section.name.lower().replace("_", "-").strip("-"))))
    try:
        target = replace(
            like,
            name=name,
            title=f"{fstype.text}, {called}",
            mkfs=_mkfs(like.mkfs, program, settings),
            options=",".join(filter(None, (like.options, *_mount_options(fstype.text, settings)))),
            source=f"xfstests, {called}",
        )
    except ValidationError as error:
        raise NotImportedError(section.line, first_objection(error)) from None
    return ImportedTarget(target, like.name)


def _quoted(text: str) -> str:
    """A string of TOML: one of JSON, for text that is printable."""
    return json.dumps(text, ensure_ascii=False)


def _require_known(name: str, setting: Setting) -> None:
    if setting.problem:
        raise NotImportedError(setting.line, f"{name}: {setting.problem}")


def _refuse_external(settings: Mapping[str, Setting]) -> None:
    external = settings.get(EXTERNAL, Setting("no", 0))
    for name in DEVICES:
        if name in settings and (external.problem or external.text == "yes"):
            raise NotImportedError(settings[name].line, f"{name}: guests have no second disk for a log or for data")


def _mkfs(base: tuple[str, ...], program: _Mkfs, settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """The command of `base` with xfstests' options, which count where both say something."""
    name = MKFS if MKFS in settings else program.default
    if name not in settings:
        return base
    given = _options(name, settings[name], program)
    return (base[0], *_merged(getopt.getopt(list(base[1:]), program.short, list(program.long))[0], given, program))


def _options(name: str, setting: Setting, program: _Mkfs) -> _Options:
    _require_known(name, setting)
    try:
        options, rest = getopt.getopt(setting.text.split(), program.short, list(program.long))
    except getopt.GetoptError as error:
        raise NotImportedError(setting.line, f"{name}: {error}"[:_REASON_MAX]) from None
    if rest:
        raise NotImportedError(setting.line, f"{name}: {rest[0]!r} is no option"[:_REASON_MAX])
    for option, value in options:
        names = {part.partition("=")[0] for part in value.split(",")}
        if not _PLAIN.fullmatch(value or "-") or names & _PLACES:
            raise NotImportedError(setting.line, f"{name}: {option} {value!r} {_NOT_TAKEN}"[:_REASON_MAX])
    return options


def _merged(base: _Options, given: _Options, program: _Mkfs) -> Iterator[str]:
    values: dict[str, list[str]] = {}
    for option, value in given:
        values.setdefault(option, []).append(value)
    gone = {program.instead[option] for option in values.keys() & program.instead.keys()}
    if "^has_journal" in ",".join(values.get("-O", ())).split(","):
        gone.add("-J")  # mke2fs would make a journal all the same
    for option, value in base:
        if option[1:] in program.lists or option not in values.keys() | gone:
            values.setdefault(option, []).append(value)
    for option, each in values.items():
        for value in [",".join(each)] if option[1:] in program.lists else each:
            yield from [f"{option}={value}"] if value and option.startswith("--") else filter(None, (option, value))


def _mount_options(fstype: str, settings: Mapping[str, Setting]) -> Iterator[str]:
    always, name = _MOUNT_DEFAULTS.get(fstype, ((), ""))
    if MOUNT in settings:
        always, name = (), MOUNT
    yield from always
    if name in settings:
        yield from _mounted_with(name, settings[name])


def _mounted_with(name: str, setting: Setting) -> Iterator[str]:
    _require_known(name, setting)
    try:
        options, rest = getopt.getopt(setting.text.split(), "o:")
    except getopt.GetoptError as error:
        raise NotImportedError(setting.line, f"{name}: {error}"[:_REASON_MAX]) from None
    if rest:
        raise NotImportedError(setting.line, f"{name}: {rest[0]!r} is no option"[:_REASON_MAX])
    for option in filter(None, (option for _, value in options for option in value.split(","))):
        if not _PLAIN.fullmatch(option) or option.partition("=")[0] in _PLACES:
            raise NotImportedError(setting.line, f"{name}: {option!r} {_NOT_TAKEN}"[:_REASON_MAX])
        if option in _NOT_HERE:
            raise NotImportedError(setting.line, f"{name}: {option}: the guest's disk is no memory")
        yield option
