"""The console of a lost guest is kept whole, once, under a name that its text gives."""

from pathlib import Path

import pytest

from postcrash.store.consoles import CONSOLES, Casualty, console_file, console_text, keep_console

LOST = Casualty("the guest hangs", "Oops\n", "stack 1\n")


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        (LOST, "the guest hangs\n\nOops\n\nstack 1\n"),
        (Casualty("the guest hangs"), "the guest hangs\n"),
        (Casualty("hangs", " \n", "stack"), "hangs\n\nstack\n"),
        (Casualty("hangs", "\n a\n  b \n\n"), "hangs\n\na\n  b\n"),
    ],
)
def test_the_text_has_what_there_is(lost: Casualty, text: str) -> None:
    assert console_text(lost) == text


def test_equal_texts_have_one_file_and_others_have_another(tmp_path: Path) -> None:
    names = {console_file(each) for each in (LOST, Casualty("the guest hangs", "Oops", "stack 1"))}
    assert len(names) == 1
    others = [Casualty("its kernel died", LOST.console, LOST.stacks), Casualty(LOST.what, LOST.console, "stack 2")]
    assert len(names.union(map(console_file, others))) == 3
    places = {keep_console(tmp_path, each) for each in (LOST, LOST, *others)}
    assert places == set((tmp_path / CONSOLES).iterdir()) and len(places) == 3


def test_it_is_where_reports_say(tmp_path: Path) -> None:
    place = keep_console(tmp_path, LOST)
    assert place == tmp_path / console_file(LOST)
    assert place.read_text() == console_text(LOST)


def test_what_is_no_text_is_kept_as_well_as_it_can_be(tmp_path: Path) -> None:
    assert keep_console(tmp_path, Casualty("hangs", "a\udcffb")).read_text() == "hangs\n\na?b\n"


def test_a_console_that_is_kept_is_not_written_again(tmp_path: Path) -> None:
    place = keep_console(tmp_path, LOST)
    place.write_text("kept")
    assert keep_console(tmp_path, LOST).read_text() == "kept"


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / CONSOLES).write_text("")
    with pytest.raises(OSError, match=CONSOLES):
        keep_console(tmp_path, LOST)
