"""Targets are data: TOML files. Those of postcrash are in the folder `catalogue`; a user's file may be anywhere.

A file sets fields of `Target`. With `like = "NAME"` it takes the other fields from a target of the catalogue.

Targets in its folder `variants` differ from one of these in one option or feature. They are chosen by their names, and
stand in no table unless it asks for them. Those in the folder `stacks` have several disks.

Images are small, so that a recovery has little to read. They are made without discard, so that free space keeps its
garbage. UUIDs and hash seeds are fixed, so that the same mkfs makes the same image. ext4 would read inode tables ahead
before the journal is replayed over them, which is why it has `recover_options`.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic

from postcrash.model.validation import TomlError, first_objection, read_toml, shown, unknown_name
from postcrash.targets.programs import found_program, placed
from postcrash.targets.target import Target

_FOLDER = Path(__file__).resolve().parent / "catalogue"
_TABLE = ("ext3-ordered", "ext3-writeback", "ext4-original", "ext4-current", "btrfs")
SIZE_MIB_MAX = 1024
"""The size of the test disk that guests see (`MachineSettings.disk_mib`)."""

_schema = pydantic.TypeAdapter(Target)


class UnknownTargetError(LookupError):
    """No target has this name."""


class TargetFileError(ValueError):
    """A target's file cannot be read. The message shows the file, the field and the value."""


def load_target(path: Path) -> Target:
    """The target that the TOML file `path` describes. Raises TargetFileError."""
    fields = _fields(path)
    like = fields.pop("like", None)
    if like is not None:
        fields = {**_like(path, like), **fields}
    return _placed(target_of(fields, str(path)), path.parent)


def target_of(fields: object, place: str) -> Target:
    """The target with these fields. Raises TargetFileError, which says that they stand at `place`."""
    try:
        target = _schema.validate_python(fields)
    except pydantic.ValidationError as error:
        raise TargetFileError(f"{place}: {first_objection(error)}") from None
    if target.lost_disk is not None and target.lost_disk >= len(target.disks_mib):
        raise TargetFileError(f"{place}: lost_disk: there are {len(target.disks_mib)} disks, found {target.lost_disk}")
    if max(target.disks_mib) > SIZE_MIB_MAX:
        limit = f"a guest's disk has at most {SIZE_MIB_MAX} MiB"
        raise TargetFileError(f"{place}: size_mib: {limit}, found {max(target.disks_mib)}")
    return target


def _placed(target: Target, folder: Path) -> Target:
    """The target with absolute paths: those of its programs and files are paths from `folder`, where its file is.

    Guests have programs where this machine has them, so their paths must be known.
    """
    return replace(
        target,
        mkfs=placed(target.mkfs, folder),
        after_mkfs=placed(target.after_mkfs, folder),
        fsck=_found(placed(target.fsck, folder)),
        repair=_found(placed(target.repair, folder)),
        helper=_found(placed(target.helper, folder)),
        files=tuple(os.path.normpath(folder.absolute() / file) for file in target.files),
    )


def _found(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command with the path of its program, if this machine has it."""
    return tuple(found_program(word) or word if number == 0 else word for number, word in enumerate(command))


def _fields(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except TomlError as error:
        raise TargetFileError(str(error)) from None


def _like(path: Path, name: object) -> dict[str, Any]:
    known = {file.stem: file for file in _FOLDER.rglob("*.toml")}
    if not isinstance(name, str) or name not in known:
        raise TargetFileError(f"{path}: like: not a target of the catalogue: {shown(name)}")
    fields = _fields(known[name])
    return {**(_like(path, fields.pop("like")) if "like" in fields else {}), **fields}


def _catalogue() -> tuple[Target, ...]:
    targets = {path.stem: load_target(path) for path in _FOLDER.glob("*.toml")}
    return tuple(targets[name] for name in (*_TABLE, *sorted(targets.keys() - _TABLE)))


TARGETS = _catalogue()
"""The rows of HotDep'13's table in its order, then the other targets by name."""
TABLE_TARGETS = TARGETS[: len(_TABLE)]
VARIANTS = tuple(load_target(path) for path in sorted((_FOLDER / "variants").glob("*.toml")))
"""Targets with another option or feature, by name."""
STACKS = tuple(load_target(path) for path in sorted((_FOLDER / "stacks").glob("*.toml")))
"""Targets on several disks, by name."""


def target_named(name: str) -> Target:
    """The target called `name`. UnknownTargetError names the nearest ones."""
    known = {target.name: target for target in (*TARGETS, *VARIANTS, *STACKS)}
    if name not in known:
        raise UnknownTargetError(unknown_name("target", name, known))
    return known[name]
