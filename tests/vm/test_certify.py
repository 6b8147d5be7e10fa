"""Certificates predict what random crash states show.

With --full: those of every judge on every file system. Without, only btrfs has them, and the others those of one judge.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.examination.certified_run import certified_runs
from postcrash.harness.examination.certify import certify
from postcrash.harness.guests.machine import Machine, Source
from postcrash.store.store import Store

from .command import ROOT, postcrash

SAMPLES = 50


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """A folder whose store has the rollback journal example on three file systems."""
    folder = tmp_path_factory.mktemp("certify")
    for target in ("ext4-current", "btrfs", "xfs"):
        asked = ("check", str(ROOT / "examples/journal.ops"), "--target", target, "--json", "-")
        is_slow = target != "btrfs" and not pytestconfig.option.full
        result = postcrash(folder, *asked, *(("--judge", "durability") if is_slow else ()))
        report = json.loads(result.stdout)
        assert report["states"] == report["states_total"]
        (folder / target).write_text(report["recording"])
    return folder


@pytest.mark.parametrize("target", ["ext4-current", "btrfs", "xfs"])
def test_every_prediction_is_confirmed(checked: Path, target: str) -> None:
    recording = (checked / target).read_text()
    result = postcrash(checked, "certify", recording, "--samples", str(SAMPLES), "--json", "-")
    assert result.returncode == 0, result.stdout
    assert json.loads(result.stdout) == {"samples": SAMPLES, "confirmed": SAMPLES, "wrong": []}


def test_a_certificate_that_mixes_up_two_outcomes_is_caught(machine: Machine, checked: Path) -> None:
    store = Store(checked / ".postcrash")
    recording = (checked / "ext4-current").read_text()
    (run,) = (run for run in certified_runs(store) if run.recording == recording)
    several = [certificate for certificate in run.read_certificates() if len(certificate.outcomes) > 1]
    assert several
    certificates = [replace(certificate, outcomes=certificate.outcomes[::-1]) for certificate in several]
    source = Source(store.recording_path(recording), store.base_path(run.base), run.model)
    assert not all(trial.confirmed for trial in certify(machine, source, certificates, SAMPLES, seed=1, is_whole=False))


def test_an_unknown_recording_is_one_clear_line(checked: Path) -> None:
    result = postcrash(checked, "certify", "r-0000000000000000")
    assert result.returncode == 4
    assert result.stderr.strip() == "postcrash: the store has no certificate of a recording 'r-0000000000000000'"


def test_certificates_of_a_target_of_ones_own_are_checked(tmp_path: Path) -> None:
    """Its guests have one more program in them, which the recording names."""
    for name in "logfs.py", "logfs.toml":
        (tmp_path / name).write_text((ROOT / "examples/logfs" / name).read_text())
        (tmp_path / name).chmod(0o755)
    (tmp_path / "w.ops").write_text("creat a\nfsync a\n")
    ran = postcrash(tmp_path, "check", "w.ops", "--target", "logfs.toml", "--judge", "durability", "--json", "-")
    assert json.loads(ran.stdout)["recording"]
    result = postcrash(tmp_path, "certify", "--samples", "5", "--json", "-")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"samples": 5, "confirmed": 5, "wrong": []}
