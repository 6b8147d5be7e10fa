"""Certificates have the same form in the store as they always had."""

import json
from typing import Any

import pytest

from postcrash.harness.examination.certificate import Certificate, certificates_of, certificates_to_wire
from postcrash.store.store import StoreError

from .conftest import RECOVER, interval_report

COUNTS = ["recover", "index", "instants", "states", "covered", "recoveries", "remembered", "left_out", "reached"]
REACHED = {"all_kept": 1, "none_kept": None, "samples": 0, "seed": 1}
WITHIN = {"interval": 3, "choices": [[4, 1]], "observation": {"mount_errno": 0}}


@pytest.mark.parametrize(
    ("fields", "names"),
    [({"reached": REACHED, "left_out": "why"}, ["executions", "outcomes"]), ({"within": WITHIN}, ["within"])],
)
def test_a_certificate_comes_back(fields: dict[str, Any], names: list[str]) -> None:
    certificate = Certificate.of(interval_report(([[0, 1]], {"mount_errno": 0}), states=str(2**70), **fields), RECOVER)
    wire = json.loads(json.dumps(certificate.to_wire()))
    assert list(wire) == COUNTS + names
    assert (wire["states"], wire["instants"]) == (str(2**70), [{"event": 2, "started": 1, "returned": 0}])
    assert certificates_of([wire]) == [certificate]


def test_a_damaged_certificate_is_one_clear_error() -> None:
    wire = Certificate.of(interval_report(), RECOVER).to_wire()
    with pytest.raises(StoreError, match=r"Certificate\.covered: .*found 'few'"):
        certificates_of([{**wire, "covered": "few"}])


def test_an_entry_stands_in_the_store_once() -> None:
    """Trees that differ little are told in little more than one tree, and come back as they were."""
    entries = [{"path": name, "segments": [[0, 1, f"bytes:{name}"]]} for name in "abcd"]
    observations = [{"mount_errno": 0, "tree": entries[:3]}, {"mount_errno": 0, "tree": [entries[0], entries[3]]}, None]
    reports = [interval_report(*(([[0, n]], shown) for n, shown in enumerate(observations)), states="9")] * 2
    certificates = [Certificate.of(report, RECOVER) for report in reports]
    run = json.loads(json.dumps({"certificates": certificates_to_wire(certificates)}))
    assert [each["observation"]["tree"] for each in run["certificates"][0]["outcomes"][:2]] == [
        entries[:3],
        [0, entries[3]],
    ]
    assert [each["observation"]["tree"] for each in run["certificates"][1]["outcomes"][:2]] == [[0, 1, 2], [0, 3]]
    assert certificates_of(run["certificates"]) == certificates


@pytest.mark.parametrize("number", [7, -9])
def test_a_number_of_no_entry_is_one_clear_error(number: int) -> None:
    certificate = Certificate.of(interval_report(([[0, 1]], {"mount_errno": 0, "tree": [number]})), RECOVER)
    with pytest.raises(StoreError, match="damaged"):
        certificates_of([certificate.to_wire()])
