"""What is wrong in applications is found, and not where it is mended: old bugs, and docs/findings/applications."""

import json

import pytest

from .audits import Audit, made, told


@pytest.mark.parametrize(
    "bug",
    ["log-not-synced", pytest.param("recovery-not-synced", marks=pytest.mark.full)],  # a minute
)
def test_a_bug_that_sqlite_had_is_found_and_nothing_once_it_is_mended(audit: Audit, bug: str) -> None:
    """Section 4.2 of HotDep'13."""
    name = made("sqlite-past-bugs")
    found, mended = (told(audit, name, "--set", f"bug={bug}", "--set", f"mended={mended}") for mended in ("no", "yes"))
    assert (found["verdict"], mended["verdict"]) == ("violated", "holds")
    assert found["disks"][0]["judges"]["mounts"]["verdict"] == "holds"
    assert mended["folders"] > 20


@pytest.mark.parametrize(("mended", "properties"), [("no", ["P4"]), ("yes", [])])
def test_a_bug_that_sqlite_had_needs_a_property(audit: Audit, mended: str, properties: list[str]) -> None:
    """The third one of section 4.2. File systems without P4 keep no database, with the bug or without it."""
    chosen = ["--set", "bug=folder-not-synced", "--set", f"mended={mended}", "--folders", "100", "--sets", "1"]
    ran = audit(made("sqlite-past-bugs"), *chosen, "--json", "-", command="needs")
    assert ran.stderr == ""
    (needs,) = json.loads(ran.stdout)["needs"]
    assert [each["properties"] for each in needs["sets"]] == [properties]


def test_a_finding_of_the_paper_is_in_the_version_that_has_it(audit: Audit) -> None:
    """LevelDB's issue 68: the file that is renamed to CURRENT is not flushed before. Later versions flush it."""
    old = told(audit, made("leveldb-1.2"), target="ext4-original")
    assert old["verdict"] == "violated"
    messages = [finding["message"] for finding in old["disks"][0]["findings"]]
    assert messages == ["the store does not open: Corruption: CURRENT file does not end with newline"]
    assert told(audit, "leveldb-1.23", target="ext4-original")["verdict"] == "holds"


@pytest.mark.parametrize(("target", "verdict"), [("xfs", "violated"), ("btrfs", "holds")])
def test_a_vulnerability_of_openssh(audit: Audit, target: str, verdict: str) -> None:
    """What docs/findings/applications/openssh-known-hosts.md says."""
    done = told(audit, "openssh-9.2", target=target)
    assert done["verdict"] == verdict
    found = [finding["message"] for disk in done["disks"] for finding in disk["findings"]]
    assert found == ["known_hosts has lost the other host's key, and has 0 bytes"] * (verdict == "violated")


@pytest.mark.parametrize(("fsync", "verdict"), [("default", "violated"), ("committed", "holds")])
def test_a_vulnerability_of_git(audit: Audit, fsync: str, verdict: str) -> None:
    """What docs/findings/applications/git-gc.md says."""
    done = told(audit, "git-2.39", "--set", "workload=gc", "--set", f"fsync={fsync}")
    assert done["verdict"] == verdict
    found = [finding["message"] for disk in done["disks"] for finding in disk["findings"]]
    assert found == ["fatal: your current branch 'main' does not have any commits yet"] * (verdict == "violated")


@pytest.mark.full
def test_a_vulnerability_of_dpkg(audit: Audit) -> None:
    """What docs/findings/applications/dpkg-conffiles.md says."""
    done = told(audit, "dpkg-1.21", target="btrfs")
    found = {finding["message"] for disk in done["disks"] for finding in disk["findings"]}
    lost = "etc/greeting.conf is of version 1"
    assert found == {f"the database has installed 2, but {lost}", f"done again, but {lost}"}
