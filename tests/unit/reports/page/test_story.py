"""Stories as one block of JSON: nothing ends the script element, nothing is lost, and there is an end to its length."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.reports.page.story import Story, story_block
from postcrash.store.records import Finding

from .conftest import EVIL, SCRIPT

TEMPLATES = Path(__file__).parents[4] / "reports/page/templates"


def told(block: str) -> dict[str, Any]:
    return dict(json.loads(block)["stories"])


def test_a_story_is_whole(story: Story) -> None:
    block = story_block([story], 10**6)
    (one,) = told(block).values()
    assert Finding.from_json(json.loads(one["finding"])) == story.finding
    assert one["timeline"]["crash"] == 18
    assert [json.loads(block)["lines"][number] for number in one["script"]] == SCRIPT.splitlines()


def test_the_page_knows_how_postcrash_is_called_with_the_store(story: Story) -> None:
    block = story_block([story], 10**6, "postcrash --store 'my store'")
    assert json.loads(block)["texts"]["invocation"] == "postcrash --store 'my store'"
    assert "${texts.invocation} repro --flip" in (TEMPLATES / "story.js").read_text(encoding="utf-8")


def test_hostile_text_does_not_end_the_script(evil_story: Story) -> None:
    block = story_block([evil_story], 10**6)
    assert block.isascii() and not set("<>&") & set(block)
    (one,) = told(block).values()
    assert json.loads(one["finding"])["message"] == EVIL


def test_scripts_share_their_lines(story: Story) -> None:
    other = replace(story, finding=replace(story.finding, id="f-0000000000000001"), script=SCRIPT + "sync\n")
    block = story_block([story, other], 10**6)
    assert block.count("mkfs.ext4") == 1
    assert [one["script"] for one in told(block).values()] == [[0, 1, 2], [0, 1, 2, 3]]


@pytest.mark.parametrize("room", [0, 300, 6_000, 9_000, 14_000, 20_000])
def test_it_is_never_longer_than_it_may_be(story: Story, room: int) -> None:
    stories = [
        replace(story, finding=replace(story.finding, id=f"f-{number:016x}"), script=f"{number}\n" * 9)
        for number in range(4)
    ]
    block = story_block(stories, room)
    empty = len(story_block([], room))
    assert len(block) <= max(room, empty)
    lines = json.loads(block)["lines"]
    assert [lines[one["script"][0]] for one in told(block).values()] == [str(n) for n in range(len(told(block)))]


def test_a_story_that_is_too_long_leaves_room_for_others(story: Story) -> None:
    long = replace(story, finding=replace(story.finding, id="f-0000000000000001", message="x" * 50_000))
    assert list(told(story_block([long, story], 20_000))) == [story.finding.id]


def test_a_finding_without_explanation_has_a_story(story: Story) -> None:
    bare = Story(replace(story.finding, explanation=None))
    (one,) = told(story_block([bare], 10**6)).values()
    assert (one["timeline"], one["script"], one["notes"]) == (None, [], {"names": "", "reference": ""})
