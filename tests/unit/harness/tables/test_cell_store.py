"""A cell of needs times gives is taken again only if the files that the application's commands name are the same."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from postcrash.apps import Application
from postcrash.apps.needs import SearchLimits
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.tables.cell_store import KeptCells, files_named
from postcrash.model import Verdict
from postcrash.store.table_rows import NeedsCell
from postcrash.targets import BaseImage, target_named


def test_a_cell_is_kept_until_a_file_that_a_command_names_changes(tmp_path: Path) -> None:
    script = tmp_path / "a script.sh"
    script.write_text("echo one")
    application = Application("mine", f"sh '{script}' x", "true", folder=tmp_path)
    session: Any = SimpleNamespace(
        kernel=SimpleNamespace(label="UML"),
        guest=lambda: "guest",
        base=lambda target: BaseImage(Path("base"), "b-0"),
        store=SimpleNamespace(folder=tmp_path),
    )
    target, kept = target_named("xfs"), KeptCells(session, Exploration(), SearchLimits(1, 1))
    cell = NeedsCell(
        application="mine",
        target="xfs",
        real=Verdict.HOLDS,
        modelled=Verdict.HOLDS,
        because="",
        lacking=(),
        states=1,
        recoveries=1,
        folders=1,
        finding="",
    )
    kept.keep(application, target, cell)
    assert kept.cell(application, target) == cell
    script.write_text("echo two")
    assert kept.cell(application, target) is None


def test_programs_count_and_a_command_that_is_no_command_does_no_harm() -> None:
    application = Application("mine", "/bin/sh -c 'it", "true", programs=("/bin/true", "/not/there"))
    assert files_named(application) == [Path("/bin/sh"), Path("/bin/true")]
