"""The formats in which `gate` and `merge` write the result of a gate."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click
from rich.console import Console

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_text
from postcrash.harness.findings.finding_details import stories_of
from postcrash.harness.findings.last_finding import keep_last
from postcrash.reports.gate.github import github
from postcrash.reports.gate.groups import cause_groups
from postcrash.reports.gate.json_lines import json_lines
from postcrash.reports.gate.junit import junit
from postcrash.reports.gate.ktap import ktap
from postcrash.reports.gate.markdown import markdown
from postcrash.reports.gate.terminal import print_gate
from postcrash.reports.page.gate_page import report_of_gate
from postcrash.reports.page.page import render
from postcrash.reports.sarif import gate_sarif
from postcrash.store.gate_run import GateRun
from postcrash.store.store import NotInStoreError

_Command = Callable[..., Any]


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _html(run: GateRun, session: Session) -> str:
    """The report, with the stories of those findings that the session's store has."""
    findings = []
    for id in dict.fromkeys(failure.finding for _, failure in run.failures() if failure.finding):
        with suppress(NotInStoreError):
            findings.append(session.store.finding(id))
    return render(report_of_gate(run), stories_of(findings, session), session.invocation)


_FORMATS: dict[str, tuple[Callable[[GateRun, Session], str], str]] = {
    "json": (
        lambda run, _: run.model_dump_json(indent=1) + "\n",
        "Write the whole result as JSON, for `merge` and `diff`",
    ),
    "json_lines": (
        lambda run, _: _joined(json_lines(run)),
        "Write a line of JSON for the run, each part and each failure",
    ),
    "junit": (lambda run, session: junit(run, session.invocation), "Write JUnit XML"),
    "ktap": (lambda run, session: _joined(ktap(run, session.invocation)), "Write KTAP, as the kernel's tests do"),
    "sarif": (lambda run, session: gate_sarif(run, session.invocation), "Write SARIF, for code scanning"),
    "markdown": (lambda run, session: markdown(run, session.invocation), "Write a summary in Markdown"),
    "html": (_html, "Write the report, one page with the stories of the findings in the store"),
}
"""The writer of each format, and the help of its option."""


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Where a result is written.

    files   by their formats; `-` is standard output
    github  annotations go to standard output, too
    """

    files: Mapping[str, str]
    github: bool

    def check(self) -> None:
        """Raise UsageError if more than one format would go to standard output."""
        names = [name for name, file in self.files.items() if file == "-"]
        names += ["github"] * (self.github and bool(names))
        if len(names) > 1:
            options = " and ".join(f"--{name.replace('_', '-')}" for name in names)
            raise UsageError(f"{options}: only one of them can go to standard output")

    def write(self, run: GateRun, session: Session) -> None:
        """Writes the result in each format, and prints it, unless something else goes to standard output.

        Raises InfrastructureError.
        """
        keep_last(
            session.store, [group.representative.finding for group in cause_groups(run) if group.representative.finding]
        )
        for name, file in self.files.items():
            write_text(file, _FORMATS[name][0](run, session))
        if "-" in self.files.values():
            return
        print_gate(run, Console(soft_wrap=True), session.invocation)
        if self.github:
            write_text("-", _joined(github(run, session.invocation)))


def result_options(command: _Command) -> _Command:
    """Adds `--json`, `--junit` and so on, as the argument `result_files`."""

    @wraps(command)
    def with_files(*args: object, github: bool, **options: Any) -> Any:
        files = {name: options.pop(name) for name in _FORMATS}
        result_files = ResultFiles({name: file for name, file in files.items() if file is not None}, github)
        result_files.check()
        return command(*args, result_files=result_files, **options)

    help_text = "Print annotations for GitHub Actions, ten at most."
    extended: _Command = click.option("--github", is_flag=True, help=help_text)(with_files)
    for name, (_, purpose) in reversed(_FORMATS.items()):
        help_text = f"{purpose}; - is standard output."
        extended = click.option(f"--{name.replace('_', '-')}", name, metavar="FILE", help=help_text)(extended)
    return extended
