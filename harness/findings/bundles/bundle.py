"""The content of a bundle, and how it is written."""

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import postcrash
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.recording_metadata import provenance, recorded_base
from postcrash.harness.examination.session import Session
from postcrash.harness.files.digest import content_digest
from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.bundles.archive import write_archive
from postcrash.harness.findings.bundles.validation import BundleParts, RefusedError, validated, without_later_results
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.own_kernel import guest_difference, is_same_build, on_its_kernel
from postcrash.harness.findings.reproduce import reproducers_of
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.kernels.config import config_of
from postcrash.harness.guests.kernels.debian import installed_package
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.stock import Stock
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding
from postcrash.store.store import Store
from postcrash.targets import Target, file_digest, mkfs_version
from postcrash.targets.catalogue import SIZE_MIB_MAX

FORMAT = 1
MANIFEST, FINDING, RECORDING, BELOW, BASE = "manifest.json", "finding.json", "recording.pcr", "below.pcr", "base.img"
CONFIG, SCRIPT = "kernel.config", "reproduce.sh"
SIZES = {
    MANIFEST: 1 << 20,
    FINDING: 8 << 20,
    RECORDING: 16 << 20,
    BELOW: 16 << 20,
    BASE: SIZE_MIB_MAX << 20,
    CONFIG: 4 << 20,
    SCRIPT: 4 << 20,
}
"""The members of a bundle, with the most bytes that each may have."""


@dataclass(frozen=True, slots=True)
class BundleNotes:
    """Information for people that no replay needs. `left_out` lists what is not in the bundle, and why."""

    package: str
    config: str
    script: str
    left_out: tuple[str, ...]


def write_bundle(session: Session, finding: Finding, out: BinaryIO) -> tuple[str, ...]:
    """Writes a finding of the store as a bundle, reproducibly. Raises UsageError if it cannot be in one.

    Returns what is left out, and why. The finding's kernel is described if this machine has it.
    """
    parts = _parts(session.store, without_later_results(finding))
    try:
        (finding,) = with_block_names([validated(parts)], session.store)
    except RefusedError as error:
        raise UsageError(f"{finding.id} cannot be in a bundle: {error}") from error
    target = session.target_of(finding)
    notes = _notes(session, finding, target)
    manifest = {
        "format": FORMAT,
        "postcrash": postcrash.__version__,
        **parts.facts(),
        "mkfs_version": mkfs_version(target),
        "package": notes.package,
        "agent": content_digest(find_binary("postcrash-agent")),
        "left_out": notes.left_out,
    }
    texts = {MANIFEST: _text(manifest), FINDING: _text(finding.to_json()), CONFIG: notes.config, SCRIPT: notes.script}
    files = {RECORDING: parts.recording, BELOW: parts.below, BASE: parts.base}
    with ExitStack() as opened:
        write_archive(out, _members(finding, texts, files, opened))
    return notes.left_out


def _parts(store: Store, finding: Finding) -> BundleParts:
    below = state_below(finding)
    under = None if below is None else store.recording_path(below)
    base = recorded_base(store, finding).path
    return BundleParts(finding, store.recording_path(finding.recording), under, base, file_digest(base))


def _members(
    finding: Finding, texts: dict[str, str], files: dict[str, Path | None], opened: ExitStack
) -> Iterator[tuple[str, int, BinaryIO]]:
    for name, size_max in SIZES.items():
        text, path = texts.get(name), files.get(name)
        if text:
            content: BinaryIO = io.BytesIO(text.encode())
        elif path is not None:
            content = opened.enter_context(path.open("rb"))
        else:
            continue
        size = content.seek(0, io.SEEK_END)
        content.seek(0)
        if size > size_max:
            raise UsageError(
                f"{finding.id} cannot be in a bundle: its {name} has {size} bytes, and may have {size_max}"
            )
        yield name, size, content


def _text(value: Json) -> str:
    return json.dumps(value, indent=1) + "\n"


def _notes(session: Session, finding: Finding, target: Target) -> BundleNotes:
    left_out = []
    package = config = script = ""
    try:
        own = on_its_kernel(session, finding)
        difference = "" if is_same_build(finding, own) else guest_difference(finding, own)
    except UsageError as error:
        difference = str(error)
    if difference:
        left_out.append(f"the kernel's package and configuration: {difference}")
    else:
        package, config = _package(own.kernel), config_of(own.kernel.path, own.kernel.modules) or ""
    try:
        script = reproducers_of(finding, target, session.store)[0].text
    except NoCommandError as error:
        left_out.append(f"a shell script: {error}")
    if provenance(session.store, finding).application is not None:
        left_out.append("the files of the application and of its check: they come with postcrash")
    return BundleNotes(package, config, script, tuple(left_out))


def _package(kernel: Kernel) -> str:
    """Returns the package that the kernel comes from; empty if it is the user's own."""
    stocked = (known.origin for known in Stock(cache_folder()).all() if known.path == kernel.known_as)
    origin = next(stocked, None) or installed_package(kernel.known_as)
    return "" if Path(origin).is_absolute() else origin
