"""The harness finds planted faults, and none where there is none."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ...fuzz.planted import PLANTED
from ...fuzz.run import KEPT, fuzz, main

pytestmark = pytest.mark.slow

FAULTS = {
    "planted-index": "IndexError: index out of range (",
    "planted-loop": "it takes more than 1 s of a CPU",
    "planted-memory": "MemoryError: ",
    "planted-abort": "the process ended with ",
    "planted-lines": "a message that is not one printable line: ValueError: ",
}


@pytest.mark.parametrize(("name", "fault"), FAULTS.items())
def test_a_planted_fault_is_found(name: str, fault: str) -> None:
    run = fuzz(PLANTED[name], inputs=2000)
    assert run.fault is not None and run.fault.startswith(fault)
    assert run.content


def test_each_planted_fault_is_looked_for() -> None:
    assert PLANTED.keys() == {*FAULTS, "planted-nothing"}


def test_where_there_is_no_fault_none_is_found() -> None:
    assert fuzz(PLANTED["planted-nothing"], inputs=500).fault is None


@pytest.mark.full
@pytest.mark.parametrize(("name", "fault"), [*FAULTS.items(), ("planted-nothing", "")])
def test_a_planted_fault_is_found_with_guidance(name: str, fault: str) -> None:
    run = fuzz(PLANTED[name], seconds=20)
    assert (run.fault or "").startswith(fault) and (run.fault is None) == (not fault)
    assert fault or run.inputs > 100


def test_the_input_of_a_fault_is_kept_and_shows_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["--target", "planted-lines"]
    first = CliRunner().invoke(main, [*command, "--inputs", "500"])
    assert first.exit_code == 1
    (kept,) = (tmp_path / KEPT).iterdir()
    again = CliRunner().invoke(main, [*command, "--replay", str(kept)])
    assert again.exit_code == 1
    assert again.output.splitlines()[1] == first.output.splitlines()[1]


def test_an_unknown_reader_is_one_clear_error() -> None:
    ended = CliRunner().invoke(main, ["--target", "records"])
    assert ended.exit_code == 2
    assert "there is no reader 'records' (known: recording, " in ended.output
