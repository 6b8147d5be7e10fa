"""What `postcrash explain` prints."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from postcrash.reports.explanation.explanation_text import render_text
from postcrash.store.explanation_data import Epoch, Evidence, Explanation, PathComparison


def printed(explanation: Explanation, width: int = 120) -> str:
    out = io.StringIO()
    render_text(explanation, Console(file=out, width=width, force_terminal=False))
    return out.getvalue()


@pytest.fixture
def explanation(crash: Any) -> Explanation:
    explained: Explanation = crash.finding.explanation
    return explained


def test_everything_is_printed(explanation: Explanation) -> None:
    text = " ".join(printed(explanation).split())
    for expected in (
        "6 commit in progress",
        "✗ lost `write B 0 5000` (bytes 0 to 5000), zeros sectors 1000 to 1016 operation 6",
        "stable jbd2 commit block (transaction 8) FUA sectors 2016 to 2024 operation 6",
        "epoch 2 ends: flush, under way at the crash",
        "Lost: 1 write ✗ `write B 0 5000`",
        "✗ A file, 5000 bytes file, 5000 bytes bytes 0 to 5000: zeros bytes 0 to 5000: those of write B 0 5000",
        "kernel log, warnings and worse <4>EXT4-fs warning (device ubdb): odd",
    ):
        assert expected in text, expected


def test_what_was_left_out_is_counted(explanation: Explanation) -> None:
    epoch = Epoch(9, "crash", (), 7)
    text = printed(
        replace(explanation, epochs=(epoch,), epochs_omitted=8, lost_omitted=3, comparison_omitted=5, failure="gone")
    )
    for expected in (
        "(8 earlier epochs)",
        "7 more writes",
        "Lost: 4 writes",
        "3 more",
        "5 more paths",
    ):
        assert expected in text
    assert "✗ gone" in text


def test_where_nothing_was_lost_it_says_what_that_means(explanation: Explanation) -> None:
    unsent = ("write B 0 5000 (operation 4)",)
    text = " ".join(printed(replace(explanation, lost=(), unsent=unsent)).split())
    assert "Lost: 0 writes All that had been sent to the disk is there." in text
    assert "write B 0 5000 (operation 4): never sent to the disk" in text


def test_where_nothing_was_sent_there_is_no_table_of_requests(explanation: Explanation) -> None:
    heading = "Requests up to the crash"
    nothing = Epoch(1, "crash", (), 0)
    assert heading in printed(explanation)
    assert heading in printed(replace(explanation, epochs=(replace(nothing, omitted=1),)))
    assert heading in printed(replace(explanation, epochs=(), epochs_omitted=1))
    assert heading not in printed(replace(explanation, epochs=(nothing,)))


def test_the_operation_in_progress_has_its_say(explanation: Explanation) -> None:
    path = PathComparison("a", ("not there",), ("not there",), ("file, 0 bytes",), False)
    assert "or, once the operation in progress is done:" in printed(replace(explanation, comparison=(path,)))


def test_what_a_reference_shows_has_a_column_of_its_own(explanation: Explanation) -> None:
    path = PathComparison("A", ("not there",), ("file, 1 bytes",), (), True, ("file, 7 bytes",))
    objected = "fsync-names: A is missing; broken in practice: fsync-keeps-names (generic/104)"
    compared = replace(explanation, reference="kernel:6.1", comparison=(path,), objections=(objected,))
    text = " ".join(printed(compared, 160).split())
    assert "path found on kernel:6.1 without a crash" in text
    assert "✗ A not there file, 7 bytes file, 1 bytes" in text
    assert f"what stands here is the nearest. ✗ {objected}" in text


def test_where_one_of_the_two_does_not_mount_it_is_said(explanation: Explanation) -> None:
    failed = replace(explanation, comparison=(), failure="mount failed with EIO", reference="kernel:6.1")
    assert "at this instant: it mounts." in printed(replace(failed, reference_said="it mounts"), 160)
    assert "What it shows at this instant is not known." in printed(failed, 160)


def test_hostile_text_cannot_move_the_cursor_or_be_markup(explanation: Explanation) -> None:
    evil = "[bold]\x1b[2J\u202e\x07[/bold]"
    path = PathComparison(evil, (evil,), (evil,), (), True)
    operation = replace(explanation.operations[0], text=evil)
    changed = replace(
        explanation, comparison=(path,), evidence=(Evidence(evil, evil),), operations=(operation,), failure=evil
    )
    changed = replace(changed, objections=(evil,))
    text = printed(changed, width=200)
    assert text.count("[bold]\\x1b[2J\\u202e\\x07[/bold]") == 8
    assert "\x1b" not in text


def test_a_narrow_terminal_loses_nothing(explanation: Explanation) -> None:
    assert "1016" in printed(explanation, width=40)


def test_a_name_stands_before_the_workload_s_bytes_and_in_place_of_what_we_made_out(explanation: Explanation) -> None:
    (lost,) = explanation.lost
    named = replace(lost, name="data of A, bytes 0 to 8192")
    commit = replace(lost, what="jbd2 commit block (transaction 8)", name="journal commit block of transaction 8")
    text = " ".join(printed(replace(explanation, lost=(named, commit), named_by="debugfs")).split())
    assert "✗ data of A, bytes 0 to 8192: `write B 0 5000` (bytes 0 to 5000), zeros, sectors 1000" in text
    assert "✗ journal commit block of transaction 8, sectors 1000" in text
    assert "as told by debugfs" in text


def test_why_there_are_no_names_is_told(explanation: Explanation) -> None:
    problem = "debugfs is not installed: apt-get install e2fsprogs"
    assert problem in printed(replace(explanation, named_by="debugfs", unnamed=problem), width=200)
    assert "told by" not in printed(explanation)
