"""Options that name an application, for `audit` and `needs`."""

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from postcrash.apps import (
    Application,
    ApplicationFileError,
    UnknownApplicationError,
    application_named,
    load_application,
)
from postcrash.harness.errors import UsageError

_TAKEN = ("/", "/tmp", "/mnt")
_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("name", required=False),
    click.option("--run", metavar="COMMAND", help="What the application does: a shell command; its lines acknowledge."),
    click.option("--check", metavar="COMMAND", help="Has it recover, and exits with 0 if it kept what it promised."),
    click.option("--set-up", default="", metavar="COMMAND", help="What was there before, and is durable."),
    click.option(
        "--set", "chosen", multiple=True, metavar="NAME=VALUE", help="A parameter of the application; can be repeated."
    ),
    click.option("--every", is_flag=True, help="Each combination of the parameters that --set does not name."),
)


def application_options(command: _Command) -> _Command:
    """Add NAME, --run, --check, --set-up, --set and --every: the arguments of `chosen_applications`."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)


def chosen_applications(
    name: str | None, run: str | None, check: str | None, set_up: str, chosen: Sequence[str], *, every: bool
) -> list[Application]:
    """What the options ask for: the application with the parameters that were chosen, or all that they leave open.

    Raises UsageError, also where a program of the application is not installed.
    """
    values = {}
    for given in chosen:
        parameter, is_set, value = given.partition("=")
        if not is_set:
            raise UsageError(f"--set {given!r}: expected NAME=VALUE")
        values[parameter] = value
    if name is not None and (run or check or set_up):
        raise UsageError(f"either the application {name}, or --run and --check")
    if name is None and not (run and check):
        raise UsageError("which application? Give its name, or --run and --check (postcrash audit --help)")
    try:
        if name is None:
            assert run and check
            if str(Path.cwd()) in _TAKEN:
                raise UsageError(f"{Path.cwd()} is a folder of the sandbox's own: start this command in another one")
            application = Application(name="command", run=run, check=check, set_up=set_up, folder=Path.cwd())
        else:
            application = load_application(Path(name)) if name.endswith(".toml") else application_named(name)
        variants = application.variants(values) if every else [application.with_parameters(values)]
    except (ApplicationFileError, UnknownApplicationError) as error:
        raise UsageError(str(error)) from error
    for program in application.programs:
        if not Path(program).exists():
            packages = " ".join(application.packages)
            raise UsageError(f"{application.name} needs {program}: run  apt-get install {packages}")
    return variants
