"""Options that name an application, for `audit` and `needs`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from postcrash.apps import (
    Application,
    ApplicationFileError,
    BuildError,
    Building,
    UnknownApplicationError,
    application_named,
    load_application,
)
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.output import say
from postcrash.harness.places import cache_folder

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

    An application that comes as source is built, if it is not yet. Raises UsageError, also where a program of the
    application is not installed, and InfrastructureError where it cannot be built.
    """
    application = _application(name, run, check, set_up)
    building = None if application.source is None else Building(application, cache_folder())
    variants = _variants(application, building, chosen, every=every)
    for program in application.programs:
        if not Path(program).exists():
            packages = " ".join(application.packages)
            raise UsageError(f"{application.name} needs {program}: run  apt-get install {packages}")
    if building is not None:
        try:
            building.make(say)
        except BuildError as error:
            raise InfrastructureError(str(error)) from error
    return variants


def _application(name: str | None, run: str | None, check: str | None, set_up: str) -> Application:
    if name is not None and (run or check or set_up):
        raise UsageError(f"either the application {name}, or --run and --check")
    if name is None and not (run and check):
        raise UsageError("which application? Give its name, or --run and --check (postcrash audit --help)")
    try:
        if name is not None:
            return load_application(Path(name)) if name.endswith(".toml") else application_named(name)
    except (ApplicationFileError, UnknownApplicationError) as error:
        raise UsageError(str(error)) from error
    assert run and check
    if str(Path.cwd()) in _TAKEN:
        raise UsageError(f"{Path.cwd()} is a folder of the sandbox's own: start this command in another one")
    return Application(name="command", run=run, check=check, set_up=set_up, folder=Path.cwd())


def _variants(
    application: Application, building: Building | None, chosen: Sequence[str], *, every: bool
) -> list[Application]:
    values = {}
    for given in chosen:
        parameter, is_set, value = given.partition("=")
        if not is_set:
            raise UsageError(f"--set {given!r}: expected NAME=VALUE")
        values[parameter] = value
    try:
        known = application if building is None else replace(application, built=building.place)
        return known.variants(values) if every else [known.with_parameters(values)]
    except ApplicationFileError as error:
        raise UsageError(str(error)) from error
