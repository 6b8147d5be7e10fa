"""A gate's result as workflow commands of GitHub, which become annotations of a run.

GitHub shows ten of each kind for a step, and nobody reads more: there are ten at most, one for each cause over all
targets and kernels.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from postcrash.model.text import INVOCATION, cut, one_line
from postcrash.reports.gate.failure_text import commands, facts, fixed_line, headline, plural
from postcrash.reports.gate.groups import CauseGroup, cause_groups
from postcrash.store.gate_run import FixedLine, GateRun

ANNOTATIONS_MAX = 10
_TITLE_MAX = 200
_TEXT_MAX = 4000
_PARTS_MAX = 10
_Level = Literal["error", "warning", "notice"]


def github(run: GateRun, invocation: str = INVOCATION) -> Iterator[str]:
    """The lines, without their ends: errors, then warnings for what is undecided, then a notice for fixed lines."""
    groups = [group for group in cause_groups(run) if group.shown.is_new]
    room = ANNOTATIONS_MAX - bool(run.fixed)
    shown = groups if len(groups) <= room else groups[: room - 1]
    yield from (_of_group(group, invocation) for group in shown)
    if left_out := groups[len(shown) :]:
        level: _Level = "error" if left_out[0].shown.is_violated else "warning"
        title = f"{plural(len(left_out), 'more cause')}"
        yield _command(level, title, "The summary of this run and its JSON have all of them.")
    if run.fixed:
        yield _command("notice", f"{plural(len(run.fixed), 'known failure')} fixed", _fixed(run.fixed, run.baseline))


def _of_group(group: CauseGroup, invocation: str) -> str:
    shown = group.shown
    parts = list(group.told_by_part())
    more = [f"and in {plural(len(parts) - _PARTS_MAX, 'more part')}"] if len(parts) > _PARTS_MAX else []
    lines = [headline(shown), *facts(shown), *parts[:_PARTS_MAX], *more, *commands(shown, invocation)]
    return _command("error" if shown.is_violated else "warning", headline(shown), "\n".join(lines))


def _fixed(lines: Sequence[FixedLine], baseline: str) -> str:
    return "\n".join([f"{one_line(baseline)} accepts failures that are not there any more:", *map(fixed_line, lines)])


def _command(level: _Level, title: str, text: str) -> str:
    return f"::{level} title={_property(cut(title, _TITLE_MAX))}::{_data(cut(text, _TEXT_MAX))}"


def _data(text: str) -> str:
    """Escaped as the runner wants what is behind the second `::`. It reads these three back, and nothing else."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escaped as the runner wants values such as the title."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
