"""Runs with certificates, as the store has them."""

from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.examination.certified_run import CertifiedRun, certified_runs
from postcrash.store.store import Store, StoreError

ROW: dict[str, Any] = {
    **{"recording": "r-0123456789abcdef", "base": "b-0123456789abcdef", "model": "cache", "kernel": "k", "guest": "g"},
    **{"states": str(2**70), "covered": str(2**70), "findings": ["f-0123456789abcdef"], "certificates": [7]},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_only_runs_with_certificates_are_listed(store: Store) -> None:
    """The log of a random hunt is kept beside the runs, and a workload that was refused has no certificate."""
    rows = {"log": {"drafts": []}, "refused": {**ROW, "certificates": []}, "run": {**ROW, "notes": []}}
    store.put_runs(rows, findings=())
    (run,) = certified_runs(store)
    assert run == CertifiedRun.from_wire(ROW)
    assert run.is_whole


def test_a_run_that_an_older_version_kept_is_of_no_known_guest(store: Store) -> None:
    store.put_run("run", {name: value for name, value in ROW.items() if name not in ("kernel", "guest")})
    (run,) = certified_runs(store)
    assert (run.kernel, run.guest) == ("an unknown kernel", "")


@pytest.mark.parametrize("changed", [{"covered": "few"}, {"findings": None}, {"recording": 7}])
def test_a_damaged_run_is_one_clear_error(store: Store, changed: dict[str, Any]) -> None:
    store.put_run("run", ROW | changed)
    with pytest.raises(StoreError, match=f"damaged: .*CertifiedRun.{next(iter(changed))}"):
        list(certified_runs(store))


def test_damaged_certificates_are_one_clear_error(store: Store) -> None:
    store.put_run("run", ROW)
    (run,) = certified_runs(store)
    with pytest.raises(StoreError, match="damaged"):
        run.read_certificates()
