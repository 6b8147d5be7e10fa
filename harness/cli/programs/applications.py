"""Options that choose applications, for `audit`, `needs` and `synchrony`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce, wraps
from pathlib import Path
from typing import Any

import click

from postcrash.apps import Application
from postcrash.harness.auditing.application_choice import (
    application_called,
    application_of_commands,
    assignments,
    name_and_parameters,
    names_in,
    variants_of,
)
from postcrash.harness.cli.completion import complete_applications
from postcrash.harness.errors import UsageError

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("name", required=False, metavar="[NAME,…]", shell_complete=complete_applications),
    click.option("--run", metavar="COMMAND", help="What the application does: a shell command; its lines acknowledge."),
    click.option(
        "--set-up",
        default="",
        metavar="COMMAND",
        help="A shell command that runs before --run. What it makes is durable.",
    ),
    click.option(
        "--set",
        "parameters",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter of the application; can be repeated.",
    ),
    click.option("--every", is_flag=True, help="Each combination of the parameters that --set does not name."),
)
_CHECK = click.option(
    "--check",
    metavar="COMMAND",
    help="A shell command that has the application recover, and exits with 0 if it kept its promises.",
)


@dataclass(frozen=True, slots=True)
class ApplicationChoice:
    """The values of the options that choose applications: a name, or commands, and parameters."""

    name: str | None
    run: str | None
    check: str | None
    set_up: str
    parameters: Sequence[str]
    every: bool

    def applications(self) -> list[Application]:
        """The applications with the chosen parameters, in all combinations of the others with `every`.

        Raises HarnessError, as `variants_of` does.
        """
        options = (("--run", self.run), ("--check", self.check), ("--set-up", self.set_up))
        commands = [option for option, text in options if text]
        if self.name is not None and commands:
            raise UsageError(f"{self.name} has commands of its own: leave out {' and '.join(commands)}")
        parameters = assignments(self.parameters)
        if self.name is not None:
            return [
                variant
                for plain, own in map(name_and_parameters, names_in(self.name))
                for variant in variants_of(application_called(plain), own | parameters, every=self.every)
            ]
        if not (self.run and self.check):
            raise UsageError("which application? Give its name, or --run and --check (postcrash audit --help)")
        application = application_of_commands(self.run, self.check, self.set_up, Path.cwd())
        return variants_of(application, parameters, every=self.every)


def program_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add NAME,…, --run, --set-up, --set and --every, and pass their values as the argument `choice`."""
    return _with_options(_with_choice(command))


def application_options(command: Callable[..., int]) -> Callable[..., int]:
    """As `program_options`, with --check."""
    return _with_options(_CHECK(_with_choice(command)))


def _with_options(command: Callable[..., int]) -> Callable[..., int]:
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


def _with_choice(command: Callable[..., int]) -> Callable[..., int]:
    @wraps(command)
    def with_choice(
        *arguments: Any,
        name: str | None,
        run: str | None,
        set_up: str,
        parameters: Sequence[str],
        every: bool,
        check: str | None = None,
        **others: Any,
    ) -> int:
        choice = ApplicationChoice(name, run, check, set_up, parameters, every)
        return command(*arguments, choice=choice, **others)

    return with_choice
