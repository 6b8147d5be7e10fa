"""The details of findings in a report: a block of JSON, from which the page makes each story when it is opened."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from postcrash.model.text import INVOCATION
from postcrash.reports.explanation import explanation_text
from postcrash.reports.explanation.timeline import Timeline
from postcrash.store.json_codec import Json, to_plain
from postcrash.store.records import Finding

_IN_SCRIPT = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
"""Escapes for what HTML could take for the end of a script element or for a comment."""
_BLOCK = '{"texts":%s,"lines":%s,"stories":{%s}}'


@dataclass(frozen=True, slots=True)
class Story:
    """A finding with details from its recording.

    timeline   None if the recording is not there
    script     the shell script that may show it without postcrash; empty if there is none
    no_script  why there is none; empty if there is one
    """

    finding: Finding
    timeline: Timeline | None = None
    script: str = ""
    no_script: str = ""


def story_block(stories: Iterable[Story], bytes_max: int, invocation: str = INVOCATION) -> str:
    """The `stories` as JSON in ASCII, for a script element.

    `invocation` is how postcrash is called with their store. A story that would make the block longer than `bytes_max`
    is left out, and the next ones are tried.
    """
    texts = _text(
        {
            "nothing_lost": explanation_text.ALL_THERE,
            "passes_with_it": explanation_text.PASSES_WITH_IT,
            "unsent": explanation_text.UNSENT,
            "invocation": invocation,
        }
    )
    lines: dict[str, int] = {}
    parts: list[str] = []
    room = bytes_max - len(texts) - len(_BLOCK)
    for story in stories:
        lines_before = len(lines)
        part = f"{_text(story.finding.id)}:{_text(_plain(story, lines))}"
        added = list(lines)[lines_before:]
        needed = sum(len(_text(text)) + 1 for text in added) + len(part) + 1
        if needed <= room:
            room -= needed
            parts.append(part)
        else:
            for line in added:
                del lines[line]
    return _BLOCK % (texts, _text(list(lines)), ",".join(parts))


def _plain(story: Story, lines: dict[str, int]) -> Json:
    """The story as decoded JSON. Scripts have most lines in common, so each is a list of numbers of `lines`.

    The finding is a text of JSON: the page offers it as a download, and JavaScript would round large numbers in it.
    """
    explanation = story.finding.explanation
    return {
        "finding": json.dumps(story.finding.to_json(), separators=(",", ":")),
        "timeline": None if story.timeline is None else to_plain(story.timeline),
        "script": [lines.setdefault(line, len(lines)) for line in story.script.splitlines()],
        "no_script": story.no_script,
        "notes": {
            "names": explanation_text.names_note(explanation) if explanation and explanation.named_by else "",
            "reference": explanation_text.reference_note(explanation) if explanation and explanation.reference else "",
        },
    }


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":")).translate(_IN_SCRIPT)
