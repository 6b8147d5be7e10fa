"""Workflow commands, read back as GitHub's runner reads them."""

import re
from collections.abc import Callable

import pytest

from postcrash.reports.gate.github import ANNOTATIONS_MAX, github
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]
_COMMAND = re.compile(r"::(?P<level>\w+) title=(?P<title>[^:,]*?)::(?P<text>.*)", re.DOTALL)


def unescaped(text: str, *, is_property: bool = False) -> str:
    """As the runner does it: `%25` last."""
    pairs = [("%0D", "\r"), ("%0A", "\n"), *([("%3A", ":"), ("%2C", ",")] if is_property else []), ("%25", "%")]
    for escaped, character in pairs:
        text = text.replace(escaped, character)
    return text


def read(run: GateRun) -> list[tuple[str, str, str]]:
    """Level, title and text of each annotation."""
    found = []
    for line in github(run):
        assert "\n" not in line and "\r" not in line
        command = _COMMAND.fullmatch(line)
        assert command is not None, line
        found.append((command["level"], unescaped(command["title"], is_property=True), unescaped(command["text"])))
    return found


def test_one_annotation_for_each_cause(mixed: GateRun) -> None:
    error, warning, notice = read(mixed)
    assert error[:2] == ("error", "P5: PATH is N bytes long; of its bytes, N to N are zero")
    lines = error[2].splitlines()
    assert "12 workloads of hunt-small on ext4-current, UML 6.1.176: f-0000000000000001" in lines
    assert "3 workloads of hunt-small on ext4-current, QEMU/TCG 6.12.1: f-0000000000000001" in lines
    assert "postcrash explain f-0000000000000001" in lines
    assert warning[:2] == ("warning", "undecided: N recoveries were not enough (durability, mounts)")
    assert notice[:2] == ("notice", "1 known failure fixed")
    assert "line 7 (c-00000000000000ff): was mended" in notice[2]


def test_what_is_known_is_no_annotation(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    assert read(make_run(make_part(verdict="violated", failures=(make_failure(known="bug 7"),)))) == []


@pytest.mark.parametrize("fixed", [0, 1, 30])
@pytest.mark.parametrize("causes", [0, 1, 9, 10, 11, 200])
def test_there_are_ten_at_most_and_none_is_forgotten(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure, causes: int, fixed: int
) -> None:
    failures = tuple(make_failure(f"c-{number:016x}", judge=f"J{number}") for number in range(causes))
    lines = tuple(FixedLine(line=number + 1, cause="c", why="w") for number in range(fixed))
    run = make_run(make_part(verdict="violated" if causes else "holds", failures=failures), fixed=lines)
    found = read(run)
    assert len(found) == min(ANNOTATIONS_MAX, causes + bool(fixed))
    errors = [title for level, title, _ in found if level == "error"]
    more = re.fullmatch(r"(\d+) more causes?", errors[-1]) if errors else None
    assert (int(more[1]) + len(errors) - 1 if more else len(errors)) == causes


def test_errors_come_first(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure, make_undecided: MakeFailure
) -> None:
    undecided = tuple(make_undecided(f"c-{number:016x}", message=f"{number}", workloads=99) for number in range(20))
    run = make_run(make_part(verdict="violated", failures=(*undecided, make_failure(f"c-{'f' * 16}"))))
    assert [level for level, _, _ in read(run)] == ["error"] + ["warning"] * 9
    assert read(run)[-1][1] == "12 more causes"


def test_texts_stay_texts(hostile: GateRun) -> None:
    assert [level for level, _, _ in read(hostile)] == ["error", "warning", "notice"]
    for _, title, text in read(hostile):
        assert title.isprintable() and text.replace("\n", "").isprintable()
    assert "<script>x</script> # SKIP\\r ::error::x%0A ]]> & \\x00" in read(hostile)[0][1]


def test_long_texts_are_cut(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    long = make_failure(message="x" * 100_000, judge="y" * 100_000)
    parts = [make_part(name=f"p{number}", verdict="violated", failures=(long,)) for number in range(30)]
    ((_, title, text),) = read(make_run(*parts))
    assert len(title) < 300 and len(text) < 5000


def test_many_parts_are_counted(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    parts = [make_part(name=f"p{number}", verdict="violated", failures=(make_failure(),)) for number in range(30)]
    ((_, _, text),) = read(make_run(*parts))
    assert "and in 20 more parts" in text.splitlines()
