"""`init` writes the files of a first gate, and takes nothing away that is there."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from postcrash.harness.cli.gating.init import init
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.gate.baseline import HEADING, load_baseline
from postcrash.harness.gate.configuration import load


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `init` in an empty folder, on a machine without stocked kernels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("POSTCRASH_CACHE", raising=False)
    monkeypatch.setattr(Session, "require", lambda *_: None)
    session = Session(tmp_path / "store")

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(init, arguments, obj=session, standalone_mode=False)
        if done.exception:
            raise done.exception
        return done.output

    return invoke


def test_the_first_gate_has_all_that_its_file_names(run: Any, tmp_path: Path) -> None:
    assert "Written: postcrash.toml" in run()
    known = tmp_path / load(tmp_path / "postcrash.toml").baseline
    assert known.read_text() == f"{HEADING}\n"
    assert load_baseline(known) == ()


def test_known_failures_that_are_there_stay(run: Any, tmp_path: Path) -> None:
    known = tmp_path / "postcrash-known.txt"
    known.write_text("# of my own\nc-0123456789abcdef violated * # why\n")
    before = known.read_bytes()
    run()
    run("--force")
    assert known.read_bytes() == before


def test_a_file_that_is_there_stays_without_force(run: Any, tmp_path: Path) -> None:
    (tmp_path / "postcrash.toml").write_text("mine")
    with pytest.raises(UsageError, match="--force writes it anew"):
        run()
    assert (tmp_path / "postcrash.toml").read_text() == "mine"
    assert not (tmp_path / "postcrash-known.txt").exists()
