"""Output files are whole or absent, and only files are ever replaced."""

import os
import threading
from pathlib import Path

import click
import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.files.output import QUIET, count_text, replacing, say, write_json, write_text


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "new" / "out.txt"
    write_text(str(place), "one")
    write_text(str(place), "two")
    assert place.read_text() == "two"
    assert list(place.parent.iterdir()) == [place]


def test_what_is_not_written_to_its_end_replaces_nothing(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.write_text("one")
    with pytest.raises(TypeError), replacing(place) as file:
        file.writelines([b"tw", "o"])  # type: ignore[list-item]
    assert place.read_text() == "one"
    assert list(tmp_path.iterdir()) == [place]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(str(tmp_path / "link"), "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_json(str(pipe), {"a": 1})
    reader.join()
    assert read == ['{\n  "a": 1\n}\n']
    assert pipe.is_fifo()


def test_a_device_stays_a_device() -> None:
    write_text("/dev/null", "text")
    assert Path("/dev/null").is_char_device()


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=r"cannot write .*file/out"):
        write_text(str(tmp_path / "file" / "out"), "text")
    with pytest.raises(InfrastructureError, match="cannot write"):
        write_text(str(tmp_path), "text")


def test_a_count_of_crash_states_is_legible_however_large() -> None:
    shown = {0: "0", 2**60: str(2**60), 10**40 - 1: "9" * 40, 10**40: "about 10^40", 2**200_000: "about 10^60206"}
    assert list(map(count_text, shown)) == list(shown.values())


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_command_has_no_notes(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Group("outer")) as outer:
        outer.meta[QUIET] = quiet
        with click.Context(click.Command("inner"), parent=outer):
            say("a note")
    assert capsys.readouterr() == ("", "" if quiet else "postcrash: a note\n")


def test_a_message_cannot_move_the_cursor_or_become_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[31mno\r\x00\u202e :bug: [bold]\nmore lines")
    assert capsys.readouterr().err == "postcrash: \\x1b[31mno\\r\\x00\\u202e :bug: [bold]\nmore lines\n"


def test_an_error_is_told_when_no_command_runs_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    say("an error")
    assert capsys.readouterr().err == "postcrash: an error\n"
