"""A gate's result as workflow commands of GitHub, which become annotations of a run.

GitHub shows ten of each kind for a step. So there are ten at most, one for each cause over all targets and kernels.
"""

from collections.abc import Iterator

from postcrash.model.numbers import plural
from postcrash.model.text import INVOCATION, cut, one_line
from postcrash.reports.gate.failure_text import commands, facts, fixed_line, headline
from postcrash.reports.gate.groups import CauseGroup, cause_groups
from postcrash.store.gate_run import Failure, GateRun

ANNOTATIONS_MAX = 10
_TITLE_MAX = 200
_TEXT_MAX = 4000
_PARTS_MAX = 10


def github(run: GateRun, invocation: str = INVOCATION) -> Iterator[str]:
    """The lines, without their ends: errors, then warnings for what is undecided, then a notice for fixed lines."""
    groups = [group for group in cause_groups(run) if group.representative.is_new]
    room = ANNOTATIONS_MAX - bool(run.fixed)
    shown = groups if len(groups) <= room else groups[: room - 1]
    yield from (_annotation(group, invocation) for group in shown)
    if omitted := groups[len(shown) :]:
        title = plural(len(omitted), "more cause")
        yield _command(
            _level(omitted[0].representative), title, "The summary of this run and its JSON have all of them."
        )
    if run.fixed:
        lines = [f"{one_line(run.baseline)} accepts failures that are not there any more:", *map(fixed_line, run.fixed)]
        yield _command("notice", f"{plural(len(run.fixed), 'known failure')} fixed", "\n".join(lines))


def _annotation(group: CauseGroup, invocation: str) -> str:
    shown = group.representative
    lines = [headline(shown), *facts(shown), *group.part_lines(_PARTS_MAX), *commands(shown, invocation)]
    return _command(_level(shown), headline(shown), "\n".join(lines))


def _level(failure: Failure) -> str:
    return "error" if failure.is_violated else "warning"


def _command(level: str, title: str, text: str) -> str:
    return f"::{level} title={_property(cut(title, _TITLE_MAX))}::{_data(cut(text, _TEXT_MAX))}"


def _data(text: str) -> str:
    """Escapes the text behind the second `::`. The runner unescapes these three sequences, and no others."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escapes the value of a property such as the title."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
