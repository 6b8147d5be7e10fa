"""A gate's result as KTAP, version 1, the kernel's form of the Test Anything Protocol (docs.kernel.org/dev-tools/ktap).

A part is a test with subtests:

- Violated items are `not ok`.
- Undecided items are `not ok … # ERROR`, the specification's word for a test that could not be carried out. A reader
  that does not know ERROR takes the line for a failure, as the specification wants it.
- Known items are `ok … # XFAIL`, an expected failure in the kernel's selftests. Readers that do not know XFAIL take the
  line for a pass, so that the gate passes there, too.
- Untested items are `ok … # SKIP`, and so are parts that have only untested items.

The line `# Subtest` is KUnit's name for the subtests, and a diagnostic line for others. Diagnostic lines precede a
result line. Texts hold no `#`, because a reader looks behind it for a word such as SKIP.
"""

from collections.abc import Iterable, Iterator

from postcrash.model.text import INVOCATION, one_line
from postcrash.reports.gate.failure_text import coverage, failure_counts, fixed_line
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
        is_untested = all(item.status == "untested" for item in section.items)
        directive = "SKIP nothing was put to the test" if is_untested else ""
        yield _result(section.is_failed, number, section.title, directive)
    yield from _diagnostics(f"fixed: {fixed_line(line)}" for line in run.fixed)
    yield from _diagnostics([f"{run.verdict.name}: {failure_counts(run)}: {coverage(run)}"])


def _subtests(section: Section) -> Iterator[str]:
    yield _VERSION
    yield f"# Subtest: {_description(section.title)}"
    yield f"1..{len(section.items)}"
    for number, item in enumerate(section.items, 1):
        yield from _diagnostics(item.text.splitlines())
        yield _result(item.status in FAILED, number, item.name, _directive(item))


def _result(is_failed: bool, number: int, name: str, directive: str) -> str:
    line = f"{'not ok' if is_failed else 'ok'} {number} {_description(name)}"
    return f"{line} # {directive}" if directive else line


def _directive(item: Item) -> str:
    """The text behind `#`. A judge's message does not come first there: it could begin with a word such as SKIP."""
    if item.status == "violated":
        return ""
    return _DIRECTIVES.get(item.status, "") + _description(item.reason)


def _diagnostics(lines: Iterable[str]) -> Iterator[str]:
    """Diagnostic lines. Three spaces keep `Subtest:` at the start of a line from being read as KUnit's."""
    return (f"#   {one_line(line)}" for line in lines)


def _description(text: str) -> str:
    return one_line(text).replace("#", "_")
