"""Base images: a fresh file system whose free space is full of recognisable garbage.

The disk is filled with garbage first. Then mkfs runs without discard. So a block that a file system hands out without
writing it shows `stale…` words instead of zeros, which would look correct.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from postcrash.model.pattern import stale
from postcrash.model.units import BLOCK_BYTES
from postcrash.targets.programs import Ask, always_find_out, file_digest, found_program
from postcrash.targets.recipe import NoProgramError, Recipe, recipe_of
from postcrash.targets.target import Target, on_disks

_MKFS_TIMEOUT_S = 120
_CHUNK_BLOCKS = 4096
_ID_DIGITS = 16
_ZEROS = bytes(1 << 20)


class BaseImageError(RuntimeError):
    """A base image cannot be made. The message says what is missing or what mkfs printed."""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """An image file that is never changed, and its id (see `image_id`)."""

    path: Path
    id: str


def image_id(digest: str) -> str:
    """The id of an image whose content has this SHA-256: `b-` and its first 16 hexadecimal digits."""
    return f"b-{digest[:_ID_DIGITS]}"


class Readable(Protocol):
    """What an image is read from. `read` gives at most `size` bytes, and none at the end."""

    def read(self, size: int, /) -> bytes: ...


def copy_image(source: Readable, place: Path) -> str:
    """Copy a disk image to the new file `place`, with its zeros as holes, and return its SHA-256. Raises OSError."""
    digest = hashlib.sha256()
    with place.open("xb") as copy:
        while chunk := source.read(len(_ZEROS)):
            digest.update(chunk)
            if _ZEROS.startswith(chunk):
                copy.seek(len(chunk), os.SEEK_CUR)
            else:
                copy.write(chunk)
        copy.truncate()
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def known_image(folder: Path, stem: str) -> BaseImage | None:
    """The image that `keep_image` put into `folder` under that name. None if there is none."""
    for known in folder.glob(f"{stem}-{'[0-9a-f]' * _ID_DIGITS}.img"):
        return BaseImage(known, image_id(known.stem.rsplit("-", 1)[1]))
    return None


def keep_image(made: Path, folder: Path, stem: str) -> BaseImage:
    """Move a finished image into `folder`, named by `stem` and its content. Raises OSError."""
    digest = file_digest(made)
    return BaseImage(made.rename(folder / f"{stem}-{digest[:_ID_DIGITS]}.img"), image_id(digest))


def base_image(target: Target, folder: Path, ask: Ask = always_find_out) -> BaseImage:
    """The base image of `target` in `folder`. It is made if it is missing, and then renamed, so it is whole or absent.

    Targets that are made in the same way share an image. If nobody knows what decides the image's content (see
    `Recipe`), it is made now, even if it is there. `ask` may know what was found out about files before.
    """
    try:
        recipe = recipe_of(target, ask)
        folder.mkdir(parents=True, exist_ok=True)
        known = known_image(folder, _stem(target, recipe)) if recipe.digest is not None else None
        return known or _make(target, recipe, folder)
    except NoProgramError as error:
        raise BaseImageError(str(error)) from error
    except OSError as error:
        raise BaseImageError(f"base image of {target.name} in {folder}: {error.strerror or error}") from error


def _stem(target: Target, recipe: Recipe) -> str:
    return f"{target.fstype}-{'any' if recipe.digest is None else recipe.digest[:_ID_DIGITS]}"


def mkfs_version(target: Target) -> str:
    """The first line that the target's mkfs says of itself on this machine. Empty if it is not installed."""
    program = found_program(target.mkfs[0])
    if program is None:
        return ""
    try:
        result = _run([program, "-V"])
    except BaseImageError:
        return ""
    return next(filter(None, (result.stdout + result.stderr).splitlines()), "")


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command that has ended, in whatever way. Raises BaseImageError if it takes too long."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=_MKFS_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BaseImageError(f"{command[0]} did not end within {_MKFS_TIMEOUT_S} s") from error


def _make(target: Target, recipe: Recipe, folder: Path) -> BaseImage:
    with ExitStack() as files:
        images = [files.enter_context(_image_of_garbage(folder, mib, target.garbage_mib)) for mib in target.disks_mib]
        further = [str(image) for image in images[1:]]
        for command in recipe.commands:
            result = _run([*(on_disks(word, further) for word in command), str(images[0])], recipe.environment)
            if result.returncode != 0:
                raise BaseImageError(f"{' '.join(command)} failed: {_why(result)}")
        for image in images[1:]:
            _append(image, images[0])
        return keep_image(images[0], folder, _stem(target, recipe))


@contextmanager
def _image_of_garbage(folder: Path, mib: int, garbage_mib: int | None) -> Iterator[Path]:
    """A file that begins with so many MiB of garbage (None: all). It is removed if it is still there at the end."""
    handle, name = tempfile.mkstemp(prefix=".base-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as image:
            _fill_with_garbage(image.write, min(garbage_mib or mib, mib) * (1 << 20) // BLOCK_BYTES)
            image.truncate(mib << 20)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _append(image: Path, whole: Path) -> None:
    with image.open("rb") as source, whole.open("ab") as place:
        shutil.copyfileobj(source, place, len(_ZEROS))


def _why(failed: subprocess.CompletedProcess[str]) -> str:
    """The last line that the program said, before it explained its usage."""
    output = (failed.stderr or failed.stdout).strip().splitlines()
    usage = next((number for number, line in enumerate(output) if line.lower().startswith("usage:")), len(output))
    lines = output[:usage] or output
    return lines[-1] if lines else f"exit code {failed.returncode}"


def _fill_with_garbage(write: Callable[[bytes], int], blocks: int) -> None:
    for first in range(0, blocks, _CHUNK_BLOCKS):
        chunk = range(first, min(first + _CHUNK_BLOCKS, blocks))
        write(b"".join(stale(block, BLOCK_BYTES) for block in chunk))
