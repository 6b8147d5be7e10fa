"""A folder with the bundles of a gate's new failures: shards write it, and a merge reads it."""

from collections.abc import Callable, Iterable
from pathlib import Path

from postcrash.harness.errors import HarnessError, UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import replacing
from postcrash.harness.findings.bundles.archive import BundleError
from postcrash.harness.findings.bundles.bundle import write_bundle
from postcrash.harness.findings.bundles.import_bundle import import_bundle
from postcrash.store.store import Store, StoreError

ENDING = ".tar.gz"
BUNDLES_MAX = 1000
"""The most bundles of a folder that are read."""


def write_bundles(session: Session, ids: Iterable[str], folder: Path, note: Callable[[str], None]) -> None:
    """Writes the findings with these ids to `folder`. Calls `note` for each that cannot be written."""
    for id in dict.fromkeys(ids):
        place = folder / f"{id}{ENDING}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(place) as file:
                write_bundle(session, session.store.finding(id), file)
        except OSError as error:
            note(f"cannot write {place}: {error.strerror or error}")
        except (HarnessError, StoreError) as error:
            note(f"{place}: {error}")


def import_bundles(store: Store, folder: Path, note: Callable[[str], None]) -> None:
    """Puts the findings of the folder's bundles into the store. Calls `note` for each bundle that is refused.

    Raises UsageError if the folder cannot be read.
    """
    try:
        found = sorted(place for place in folder.iterdir() if place.name.endswith(ENDING))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error
    if len(found) > BUNDLES_MAX:
        note(f"{folder} has {len(found)} bundles, of which {BUNDLES_MAX} are read")
    for place in found[:BUNDLES_MAX]:
        try:
            import_bundle(place, store)
        except (BundleError, HarnessError, StoreError) as error:
            note(f"{place}: {error}")
