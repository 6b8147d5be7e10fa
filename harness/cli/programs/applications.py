"""Options that name an application, for `audit` and `needs`."""

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

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

_Command = TypeVar("_Command", bound=Callable[..., Any])
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
        "--set", "chosen", multiple=True, metavar="NAME=VALUE", help="A parameter of the application; can be repeated."
    ),
    click.option("--every", is_flag=True, help="Each combination of the parameters that --set does not name."),
)


_CHECK = click.option(
    "--check",
    metavar="COMMAND",
    help="A shell command that has the application recover, and exits with 0 if it kept its promises.",
)


def program_options(command: _Command) -> _Command:
    """Add NAME,…, --run, --set-up, --set and --every: the arguments of `chosen_applications`, but no check."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


def application_options(command: _Command) -> _Command:
    """Add NAME, --run, --check, --set-up, --set and --every: the arguments of `chosen_applications`."""
    return program_options(_CHECK(command))


def chosen_applications(
    name: str | None, run: str | None, check: str | None, set_up: str, chosen: Sequence[str], *, every: bool
) -> list[Application]:
    """What the options ask for: the applications with the parameters that were chosen, or all that they leave open.

    Raises HarnessError, as `variants_of` does.
    """
    commands = [option for option, text in (("--run", run), ("--check", check), ("--set-up", set_up)) if text]
    if name is not None and commands:
        raise UsageError(f"{name} has commands of its own: leave out {' and '.join(commands)}")
    if name is not None:
        named = [name_and_parameters(each) for each in names_in(name)]
        return [
            variant
            for plain, parameters in named
            for variant in variants_of(application_called(plain), parameters | assignments(chosen), every=every)
        ]
    if not (run and check):
        raise UsageError("which application? Give its name, or --run and --check (postcrash audit --help)")
    return variants_of(application_of_commands(run, check, set_up, Path.cwd()), assignments(chosen), every=every)
