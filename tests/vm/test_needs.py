"""What an application needs, beside what real file systems do: the model of a file system is never better than it."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from postcrash.apps import Application, CheckResult, Folder, Sandbox
from postcrash.apps.needs.assumptions import implications_with
from postcrash.apps.needs.space import Space, moments
from postcrash.apps.protocol import Protocol
from postcrash.apps.protocol.states import Slots
from postcrash.harness.auditing.audit import audit
from postcrash.harness.auditing.folder_plan import AuditSetup
from postcrash.harness.auditing.needs import protocol_of
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.tables.characterize import Question
from postcrash.harness.tables.needs_and_gives import gives
from postcrash.properties import property_named
from postcrash.reports.explanation import explanation
from postcrash.targets import target_named

from .command import postcrash

Asked = set[tuple[str, tuple[str, ...]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The folders of real crash states, with what had been said, that a check is asked about."""
    found: Asked = set()
    run = Sandbox.run

    def noted(self: Sandbox, folder: Folder, command: str, acknowledged: Sequence[str]) -> CheckResult:
        if command != "true":
            found.add((folder.digest, tuple(acknowledged)))
        return run(self, folder, command, acknowledged)

    monkeypatch.setattr(Sandbox, "run", noted)
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for all tests of this module, so that what a target gives is measured once."""
    return tmp_path_factory.mktemp("store")


def allowed(protocol: Protocol, names: frozenset[str]) -> Asked:
    """All folders that a file system with these properties can leave."""
    implications, slots = implications_with(protocol, names), Slots(protocol)
    return {
        (state.folder.digest, moment.outputs)
        for moment in moments(protocol, implications)
        for state in Space(slots, moment, implications).states()
    }


def application(run: str, set_up: str) -> Application:
    return Application(name="small", run=run, set_up=set_up, check="exit 0")


PROPERTIES = ("P1", "P2", "P4", "P5", "O-dir", "A-rename")
"""Those that are measured. A model with fewer properties than a file system has allows more."""


@pytest.mark.parametrize(
    ("target", "run", "set_up"),
    [
        ("ext4-current", "printf new >b; mv b a; echo 1", "printf old >a"),
        ("ext4-current", "printf x >b; sync b; echo 1; printf y >>b; mkdir d; mv b d; sync d; echo 2", ""),
        pytest.param(
            "btrfs",
            "printf x >b; sync b; echo 1; printf y >>b; mkdir d; mv b d; sync d; echo 2",
            "",
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_the_real_file_system_shows_its_model_allows(
    asked: Asked, store: Path, target: str, run: str, set_up: str
) -> None:
    small = application(run, set_up)
    protocol = protocol_of(small)
    asked.clear()
    session, how = Session(store, explainer=explanation), Exploration()
    question = Question(tuple(map(property_named, PROPERTIES)), how)
    with TerminalProgress(None) as progress:
        audit(AuditSetup(session, how, 2, progress), small, target_named(target))
        given = gives(session, target_named(target), question, 2, progress)
    model = allowed(protocol, given)
    assert len(asked) >= 3
    assert asked <= model
    assert model <= allowed(protocol, frozenset())
    assert given


def test_a_model_that_promises_too_much_is_noticed(asked: Asked, tmp_path: Path) -> None:
    """Canary: ext4 does not keep the order of data and names on every disk, so the real folders are not all allowed."""
    small = application("printf new >b; mv b a; echo 1", "printf old >a")
    protocol = protocol_of(small)
    asked.clear()
    with TerminalProgress(None) as progress:
        setup = AuditSetup(Session(tmp_path / "store", explainer=explanation), Exploration(), 2, progress)
        audit(setup, small, target_named("ext4-original"))
    assert not asked <= allowed(protocol, frozenset({"R-append-dir"}))
    assert asked <= allowed(protocol, frozenset())


QUESTION = ("replace-python", "--set", "durable=atomic", "--target", "ext4-original", "--json", "-")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for commands, so that what the target gives is measured once."""
    return tmp_path_factory.mktemp("needs")


@pytest.fixture(scope="module")
def table(folder: Path) -> dict[str, Any]:
    """What `needs --json` says of a file that is replaced without fsync."""
    outputs = ["--markdown", "table.md", "--html", "page.html"]
    ran = postcrash(folder, "needs", *QUESTION, "--set", "fsync=none", *outputs)
    assert (ran.returncode, ran.stderr) == (1, "")
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def test_needs_of_a_replaced_file_and_where_they_are_met(folder: Path, table: dict[str, Any]) -> None:
    (needs,) = table["needs"]
    assert [each["properties"] for each in needs["sets"]] == [["P5"]]
    assert needs["complete"] is True
    assert all("write of settings" in lost for failure in needs["failures"] for lost in failure["lost"])
    assert {"rename" in failure["there"] for failure in needs["failures"]} == {True}
    (original,) = table["cells"]
    assert original["standing"] == "✗"
    assert original["modelled"] == "violated"
    assert "P5" in original["prevented_by"]
    assert original["finding"].startswith("f-")
    assert (folder / "table.md").read_text().count("replace-python") >= 4
    page, _, stories = (folder / "page.html").read_text().partition('id="stories"')
    assert original["finding"] in stories
    assert re.search(r"block 0 \(write of settings\S*, call \d+", page)


def test_a_table_goes_on_after_an_interruption(folder: Path, table: dict[str, Any]) -> None:
    """The store's cell is taken as it is, so a mark that we put there shows that it was. Other questions ask anew."""
    (whole,) = table["cells"]
    (kept,) = folder.rglob("needs.json")
    kept.write_text(kept.read_text().replace(whole["because"], "kept"))
    same, other = ["--set", "fsync=none"], ["--set", "fsync=folder"]
    assert cell(folder, *same, "--resume") == {**whole, "because": "kept"}
    assert cell(folder, *other, "--resume")["because"] != "kept"
    # How many recoveries are run is not the same each time.
    assert {**cell(folder, *same), "recoveries": whole["recoveries"]} == whole


def cell(folder: Path, *more: str) -> Any:
    """The only cell of a table."""
    (only,) = json.loads(postcrash(folder, "needs", *QUESTION, *more).stdout)["cells"]
    return only


def test_needs_without_a_target_leave_no_store(tmp_path: Path) -> None:
    assert postcrash(tmp_path, "needs", "replace-python", "--set", "fsync=none").returncode == 0
    assert list(tmp_path.iterdir()) == []
