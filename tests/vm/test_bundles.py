"""A finding that was made on a real guest is seen again on a machine that has only its bundle."""

import json
from pathlib import Path
from typing import Any

import pytest

from .command import EXAMPLE, one_line, postcrash

HASTY = 'name = "ext4-hasty"\nlike = "ext4-current"\ntitle = "hasty"\nrecover_options = "barrier=0"\n'


def found(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """The findings of a command, in a store in `folder`."""
    done = postcrash(folder, *arguments, "--json", "-")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    findings: list[dict[str, Any]]
    findings = report["findings"] if "findings" in report else report["audits"][0]["disks"][0]["findings"]
    return findings


def bundled(folder: Path, finding: dict[str, Any], name: str = "finding.tar.gz") -> Path:
    done = postcrash(folder, "bundle", finding["id"], "-o", name, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"id": finding["id"], "bundle": name, "bytes": (folder / name).stat().st_size}
    return folder / name


def replayed(folder: Path, bundle: Path, *arguments: str) -> dict[str, Any]:
    """What `repro` finds in a folder without a store, without a base image in the cache."""
    cache = folder / "cache"
    done = postcrash(folder, "repro", str(bundle), "--json", "-", *arguments, POSTCRASH_CACHE=str(cache))
    assert done.returncode == 1, done.stderr
    assert not (cache / "bases").exists()
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("here")


@pytest.fixture(scope="module")
def finding(here: Path) -> dict[str, Any]:
    (finding,) = found(here, "check", str(EXAMPLE), "--target", "ext4-original", "--judge", "P5")
    return finding


@pytest.fixture(scope="module")
def bundle(here: Path, finding: dict[str, Any]) -> Path:
    return bundled(here, finding)


def test_a_bundle_shows_its_finding_again_in_an_empty_store(
    finding: dict[str, Any], bundle: Path, tmp_path: Path
) -> None:
    again = replayed(tmp_path, bundle, "--times", "3")
    expected = {"id": finding["id"], "state": finding["state"], "kernel": finding["kernel"], "runs": 3, "failures": 3}
    assert again == expected | {"message": finding["message"], "unlike_found": ""}


def test_a_bundle_is_explained_reported_and_minimized_like_its_finding(
    here: Path, finding: dict[str, Any], bundle: Path, tmp_path: Path
) -> None:
    there, at_home = postcrash(tmp_path, "explain", str(bundle)), postcrash(here, "explain", finding["id"])
    assert (there.returncode, there.stdout) == (0, at_home.stdout)
    for folder, name in ((tmp_path, str(bundle)), (here, finding["id"])):
        assert postcrash(folder, "report", name, "--script", "script").returncode == 0
    assert (tmp_path / "script").read_text() == (here / "script").read_text()
    minimal = postcrash(tmp_path, "minimize", str(bundle), "--json", "-")
    assert json.loads(minimal.stdout)["workload"] == "creat a\nappend a 1\n---\ncreat b\nappend b 1\nrename b a\n"


def test_equal_findings_have_equal_bundles(here: Path, finding: dict[str, Any], bundle: Path) -> None:
    assert bundled(here, finding, "again.tar.gz").read_bytes() == bundle.read_bytes()


def test_a_bundle_of_a_crash_within_recovery_has_both_recordings(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    (here / "hasty.toml").write_text(HASTY)
    (here / "a.ops").write_text("creat A\n---\nappend A 4096\nfsync A\n")
    first, *_ = found(here, "check", "a.ops", "--target", "hasty.toml", "--judge", "durability", "--depth", "2")
    assert first["base"].startswith("r-")
    assert replayed(tmp_path, bundled(here, first))["message"] == first["message"].partition(": ")[2]


def test_the_check_of_an_application_of_the_catalogue_is_asked_again_and_no_other(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    of_catalogue, *_ = found(
        here, "audit", "replace-shell", "--set", "sync=", "--target", "ext4-original", "--one-disk"
    )
    assert replayed(tmp_path, bundled(here, of_catalogue))["message"] == of_catalogue["message"]
    mine, *_ = found(
        here, "audit", "--run", "echo x >f; echo done", "--check", "grep x f", "--target", "ext4-original", "--one-disk"
    )
    said = one_line(postcrash(here, "bundle", mine["id"]), 4)
    assert said.endswith("its check 'grep x f' is not of the catalogue, and no others are run")


@pytest.mark.parametrize("command", ["repro", "explain", "report", "minimize"])
def test_what_is_no_bundle_is_one_clear_line(bundle: Path, tmp_path: Path, command: str) -> None:
    (damaged := tmp_path / "x.tar.gz").write_bytes(bundle.read_bytes()[:-9])
    assert "x.tar.gz: it is no bundle, or damaged: it is cut short" in one_line(
        postcrash(tmp_path, command, str(damaged)), 4
    )
    assert "or a bundle, found 'absent'" in one_line(postcrash(tmp_path, command, "absent"), 4)


def test_a_bundle_that_cannot_be_written_leaves_nothing(here: Path, finding: dict[str, Any], bundle: Path) -> None:
    before = sorted(here.rglob("*"))
    assert "cannot write " in one_line(postcrash(here, "bundle", finding["id"], "-o", f"{bundle}/x"), 3)
    assert "there is no finding f-0123456789abcdef" in one_line(postcrash(here, "bundle", "f-0123456789abcdef"), 4)
    assert sorted(here.rglob("*")) == before
