"""What `last` stands for. A store keeps it from one command to the next."""

from pathlib import Path

import pytest

from postcrash.harness.findings.last_finding import FILE, id_named, keep_last
from postcrash.store.store import NotInStoreError, Store

ONE, OTHER = "f-0123456789abcdef", "f-fedcba9876543210"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_it_is_the_first_that_the_last_command_named(store: Store) -> None:
    keep_last(store, [OTHER])
    keep_last(store, iter([ONE, OTHER]))
    assert id_named(Store(store.folder), "last") == ONE


def test_any_other_name_stays_as_it_is(store: Store) -> None:
    keep_last(store, [ONE])
    assert [id_named(store, name) for name in (OTHER, "finding.tar.gz", "")] == [OTHER, "finding.tar.gz", ""]


def test_a_command_that_found_nothing_leaves_no_older_finding(store: Store) -> None:
    keep_last(store, [ONE])
    keep_last(store, [])
    with pytest.raises(NotInStoreError, match="store: the last command found nothing"):
        id_named(store, "last")


@pytest.mark.parametrize("content", [None, "{", "3"])
def test_a_store_without_it_has_no_last_finding(store: Store, content: str | None) -> None:
    if content is not None:
        (store.folder / FILE).write_text(content)
    with pytest.raises(NotInStoreError, match="no command has looked for findings here"):
        id_named(store, "last")
