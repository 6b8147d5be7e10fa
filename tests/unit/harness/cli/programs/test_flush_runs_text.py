"""Runs without flushes in words."""

import io
from dataclasses import replace

from rich.console import Console

from postcrash.apps.protocol import Step
from postcrash.harness.auditing.flush_runs import FlushRun, RunsWithout
from postcrash.harness.cli.programs.flush_runs_text import print_runs, run_text, runs_to_json
from postcrash.model import Verdict

from ...cells import audit_cell

FSYNC = Step(3, "fsync", "[a]", 1, 1, (), everything=False, outputs=(), known=1)
SYNC = replace(FSYNC, number=5, call="sync", about="", everything=True)
CELL = audit_cell()
HOLDS = FlushRun({1: FSYNC}, ('fsync("[a]")',), CELL)
VIOLATED = FlushRun(
    {2: SYNC}, ("sync()",), replace(CELL, verdict=Verdict.VIOLATED, message="it is lost", finding="f-1")
)
UNDECIDED = FlushRun({2: SYNC}, (), replace(CELL, verdict=Verdict.UNDECIDED, message="no budget"))


def test_a_run_says_what_it_left_out_and_what_came_of_it() -> None:
    assert run_text(HOLDS) == (
        "✓ without fsync of [a], call 3: all 1,200 crash states are fine (30 recoveries, 5 folders) [--without-flush 1]"
    )
    assert run_text(VIOLATED) == "✗ without sync, call 5: it is lost (f-1) [--without-flush 2]"
    assert run_text(UNDECIDED) == "? without sync, call 5: no budget [--without-flush 2]"
    doubtful = replace(HOLDS, doubt="another one was left out")
    assert run_text(doubtful).startswith("? without fsync of [a], call 3: another one was left out")


def test_what_a_program_says_stays_on_its_line() -> None:
    hostile = FlushRun({1: FSYNC}, (), None, "it ends with \x1b[2J\nsecond line")
    assert len(run_text(hostile).splitlines()) == 1
    assert "\x1b" not in run_text(hostile)


def printed(runs: RunsWithout) -> str:
    text = io.StringIO()
    print_runs(Console(file=text, width=200), runs)
    return text.getvalue()


def test_only_what_was_decided_counts_for_the_check() -> None:
    text = printed(RunsWithout("ext4", (HOLDS, VIOLATED, UNDECIDED), kept=(FSYNC,) * 7))
    assert "the check notices the loss of 1 of 2 flushes there" in text
    assert text.count("not left out: fsync of [a], call 3") == 5
    assert "… and 2 more" in text
    assert "together" not in text
    assert "no two of them were found that can go together" in printed(RunsWithout("ext4", (HOLDS, HOLDS)))
    assert "can go together: ✓ without fsync of [a]" in printed(RunsWithout("ext4", (HOLDS, HOLDS), HOLDS))


def test_json_has_the_numbers_and_the_evidence() -> None:
    told = runs_to_json(RunsWithout("ext4", (VIOLATED, FlushRun({1: FSYNC}, (), None, "it cannot be run")), HOLDS))
    assert told["doubt"] == ""
    assert told["alone"] == [
        {
            **{"flushes": [2], "calls": [5], "left_out": ["sync()"], "verdict": "violated"},
            **{"outcome": "it is lost (f-1)", "states": "1200", "recoveries": 30, "finding": "f-1"},
        },
        {**{"flushes": [1], "calls": [3], "left_out": [], "verdict": "undecided"}, "outcome": "it cannot be run"},
    ]


def test_why_there_are_no_runs_is_said() -> None:
    assert printed(RunsWithout("ext4", doubt="others are made")) == "not run on ext4 without flushes: others are made\n"
