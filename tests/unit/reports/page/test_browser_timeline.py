"""When things happened, in a real browser: system calls, writes that are torn, and the trace that can be saved."""

import json
import urllib.parse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from postcrash.reports.explanation.explanation import explain
from postcrash.reports.explanation.perfetto import trace_events
from postcrash.reports.explanation.timeline import timeline
from postcrash.reports.page.story import Story
from postcrash.reports.tables.matrix import Matrix

from .conftest import Reader, render_matrix

pytestmark = pytest.mark.slow


def test_system_calls_of_a_program_are_told_and_drawn(
    reader: Reader, story: Story, crash: Any, calling: Any, make_matrix: Callable[..., Matrix]
) -> None:
    told = replace(story.finding, explanation=explain(crash.finding, calling, crash.base))
    with_calls = Story(told, timeline(crash.finding, calling, crash.base))
    page = reader.open(render_matrix(make_matrix([]), [with_calls]), f"#{told.id}")
    expect(page.get_by_text("The last system calls on the target")).to_be_visible()
    expect(page.locator(".calls li")).to_have_text(
        [
            'openat("B", O_WRONLY|O_CREAT) = 3 thread 1, sh',
            'rename("B", "A") = 0 thread 1, sh',
            "sync() in progress thread 1, sh",
            'unlink("no") = ENOENT (No such file or directory) thread 2, mv',
        ]
    )
    lanes = page.locator(".chart svg").first
    assert lanes.locator("rect.call").count() == 3 and lanes.locator("rect.call.open").count() == 1
    assert "[1] sync() (thread 1, sh: in progress at the crash)" in "".join(lanes.locator("text").all_text_contents())
    expect(page.locator(".legend")).to_contain_text("system call of a thread [1]")


def test_a_write_kept_in_part_is_torn(reader: Reader, crash: Any, make_matrix: Callable[..., Matrix]) -> None:
    finding = replace(crash.finding, choices=((1, 1),))
    finding = replace(finding, explanation=explain(finding, crash.recording, crash.base))
    story = Story(finding, timeline(finding, crash.recording, crash.base))
    page = reader.open(render_matrix(make_matrix([]), [story]), f"#{finding.id}")
    lanes = page.locator(".chart svg").first
    assert lanes.locator("rect.torn.kept").count() == lanes.locator("rect.torn.lost").count() == 1
    assert sum(text.startswith("◐ `write B") for text in lanes.locator("text.label").all_text_contents()) == 2


def test_the_trace_on_the_page_is_the_one_that_explain_writes(
    reader: Reader, crash: Any, calling: Any, make_matrix: Callable[..., Matrix]
) -> None:
    torn = replace(crash.finding, choices=((1, 1),))
    for finding, recording in ((crash.finding, crash.recording), (torn, crash.recording), (crash.finding, calling)):
        explanation, moments = explain(finding, recording, crash.base), timeline(finding, recording, crash.base)
        told = replace(finding, explanation=explanation)
        page = reader.open(render_matrix(make_matrix([]), [Story(told, moments)]), f"#{told.id}")
        href = page.locator(f"a[download='{told.id}.trace.json']").get_attribute("href") or ""
        expected = trace_events(f"{told.id}: {told.checker} on {told.target}", explanation, moments)
        assert json.loads(urllib.parse.unquote(href.partition(",")[2])) == expected
