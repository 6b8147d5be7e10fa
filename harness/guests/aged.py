"""Aged base images: nearly full and fragmented, so that a workload writes into blocks that were in use.

A guest ages the fresh image once. It appends to many files in turns and writes each append back at once, so that the
files are interleaved on the disk. Then it removes every sixth file. The files are in a folder that is never listed.
The aged image is what a crash after a last sync leaves. Like any base image it is mounted before a workload is set up.
"""

import hashlib
import tempfile
from pathlib import Path

from postcrash._core import Recording, intervals, write_state
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.guests.machine import Machine, MachineSettings
from postcrash.model import Operation, Workload
from postcrash.model.pattern import pattern, stale
from postcrash.model.units import BLOCK_BYTES
from postcrash.targets import BaseImage, Target, keep_image, known_image

FOLDER = ".aged"
"""A folder in the root. The agent does not list it."""
_FILES, _ROUNDS, _REMOVED_EVERY = 48, 4, 6
_HEAD_BYTES = 32
_MODEL = "cache"


def aged_image(target: Target, fresh: BaseImage, settings: MachineSettings, guest: str, folder: Path) -> BaseImage:
    """The image `fresh`, aged by files of `target.aged_mib` in all. It is made in `folder` if it is not there.

    `guest` is the digest of the guests that `settings` start, because other guests may age an image in another way.
    Raises InfrastructureError, and UsageError if the files do not fit.
    """
    assert target.aged_mib is not None
    length = (target.aged_mib << 20) // (_FILES * _ROUNDS) // BLOCK_BYTES * BLOCK_BYTES
    made_by = repr((fresh.id, target.mount.to_wire(), _ageing(length), guest))
    stem = f"{target.fstype}-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}"
    known = known_image(folder, stem)
    if known is not None:
        return known
    try:
        with tempfile.TemporaryDirectory(prefix=".aged-", dir=folder) as scratch, Machine(settings) as machine:
            recording, image = Path(scratch) / "recording", Path(scratch) / "image"
            machine.record(fresh.path, target.mount, _ageing(length), recording, {})
            last = intervals(Recording(recording), fresh.path, _MODEL)[-1].index
            write_state(Recording(recording), fresh.path, _MODEL, last, [], image)
            _to_garbage(image, length)
            return keep_image(image, folder, stem)
    except UsageError as error:
        raise UsageError(f"target {target.name}: aged_mib = {target.aged_mib} cannot be: {error}") from error
    except OSError as error:
        raise InfrastructureError(f"aged image of {target.name} in {folder}: {error.strerror or error}") from error


def _ageing(length: int) -> Workload:
    """The ageing workload. Every append has `length` bytes."""
    files = [f"{FOLDER}/{number}" for number in range(_FILES)]
    operations = [Operation("mkdir", FOLDER), *(Operation("creat", file) for file in files)]
    for tag, file in enumerate(files * _ROUNDS):
        operations += [Operation("append", file, length=length, tag=tag), Operation("writeback", file)]
    removed = (Operation("unlink", file) for file in files[::_REMOVED_EVERY])
    # No builder takes the folder's name, which is reserved.
    return Workload("ageing", (), (*operations, Operation("sync"), *removed, Operation("sync")))


def _to_garbage(image: Path, length: int) -> None:
    """Replace the contents of all files, removed ones too, by garbage that differs from a workload's own bytes."""
    written = {
        pattern(tag, round_ * length + offset, _HEAD_BYTES)
        for tag, round_ in enumerate(number for number in range(_ROUNDS) for _ in range(_FILES))
        for offset in range(0, length, BLOCK_BYTES)
    }
    with image.open("r+b") as file:
        for number in range(image.stat().st_size // BLOCK_BYTES):
            file.seek(number * BLOCK_BYTES)
            if file.read(_HEAD_BYTES) in written:
                file.seek(number * BLOCK_BYTES)
                file.write(stale(number, BLOCK_BYTES))
