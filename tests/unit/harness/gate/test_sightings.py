"""The store remembers where each failure was ever seen, by each of its names, and what its part asked then."""

from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.gate.earlier_runs import SIGHTINGS_FILE, Sightings
from postcrash.store.gate_run import Sighting

from .conftest import CAUSE, FINDING, OTHER, failure, part

HERE = Sighting("small", "ext4-current", "cache", "6.1", "")
FOUND = "f-" + "1" * 16


def test_two_runs_of_one_store_keep_what_each_has_seen(tmp_path: Path) -> None:
    first, second = Sightings(tmp_path), Sightings(tmp_path)
    first.add([part(failure(finding=""))])
    second.add([part(failure(cause=OTHER, finding=""))])
    assert [bool(Sightings(tmp_path).places(cause)) for cause in (CAUSE, OTHER)] == [True, True]


def test_nothing_was_seen_at_first(tmp_path: Path) -> None:
    assert Sightings(tmp_path).places(CAUSE) == frozenset()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_known_by_its_cause_and_by_both_of_its_findings(tmp_path: Path) -> None:
    Sightings(tmp_path).add([part(failure(found=FOUND), failure(cause=OTHER, finding=""))])
    seen = Sightings(tmp_path)
    assert [seen.places(id) for id in (CAUSE, FINDING, FOUND)] == [{HERE}] * 3
    assert seen.places(OTHER) == {HERE}
    assert [seen.places(id) for id in ("", "f-" + "2" * 16)] == [frozenset()] * 2


def test_what_a_run_adds_is_known_to_it_at_once(tmp_path: Path) -> None:
    seen = Sightings(tmp_path)
    seen.add([part(failure()), part(failure(), kernel="UML 6.12.1"), part(failure(cause=OTHER), target="xfs")])
    assert seen.places(CAUSE) == {HERE, HERE._replace(series="6.12")}
    assert seen.places(OTHER) == {HERE._replace(target="xfs")}
    assert seen.places(FINDING) == seen.places(CAUSE) | seen.places(OTHER)


def test_a_place_that_shows_it_no_more_is_still_one_where_it_was_seen(tmp_path: Path) -> None:
    seen = Sightings(tmp_path)
    seen.add([part(failure())])
    seen.add([part()])
    seen.add([])
    assert seen.places(CAUSE) == Sightings(tmp_path).places(CAUSE) == {HERE}


def test_what_a_part_asks_now_counts_there_and_nowhere_else(tmp_path: Path) -> None:
    seen = Sightings(tmp_path)
    seen.add(
        [
            part(failure(), section_digest="old"),
            part(failure(), section_digest="old", model="torn"),
            part(failure(cause=OTHER), section_digest="old"),
        ]
    )
    seen.add([part(failure(), section_digest="new")])
    assert seen.places(CAUSE) == {
        HERE._replace(section_digest="new"),
        HERE._replace(section_digest="old", model="torn"),
    }
    assert seen.places(OTHER) == {HERE._replace(section_digest="old")}


@pytest.mark.parametrize("content", ["[", "[]", '{"c": [["a", "b"]]}', '{"c": 7}'])
def test_a_damaged_file_counts_as_empty(tmp_path: Path, content: str) -> None:
    (tmp_path / SIGHTINGS_FILE).write_text(content)
    seen = Sightings(tmp_path)
    assert seen.places("c") == frozenset()
    seen.add([part(failure())])
    assert Sightings(tmp_path).places(CAUSE) == {HERE}


def test_what_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    seen = Sightings(tmp_path / "absent")
    with pytest.raises(InfrastructureError, match=r"^cannot lock .*absent: No such file or directory$"):
        seen.add([part(failure())])
