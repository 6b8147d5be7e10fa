"""Applications that come with postcrash, and lists of them: the files of the folder `catalogue`."""

from functools import cache
from pathlib import Path

from postcrash.apps.application import Application, load_application
from postcrash.model.validation import unknown_name

_FOLDER = Path(__file__).resolve().parent / "catalogue"


class UnknownApplicationError(LookupError):
    """No application has this name."""


@cache
def applications() -> tuple[Application, ...]:
    """All of them, by name."""
    return tuple(load_application(path) for path in sorted(_FOLDER.glob("*.toml")))


@cache
def application_lists() -> dict[str, Path]:
    """The files with lists of applications, by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.list"))}


def application_named(name: str) -> Application:
    """The application called `name`. UnknownApplicationError names the nearest ones."""
    for application in applications():
        if application.name == name:
            return application
    raise UnknownApplicationError(unknown_name("application", name, (each.name for each in applications())))
