"""Applications that come with postcrash: the files of the folder `catalogue`."""

import difflib
from functools import cache
from pathlib import Path

from postcrash.apps.application import Application, load_application

_FOLDER = Path(__file__).resolve().parent / "catalogue"


class UnknownApplicationError(LookupError):
    """No application has this name."""


@cache
def applications() -> tuple[Application, ...]:
    """All of them, by name."""
    return tuple(load_application(path) for path in sorted(_FOLDER.glob("*.toml")))


def application_named(name: str) -> Application:
    """The application called `name`. UnknownApplicationError names the nearest ones."""
    names = [application.name for application in applications()]
    if name in names:
        return applications()[names.index(name)]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    raise UnknownApplicationError(f"unknown application {name!r}{hint} (known: {', '.join(names)})")
