"""Markdown, as another program renders it."""

import re
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from postcrash.reports.gate.markdown import ITEMS_MAX, markdown
from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part

MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]
OURS = {"<details>", "</details>", "<summary>", "</summary>"}


def html(run: GateRun) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(markdown(run)))


def test_the_first_line_has_the_verdict_and_the_counts(mixed: GateRun, green: GateRun) -> None:
    assert markdown(mixed).splitlines()[0] == (
        "**✗ VIOLATED**: 2 new, 1 undecided, 2 known, 1 fixed; "
        "160 workloads, about 10^22 crash states, 480 recoveries, 62 s"
    )
    assert markdown(green).startswith("**✓ HOLDS**: 0 new, 0 undecided, 0 known, 0 fixed; ")


def test_the_table_has_a_row_for_each_part(mixed: GateRun) -> None:
    rows = re.findall(r"<tr>\s*<td>.*?</tr>", html(mixed), re.DOTALL)
    cells = [re.findall("<td>(.*?)</td>", row) for row in rows]
    assert cells[0] == [
        *("hunt-small", "ext4-current", "UML 6.1.176", "cache", "✗ VIOLATED"),
        *("1", "1", "1", "40", "about 10^21", "120"),
    ]
    assert [row[4] for row in cells] == ["✗ VIOLATED", "✗ VIOLATED", "✓ HOLDS", "✓ HOLDS"]


def test_a_new_failure_has_its_workload_and_its_commands(mixed: GateRun) -> None:
    text = html(mixed)
    section = text[text.index("<h2>New failures") : text.index("<h2>Undecided")]
    assert "<h3>P5: PATH is N bytes long; of its bytes, N to N are zero</h3>" in section
    assert "creat A\n---\ncreat B\nrename B A\n</code>" in section
    assert "postcrash explain f-0000000000000001\npostcrash repro f-0000000000000001\n</code>" in section
    assert "<li>3 workloads of hunt-small on ext4-current, QEMU/TCG 6.12.1: f-0000000000000001</li>" in section


def test_what_is_known_or_fixed_is_folded(mixed: GateRun) -> None:
    text = html(mixed)
    folded = text[text.index("<details>") :]
    assert "known: see bug 7" in folded and "known: too large" in folded
    assert "line 7 (c-00000000000000ff): was mended" in folded
    assert text.count("<details>") == text.count("</details>") == 2


def test_what_holds_has_no_sections(green: GateRun) -> None:
    assert "##" not in markdown(green) and "<details>" not in markdown(green)


def test_what_no_failure_explains_is_told(make_run: MakeRun, make_part: MakePart) -> None:
    run = make_run(make_part(verdict="undecided", not_run=4))
    assert "<li>hunt-small on ext4-current, UML 6.1.176: 4 workloads not run</li>" in html(run)


def test_texts_stay_texts(hostile: GateRun) -> None:
    text = html(hostile)
    assert set(re.findall("</?(?:script|details|summary)>", text)) <= OURS
    assert text.count("<table>") == 1 and text.count("<tr>") == 2
    assert len(re.findall("<td>", text)) == 11
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("operations", ["```\n<script>x</script>\n```", "~~~~\n````` \n", "a\n```text"])
def test_no_workload_leaves_its_block(
    make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure, operations: str
) -> None:
    failure = make_failure(operations=operations, finding="")
    rendered = html(make_run(make_part(verdict="violated", failures=(failure,))))
    assert rendered.count("<pre>") == 1 and "<script>" not in rendered


def test_github_takes_the_largest(make_run: MakeRun, make_part: MakePart, make_failure: MakeFailure) -> None:
    """A step's summary has one mebibyte at most."""
    long = "\U0001f4a5" * 2_000
    causes = [f"c-{number:016x}" for number in range(6 * ITEMS_MAX)]
    words = {"message": long, "standing": long, "lost": (long,) * 9, "name": long, "operations": long}
    sorts = [{"known": long}, {"verdict": "undecided"}, {}]
    failures = tuple(
        make_failure(cause, **{**words, "judge": f"{number}{long}"}, **sorts[number % 3])
        for number, cause in enumerate(causes)
    )
    parts = [
        make_part(name=f"{number}{long}", target=long, kernel=long, verdict="violated", failures=failures)
        for number in range(200)
    ]
    fixed = tuple(FixedLine(line=1, cause=long, why=long) for _ in range(100))
    run = make_run(*parts, fixed=fixed, file=long, baseline=long, version=long)
    text = markdown(run)
    assert len(text.encode()) < 1024 * 1024
    assert "And 100 more" in text and text.count("And 20 more") == 3 and "And 80 more" in text
