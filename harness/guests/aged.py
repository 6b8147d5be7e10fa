"""Aged base images: nearly full and fragmented, so that a workload writes into blocks that were in use.

A guest ages the fresh image once. It appends to many files in turns and writes each append back at once, so that the
files are interleaved on the disk. Then it removes every sixth file. The files are in a folder that is not listed. Each
recovery looks at their names and sizes (harness/guests/agent/src/unlisted.rs). The aged image is what a crash after a
last sync leaves. Like any base image it is mounted before a workload is set up.
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
from postcrash.targets import ROUNDS, AgedFiles, BaseImage, Target, keep_image, known_image

FOLDER = ".aged"
"""A folder in the root. The agent does not list it."""
_HEAD_BYTES = 32
_MODEL = "cache"


def aged_image(target: Target, fresh: BaseImage, settings: MachineSettings, guest: str, folder: Path) -> BaseImage:
    """The image `fresh`, aged by files of `target.aged_mib` in all. It is made in `folder` if it is not there.

    `guest` is the digest of the guests that `settings` start, because other guests may age an image in another way.
    Raises InfrastructureError, and UsageError if the files do not fit.
    """
    assert target.aged_mib is not None
    aged = AgedFiles.of(target.aged_mib)
    made_by = repr((fresh.id, target.mount.to_wire(), _ageing(aged), guest))
    stem = f"{target.fstype}-{hashlib.sha256(made_by.encode()).hexdigest()[:16]}"
    known = known_image(folder, stem)
    if known is not None:
        return known
    try:
        with tempfile.TemporaryDirectory(prefix=".aged-", dir=folder) as scratch, Machine(settings) as machine:
            recording, image = Path(scratch) / "recording", Path(scratch) / "image"
            machine.record(fresh.path, target.mount, _ageing(aged), recording, {})
            last = intervals(Recording(recording), fresh.path, _MODEL)[-1].index
            write_state(Recording(recording), fresh.path, _MODEL, last, [], image)
            _to_garbage(image, aged)
            return keep_image(image, folder, stem)
    except UsageError as error:
        raise UsageError(f"target {target.name}: aged_mib = {target.aged_mib} cannot be: {error}") from error
    except OSError as error:
        raise InfrastructureError(f"aged image of {target.name} in {folder}: {error.strerror or error}") from error


def _ageing(aged: AgedFiles) -> Workload:
    """The ageing workload."""
    files = [f"{FOLDER}/{number}" for number in range(aged.files)]
    operations = [Operation("mkdir", FOLDER), *(Operation("creat", file) for file in files)]
    for tag, file in enumerate(files * ROUNDS):
        append = Operation("append", file, length=aged.bytes // ROUNDS, tag=tag)
        operations += [append, Operation("writeback", file)]
    removed = (Operation("unlink", file) for file in files[:: aged.removed_every])
    # No builder takes the folder's name, which is reserved.
    return Workload("ageing", (), (*operations, Operation("sync"), *removed, Operation("sync")))


def _to_garbage(image: Path, aged: AgedFiles) -> None:
    """Replace the contents of all files, removed ones too, by garbage that differs from a workload's own bytes."""
    length = aged.bytes // ROUNDS
    written = {
        pattern(tag, round_ * length + offset, _HEAD_BYTES)
        for tag, round_ in enumerate(number for number in range(ROUNDS) for _ in range(aged.files))
        for offset in range(0, length, BLOCK_BYTES)
    }
    with image.open("r+b") as file:
        for number in range(image.stat().st_size // BLOCK_BYTES):
            file.seek(number * BLOCK_BYTES)
            if file.read(_HEAD_BYTES) in written:
                file.seek(number * BLOCK_BYTES)
                file.write(stale(number, BLOCK_BYTES))
