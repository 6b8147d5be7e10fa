"""How a recording was made, by its metadata. Users bring recordings from elsewhere, so all of it is checked."""

from typing import Any

import pytest

from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.wire import WireError

WRITTEN = {"base": "b-0123456789abcdef", "recorder": "crash-disk", "held": 3, "kernel": "UML 6.1.176"}


def test_what_is_for_people_is_not_read() -> None:
    assert Provenance.from_wire(WRITTEN) == Provenance("b-0123456789abcdef", "crash-disk", 3)


@pytest.mark.parametrize(("requested", "again"), [({}, "crash-disk"), ({"requested": "auto"}, "auto")])
def test_it_is_recorded_once_more_as_it_was_asked_for(requested: dict[str, str], again: str) -> None:
    assert Provenance.from_wire(WRITTEN | requested).recorder_again == again


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"recorder": "evil"}, "there is no recorder 'evil'"),
        ({"requested": "evil"}, "there is no recorder 'evil'"),
        ({"held": 2**64}, "Provenance.held: "),
        ({"application": {"name": "a"}}, "Provenance.application.run: Field required"),
        ({"acknowledged": "a"}, "Provenance.acknowledged: "),
        ({"test": 7}, "Provenance.test: "),
    ],
)
def test_what_postcrash_does_not_write_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(WireError, match=said):
        Provenance.from_wire(WRITTEN | changed)


@pytest.mark.parametrize("wire", [7, [], {}, None])
def test_what_is_no_description_is_refused(wire: object) -> None:
    with pytest.raises(WireError, match="Provenance"):
        Provenance.from_wire(wire)
