"""What is held against a file system: the levels of `--expect`."""

from typing import Literal

from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.harness.judges import CheckerJudge
from postcrash.model import Verdict
from postcrash.properties.promises import practice_of, said_of, standing_text
from postcrash.targets import Target

Level = Literal["documents", "practice"]
LEVELS: dict[Level, str] = {
    "documents": "what manual pages and the kernel's documentation promise",
    "practice": "also what developers of Linux's file systems hold each other to in fstests",
}


def checker_judges(level: Level, target: Target, model: str) -> tuple[CheckerJudge, ...]:
    """The checkers of a level. Those of practice only where a rule says that `target` is held to it."""
    practice = PRACTICE if level == "practice" else ()
    held_to = (checker for checker in practice if practice_of(target, model, checker.name))
    return tuple(map(CheckerJudge, (*CHECKERS, *held_to)))


def standing_of(target: Target, model: str, judge: str, verdict: Verdict) -> str:
    """What a verdict means beside what is promised or held to in practice, with the rule; empty if undecided."""
    held_to = practice_of(target, model, judge)
    if held_to is None or verdict is Verdict.UNDECIDED:
        return standing_text(said_of(target, model, judge), verdict)
    return f"{'kept' if verdict is Verdict.HOLDS else 'broken'} in practice: {held_to.rule} ({held_to.source})"
