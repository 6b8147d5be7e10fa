"""The forms of a gate's result that a command writes, for `gate` and `merge`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import reduce, wraps
from typing import Any

import click
from rich.console import Console

from postcrash.harness.output import write_text
from postcrash.reports.gate.github import github
from postcrash.reports.gate.json_lines import json_lines
from postcrash.reports.gate.junit import junit
from postcrash.reports.gate.ktap import ktap
from postcrash.reports.gate.markdown import markdown
from postcrash.reports.gate.run import GateRun
from postcrash.reports.gate.sarif import sarif
from postcrash.reports.gate.terminal import print_gate

_Command = Callable[..., Any]


def _json(run: GateRun) -> str:
    return run.model_dump_json(indent=1) + "\n"


def _lines(form: Callable[[GateRun], Iterable[str]]) -> Callable[[GateRun], str]:
    return lambda run: "".join(f"{line}\n" for line in form(run))


_WRITERS: dict[str, tuple[Callable[[GateRun], str], str]] = {
    "json": (_json, "Write the whole result as JSON, for `merge` and `diff`"),
    "json_lines": (_lines(json_lines), "Write a line of JSON for the run, each part and each failure"),
    "junit": (junit, "Write JUnit XML"),
    "ktap": (_lines(ktap), "Write KTAP, as the kernel's tests do"),
    "sarif": (sarif, "Write SARIF, for code scanning"),
    "markdown": (markdown, "Write a summary in Markdown"),
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
    github: bool

    def write(self, run: GateRun) -> None:
        """Write the result in each form, and print it, unless something else goes to standard output.

        Raises InfrastructureError.
        """
        places = {name: getattr(self, name) for name in _WRITERS}
        for name, (form, _) in _WRITERS.items():
            if places[name] is not None:
                write_text(places[name], form(run))
        if "-" in places.values():
            return
        print_gate(run, Console(soft_wrap=True))
        if self.github:
            write_text("-", _lines(github)(run))


def forms_options(command: _Command) -> _Command:
    """`--json`, `--junit` and so on, as the argument `forms`."""

    @wraps(command)
    def with_forms(*args: object, **options: Any) -> Any:
        chosen = {field.name: options.pop(field.name) for field in fields(Forms)}
        return command(*args, forms=Forms(**chosen), **options)

    help_text = "Print annotations for GitHub Actions, ten at most."
    with_github: _Command = click.option("--github", is_flag=True, help=help_text)(with_forms)
    return reduce(_form_option, reversed(_WRITERS), with_github)


def _form_option(command: _Command, name: str) -> _Command:
    help_text = f"{_WRITERS[name][1]}; - is standard output."
    return click.option(f"--{name.replace('_', '-')}", name, metavar="FILE", help=help_text)(command)
