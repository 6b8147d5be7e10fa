"""The forms of a gate's result that a command writes, for `gate` and `merge`."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import reduce, wraps
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
from postcrash.reports.gate.sarif import sarif
from postcrash.reports.gate.terminal import print_gate
from postcrash.reports.page.page import render_gate
from postcrash.store.gate_run import GateRun
from postcrash.store.store import NotInStoreError

_Command = Callable[..., Any]
_Form = Callable[[GateRun, Session], str]


def _json(run: GateRun, _session: Session) -> str:
    return run.model_dump_json(indent=1) + "\n"


def _json_lines(run: GateRun, _session: Session) -> str:
    return _joined(json_lines(run))


def _lines(form: Callable[[GateRun, str], Iterable[str]]) -> _Form:
    return lambda run, session: _joined(form(run, session.invocation))


def _text(form: Callable[[GateRun, str], str]) -> _Form:
    return lambda run, session: form(run, session.invocation)


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _html(run: GateRun, session: Session) -> str:
    """The report, with the stories of those findings that the session's store has."""
    ids = dict.fromkeys(failure.finding for _, failure in run.failures() if failure.finding)
    found = []
    for id in ids:
        with suppress(NotInStoreError):
            found.append(session.store.finding(id))
    return render_gate(run, stories_of(found, session), session.invocation)


_WRITERS: dict[str, tuple[_Form, str]] = {
    "json": (_json, "Write the whole result as JSON, for `merge` and `diff`"),
    "json_lines": (_json_lines, "Write a line of JSON for the run, each part and each failure"),
    "junit": (_text(junit), "Write JUnit XML"),
    "ktap": (_lines(ktap), "Write KTAP, as the kernel's tests do"),
    "sarif": (_text(sarif), "Write SARIF, for code scanning"),
    "markdown": (_text(markdown), "Write a summary in Markdown"),
    "html": (_html, "Write the report, one page with the stories of the findings in the store"),
}


@dataclass(frozen=True, slots=True)
class Forms:
    """Where each form goes: a file, `-` for standard output, or None. `github`: annotations to standard output."""

    json: str | None
    json_lines: str | None
    junit: str | None
    ktap: str | None
    sarif: str | None
    markdown: str | None
    html: str | None
    github: bool

    def check(self) -> None:
        """Raise UsageError if more than one form would go to standard output, where nobody could tell them apart."""
        there = [name for name in _WRITERS if getattr(self, name) == "-"]
        there += ["github"] * (self.github and bool(there))
        if len(there) > 1:
            options = " and ".join(f"--{name.replace('_', '-')}" for name in there)
            raise UsageError(f"{options}: only one of them can go to standard output")

    def write(self, run: GateRun, session: Session) -> None:
        """Write the result in each form, and print it, unless something else goes to standard output.

        Raises InfrastructureError.
        """
        keep_last(session.store, [group.shown.finding for group in cause_groups(run) if group.shown.finding])
        places = {name: getattr(self, name) for name in _WRITERS}
        for name, (form, _) in _WRITERS.items():
            if places[name] is not None:
                write_text(places[name], form(run, session))
        if "-" in places.values():
            return
        print_gate(run, Console(soft_wrap=True), session.invocation)
        if self.github:
            write_text("-", _lines(github)(run, session))


def forms_options(command: _Command) -> _Command:
    """`--json`, `--junit` and so on, as the argument `forms`."""

    @wraps(command)
    def with_forms(*args: object, **options: Any) -> Any:
        forms = Forms(**{field.name: options.pop(field.name) for field in fields(Forms)})
        forms.check()
        return command(*args, forms=forms, **options)

    help_text = "Print annotations for GitHub Actions, ten at most."
    with_github: _Command = click.option("--github", is_flag=True, help=help_text)(with_forms)
    return reduce(_form_option, reversed(_WRITERS), with_github)


def _form_option(command: _Command, name: str) -> _Command:
    help_text = f"{_WRITERS[name][1]}; - is standard output."
    return click.option(f"--{name.replace('_', '-')}", name, metavar="FILE", help=help_text)(command)
