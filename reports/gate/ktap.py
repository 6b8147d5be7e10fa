"""A gate's result as KTAP, version 1, the kernel's form of the Test Anything Protocol (docs.kernel.org/dev-tools/ktap).

A part is a test with subtests. Results are told so that each reader understands them:

- What is violated is `not ok`.
- What is undecided is `not ok … # ERROR`. The specification has no word for it; this is its word for a test that could
  not be carried out. A reader that does not know ERROR takes the line for a failure, as the specification wants it.
- What is known is `ok … # XFAIL`, as the kernel's selftests say it: it was expected to fail. A reader that does not
  know XFAIL takes it for passed, so the gate passes there too.
- What was never put to the test is `ok … # SKIP`, and so is a part of which nothing was.

The line `# Subtest` is KUnit's name for the subtests, and a diagnostic line for others. Before a result line there are
diagnostic lines. Texts hold no `#`, because a reader looks behind it for a word such as SKIP.
"""

from collections.abc import Iterable, Iterator

from postcrash.model.text import INVOCATION, one_line
from postcrash.reports.gate.failure_text import covered, fixed_line, sorts
from postcrash.reports.gate.sections import FAILED, Item, Section, Status, sections
from postcrash.store.gate_run import GateRun

_VERSION = "KTAP version 1"
_INDENT = "  "
_DIRECTIVES: dict[Status, str] = {"undecided": "ERROR ", "known": "XFAIL ", "untested": "SKIP "}


def ktap(run: GateRun, invocation: str = INVOCATION) -> Iterator[str]:
    """The lines, without their ends."""
    found = sections(run, invocation)
    yield _VERSION
    yield f"1..{len(found)}"
    for number, section in enumerate(found, 1):
        yield from (f"{_INDENT}{line}" for line in _subtests(section))
        yield _result(section.is_failed, number, section.title, _of_all(section))
    yield from _diagnostics(f"fixed: {fixed_line(line)}" for line in run.fixed)
    yield from _diagnostics([f"{run.verdict.name}: {sorts(run)}: {covered(run)}"])


def _subtests(section: Section) -> Iterator[str]:
    yield _VERSION
    yield f"# Subtest: {_description(section.title)}"
    yield f"1..{len(section.items)}"
    for number, item in enumerate(section.items, 1):
        yield from _diagnostics(item.text.splitlines())
        yield _result(item.status in FAILED, number, item.name, _behind(item))


def _result(is_failed: bool, number: int, name: str, behind: str) -> str:
    line = f"{'not ok' if is_failed else 'ok'} {number} {_description(name)}"
    return f"{line} # {behind}" if behind else line


def _behind(item: Item) -> str:
    """What stands behind `#`. A judge's message does not come first there: it could begin with a word such as SKIP."""
    if item.status == "violated":
        return ""
    return _DIRECTIVES.get(item.status, "") + _description(item.reason)


def _of_all(section: Section) -> str:
    is_untested = all(item.status == "untested" for item in section.items)
    return "SKIP nothing was put to the test" if is_untested else ""


def _diagnostics(lines: Iterable[str]) -> Iterator[str]:
    """Three spaces keep `Subtest:` at the start of a line from being read as KUnit's."""
    return (f"#   {one_line(line)}" for line in lines)


def _description(text: str) -> str:
    return one_line(text).replace("#", "_")
