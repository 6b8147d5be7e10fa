"""Puts the finding of a bundle into a store, after all of it has been checked."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from postcrash._core import Recording
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import say
from postcrash.harness.findings.bundles.archive import BundleError, Member, read_archive
from postcrash.harness.findings.bundles.bundle import BASE, BELOW, FINDING, FORMAT, MANIFEST, RECORDING, SIZES
from postcrash.harness.findings.bundles.validation import BundleParts, RefusedError, validated, without_later_results
from postcrash.harness.findings.last_finding import LAST, id_named, keep_last
from postcrash.model.validation import shown
from postcrash.store.json_codec import Json
from postcrash.store.records import Finding, is_finding_id
from postcrash.store.store import NotInStoreError, Store
from postcrash.targets import copy_image, file_digest, image_id

_NUMBER_CHARACTERS_MAX = 20


def finding_named(session: Session, name: str) -> Finding:
    """Returns the finding with the id `name`, the one that `last` stands for, or that of the bundle in the file `name`.

    The bundle's finding is put into the store. Raises NotInStoreError, BundleError if the file is no bundle, and
    UsageError if `name` is neither.
    """
    id = id_named(session.store, name)
    if id != name:
        say(f"{name} is {id}")
    if is_finding_id(id):
        return session.store.finding(id)
    if not os.path.exists(name):  # also for what cannot be the name of a file
        raise UsageError(
            f"expected a finding's id (f- and 16 hexadecimal digits), `{LAST}` or a bundle, found {shown(name)}"
        )
    finding = import_bundle(Path(name), session.store)
    keep_last(session.store, [finding.id])
    say(f"{name}: finding {finding.id} is in the store {session.store.folder}")
    return finding


def import_bundle(path: Path, store: Store) -> Finding:
    """Puts the finding of the bundle at `path` into the store, with its files. Returns the store's finding.

    Raises BundleError if the bundle is refused: then nothing of it is in the store.
    """
    try:
        with _unpacked(path, store) as (parts, manifest):
            finding = validated(parts)
            _check_manifest(manifest, parts.facts())
            return _put(finding, parts, store)
    except (RefusedError, RecursionError) as error:
        raise BundleError(f"{path}: its finding is not taken: {error}") from error
    except OSError as error:
        raise InfrastructureError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _unpacked(path: Path, store: Store) -> Iterator[tuple[BundleParts, Json]]:
    """Yields the parts and the manifest of a bundle. Its files are scratch files of the store until the end."""
    places = {name: store.scratch() for name in (RECORDING, BELOW, BASE)}
    digests: dict[str, str] = {}
    texts: dict[str, Json] = {}
    try:
        for member in read_archive(path, SIZES):
            if member.name in places:
                digests[member.name] = copy_image(member, places[member.name])
            elif member.name in (MANIFEST, FINDING):
                texts[member.name] = _object(path, member)
        missing = {MANIFEST, FINDING, RECORDING, BASE} - texts.keys() - digests.keys()
        if missing:
            raise BundleError(f"{path}: it is no bundle, or damaged: there is no {min(missing)}")
        if texts[MANIFEST].get("format") != FORMAT:
            form = shown(texts[MANIFEST].get("format"))
            raise BundleError(f"{path}: its format is {form}, and this postcrash reads format {FORMAT}")
        finding = _finding(path, texts[FINDING])
        below = places[BELOW] if BELOW in digests else None
        yield BundleParts(finding, places[RECORDING], below, places[BASE], digests[BASE]), texts[MANIFEST]
    finally:
        for place in places.values():
            place.unlink(missing_ok=True)


def _object(path: Path, member: Member) -> Json:
    """Reads the JSON object in a member. Numbers are short: Python would take hours for one with many digits."""

    def number(text: str) -> int:
        if len(text) > _NUMBER_CHARACTERS_MAX:
            raise ValueError("a number has too many digits")
        return int(text)

    try:
        value = json.loads(member.read(member.size), parse_int=number)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: {member.name} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BundleError(f"{path}: {member.name} is not a JSON object: {shown(value)}")
    return value


def _finding(path: Path, value: Json) -> Finding:
    try:
        return without_later_results(Finding.from_json(value))
    except ValueError as error:
        raise BundleError(f"{path}: {FINDING}: {error}") from None


def _check_manifest(manifest: Json, facts: Json) -> None:
    for name, fact in facts.items():
        if manifest.get(name) != fact:
            raise RefusedError(f"its manifest says {name} = {shown(manifest.get(name))}, found {shown(fact)}")


def _put(finding: Finding, parts: BundleParts, store: Store) -> Finding:
    """Puts the finding and its files into the store. A finding that is there already stays as it is."""
    try:
        known = store.finding(finding.id)
    except NotInStoreError:
        known = None
    if known is not None and _comparable(known) != _comparable(finding):
        raise RefusedError(f"the store {store.folder} has {finding.id} from another run: choose another with --store")
    _keep_files(finding, parts, store)
    if known is not None:
        return known
    if finding.casualty is not None:
        store.keep_console(finding.casualty)
    store.put_finding(finding)
    return finding


def _comparable(finding: Finding) -> Finding:
    """Returns the finding without the fields that may differ between machines, such as names of kernel builds.

    The outcome of a reference may differ between runs.
    """
    return replace(without_later_results(finding), explanation=None, built=None, compared=None, reference_outcome=None)


def _keep_files(finding: Finding, parts: BundleParts, store: Store) -> None:
    """Puts the files into the store. Files that are there must be the same: an id has only a part of the digest."""
    base, below = image_id(parts.base_digest), state_below(finding)
    recordings = {finding.recording: parts.recording} | ({below: parts.below} if below and parts.below else {})
    with suppress(NotInStoreError):
        if file_digest(store.base_path(base)) != parts.base_digest:
            raise RefusedError(f"the store {store.folder} has another image that is called {base}")
    for id, path in recordings.items():
        with suppress(NotInStoreError):
            if Recording(store.recording_path(id)).digest != Recording(path).digest:
                raise RefusedError(f"the store {store.folder} has another recording that is called {id}")
    store.keep_base(parts.base, base)
    for id, path in recordings.items():
        store.adopt_recording(path, id)
