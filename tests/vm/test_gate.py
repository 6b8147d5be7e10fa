"""A gate on real kernels: what is planted turns it red, what is known does not, and what is mended is said to be."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel
from postcrash.model import ExitCode

from .command import one_line, postcrash
from .mutant_kernel import RETURN_SUCCESS, mutant

TARGET = """
name = "ext4-current"
like = "ext4-current"
title = "ext4, with a patch"
options = "{options}"
"""
P5 = """
targets = ["patched.toml"]
expect = "contract:held.json"
disks = "one"

[parts.table]
properties = ["P5"]
"""


def gate(folder: Path, text: str, *options: str) -> tuple[int, dict[str, Any]]:
    (folder / "postcrash.toml").write_text(text)
    done = postcrash(folder, "gate", *options, "--json", "gate.json")
    assert done.returncode in (ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED), done.stderr
    return done.returncode, json.loads((folder / "gate.json").read_text())


def failures(told: dict[str, Any], **about: object) -> list[dict[str, Any]]:
    every = [failure for part in told["parts"] for failure in part["failures"]]
    return [each for each in every if all(each[name] == value for name, value in about.items())]


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What holds on ext4 with its defaults, on a disk that completes writes at once: P5 among it."""
    folder = tmp_path_factory.mktemp("contract")
    asked = ("--target", "ext4-current", "--property", "P5", "--one-disk")
    done = postcrash(folder, "characterize", *asked, "--contract", "held.json")
    assert done.returncode == ExitCode.HOLDS, done.stderr
    return folder / "held.json"


@pytest.fixture
def folder(tmp_path: Path, contract: Path) -> Path:
    shutil.copy(contract, tmp_path)
    (tmp_path / "patched.toml").write_text(TARGET.format(options="noauto_da_alloc"))
    return tmp_path


def test_a_regression_is_red_then_known_then_mended(folder: Path) -> None:
    """A contract says that P5 holds, and ext4 is mounted with noauto_da_alloc."""
    code, told = gate(folder, P5)
    found = failures(told, judge="P5")
    assert (code, len(found)) == (ExitCode.VIOLATED, 2)
    assert "creat a\nappend a 1\n---\ncreat b\nappend b 1\nrename b a\n" in [each["operations"] for each in found]
    assert len({(each["finding"], each["operations"], each["message"]) for each in found}) == 2
    for each in found:
        assert each["states"] == each["recordings"] == {"failed": 2, "runs": 2}
        assert "held.json" in each["standing"]
        assert postcrash(folder, "repro", each["finding"]).returncode == ExitCode.VIOLATED
    again, told = gate(folder, P5)
    assert (again, [each["cause"] for each in failures(told)]) == (code, [each["cause"] for each in found])

    lines = (f"{each['finding']} violated * # by its smallest finding\n" for each in found)
    (folder / "postcrash-known.txt").write_text("".join(lines))
    assert gate(folder, P5)[0] == ExitCode.HOLDS
    (folder / "postcrash-known.txt").unlink()

    code, told = gate(folder, P5, "--accept", "noauto_da_alloc, on purpose")
    assert (code, {each["known"] for each in failures(told)}) == (ExitCode.HOLDS, {"noauto_da_alloc, on purpose"})
    code, told = gate(folder, P5)
    assert (code, told["parts"][0]["verdict"], told["fixed"]) == (ExitCode.HOLDS, "violated", [])
    assert [each["states"] for each in failures(told)] == [{"failed": 2, "runs": 2}] * 2

    (folder / "patched.toml").write_text(TARGET.format(options=""))
    code, told = gate(folder, P5)
    assert (code, failures(told)) == (ExitCode.HOLDS, [])
    assert [line["line"] for line in told["fixed"]] == [2, 3]


def test_shards_of_two_definitions_of_a_target_are_not_merged(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for name in "ab":
        (tmp_path / f"own/{name}.ops").write_text(f"creat {name}\n")
    text = 'targets = ["patched.toml"]\ndisks = "one"\n[parts.own]\ncorpus = "own"\n'
    digests = []
    for shard, options in (("1/2", "noauto_da_alloc"), ("2/2", "")):
        (tmp_path / "patched.toml").write_text(TARGET.format(options=options))
        _, told = gate(tmp_path, text, "--shard", shard)
        digests.append(told["digests"]["target ext4-current"])
        (tmp_path / "gate.json").rename(tmp_path / f"gate-{shard[0]}.json")
    line = one_line(postcrash(tmp_path, "merge", "gate-1.json", "gate-2.json"), ExitCode.USAGE)
    assert line.endswith(f"'target ext4-current' is {digests[0]} in shard 1/2 and {digests[1]} in shard 2/2")


def test_shards_hand_their_findings_on(folder: Path) -> None:
    """Another machine, with a store of its own, puts the shards together and shows the stories of their findings."""
    (folder / "own.ops").write_text("creat a\nappend a 4096\n---\ncreat b\nappend b 8192\nrename b a\n")
    text = P5.replace('properties = ["P5"]', 'corpus = "own.ops"')
    code, told = gate(folder, text, "--shard", "1/1", "--bundles", "handed/on")
    (found, *_) = failures(told, judge="P5")
    (folder / "handed/on/f-0.tar.gz").write_bytes(b"damaged")
    options = ("gate.json", "--bundles", "handed/on", "--html", "gate.html", "--junit", "gate.xml")
    done = postcrash(folder, "--store", "elsewhere", "merge", *options)
    assert (done.returncode, code) == (ExitCode.VIOLATED, ExitCode.VIOLATED)
    assert "f-0.tar.gz" in done.stderr
    assert found["finding"] in (folder / "gate.html").read_text().partition('id="stories"')[2]
    (case, *_) = ElementTree.parse(folder / "gate.xml").iterfind(".//failure/..")
    assert found["cause"] in case.attrib["name"]
    assert found["operations"].splitlines()[0] in "".join(case.itertext())
    repro = postcrash(folder, "--store", "third", "repro", f"handed/on/{found['finding']}.tar.gz")
    assert repro.returncode == ExitCode.VIOLATED, repro.stderr


def test_a_merge_says_what_is_mended(folder: Path) -> None:
    """Each shard is run with a store of its own, and only one of them has the workload that fails."""
    (folder / "own").mkdir()
    (folder / "own/a.ops").write_text("creat a\n")
    (folder / "own/b.ops").write_text("creat a\nappend a 4096\n---\ncreat b\nappend b 8192\nrename b a\n")
    assert gate(folder, P5.replace('properties = ["P5"]', 'corpus = "own"'), "--accept", "known")[0] == ExitCode.HOLDS
    fixed = []
    for options in ("noauto_da_alloc", ""):
        (folder / "patched.toml").write_text(TARGET.format(options=options))
        for shard in ("1", "2"):
            command = ("--store", f"store-{shard}", "gate", "--shard", f"{shard}/2", "--json", f"{shard}.json")
            assert postcrash(folder, *command).returncode == ExitCode.HOLDS
            assert json.loads((folder / f"{shard}.json").read_text())["fixed"] == []
        assert postcrash(folder, "merge", "1.json", "2.json", "--json", "all.json").returncode == ExitCode.HOLDS
        fixed.append([line["line"] for line in json.loads((folder / "all.json").read_text())["fixed"]])
    assert fixed == [[], [2]]


def test_a_kernel_with_one_function_changed_is_red_beside_its_sister(tmp_path: Path) -> None:
    """Its fsync does nothing, nor does `commit` at a workload's end. Without any specification, its sister shows it."""
    planted, stock = mutant(tmp_path, "ext4_sync_file", RETURN_SUCCESS).path, find_kernel().path
    (tmp_path / "own.ops").write_text("creat a\nappend a 100\nfsync a\n")
    text = 'targets = ["ext4-current"]\nkernels = ["{}"]\nexpect = "kernel:{}"\n[parts.own]\ncorpus = "own.ops"\n'
    assert gate(tmp_path, text.format(stock, stock))[0] == ExitCode.HOLDS
    code, told = gate(tmp_path, text.format(planted, stock))
    assert code == ExitCode.VIOLATED
    assert {each["operations"] for each in failures(told)} == {"creat a\n"}


RUNS_ON_A_BUSY_MACHINE = 6
"""On an idle machine the first run has time for the small part."""


def test_what_there_was_no_time_for_is_undecided_and_goes_on(tmp_path: Path) -> None:
    text = 'targets = ["ext4-current"]\ndisks = "one"\n[parts.big]\nhunt = 1\ngrammar = "full"\n'
    text += '[parts.table]\nproperties = ["P4"]\n'
    done = []
    for _ in range(RUNS_ON_A_BUSY_MACHINE):
        code, told = gate(tmp_path, text, "--time", "9s")
        big, table = told["parts"]
        assert (code, big["verdict"], big["not_run"] > 0) == (ExitCode.UNDECIDED, "undecided", True)
        assert (table["verdict"], table["not_run"] > 0) in (("holds", False), ("undecided", True))
        done.append((big["workloads"], table["workloads"]))
        if done[-1][0] > done[0][0] and table["verdict"] == "holds":
            break
    else:
        pytest.fail(f"the big part does not go on, or the small one does not come to its end beside it: {done}")
    assert done == sorted(done)


def test_what_cannot_be_decided_does_not_hide_behind_what_is_known(folder: Path) -> None:
    """The only workload breaks P5, which is known. With less to spend, some of its states are not looked at."""
    (folder / "own.ops").write_text("creat a\nappend a 4096\n---\ncreat b\nappend b 8192\nrename b a\n")
    text = P5.replace('properties = ["P5"]', 'corpus = "own.ops"')
    assert gate(folder, text, "--accept", "known")[0] == ExitCode.HOLDS
    code, told = gate(folder, text + 'budget = "6"\n')
    assert code == ExitCode.UNDECIDED
    assert failures(told, verdict="violated", known="known")
    assert failures(told, verdict="undecided", known=None)


def test_an_application_is_a_part(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(
        'set_up = "echo old >f; sync"\nrun = "echo new >g; {sync} mv g f"\ncheck = "grep -q . f"\n'
        '[parameters]\nsync = ["sync g;", ""]\n'
    )
    text = 'targets = ["ext4-original"]\n[parts.save]\napplication = "app.toml"\nevery = true\n'
    code, told = gate(tmp_path, text)
    assert code == ExitCode.VIOLATED
    assert [(part["name"], part["verdict"]) for part in told["parts"]] == [
        ("save: app[sync=sync g;]", "holds"),
        ("save: app[sync=]", "violated"),
    ]
    (found,) = failures(told, judge="application")
    assert found["states"] == found["recordings"] == {"failed": 2, "runs": 2}


def test_the_first_gate_of_a_machine_runs(tmp_path: Path) -> None:
    assert postcrash(tmp_path, "init").returncode == ExitCode.HOLDS
    assert "--force" in one_line(postcrash(tmp_path, "init"), ExitCode.USAGE)
    file = tmp_path / "postcrash.toml"
    file.write_text(file.read_text().replace('"hotdep13"', '"P5"'))
    done = postcrash(tmp_path, "gate", "--part", "table", "--json", "gate.json")
    told = json.loads((tmp_path / "gate.json").read_text())
    assert list(dict.fromkeys(part["target"] for part in told["parts"])) == ["ext4-current", "btrfs", "xfs"]
    kernels = tomllib.loads(file.read_text()).get("kernels", ["default"])
    assert len({part["kernel"] for part in told["parts"]}) == len(kernels)
    assert "each failure is new" not in done.stderr
    assert not failures(told, verdict="undecided"), done.stderr
    assert "no part" not in done.stderr
    assert "'absent'" in one_line(postcrash(tmp_path, "gate", "--part", "absent"), ExitCode.USAGE)


def test_a_finding_of_the_docs_is_known_upstream_and_can_be_accepted(tmp_path: Path) -> None:
    """docs/findings/btrfs-removed-open-file.md, in a workload of other names with more in it."""
    (tmp_path / "removed.ops").write_text("creat foo\n---\ncreat bar\nopen foo\nunlink foo\nfsync @foo\n")
    text = 'targets = ["btrfs"]\nconfirm = 0\n[parts.own]\ncorpus = "removed.ops"\n'
    status, told = gate(tmp_path, text)
    (found,) = failures(told)
    assert (status, found["upstream"]) == (ExitCode.VIOLATED, "docs/findings/btrfs-removed-open-file.md")
    assert found["loss"].endswith("`open a; unlink a; fsync @a`: a is there")
    status, told = gate(tmp_path, text, "--accept-upstream")
    assert (status, failures(told)[0]["known"]) == (ExitCode.HOLDS, f"known upstream: {found['upstream']}")
