"""The applications of the catalogue, wherever this machine has their files.

A finding has the commands of its application with the folders of the machine on which it was made.
"""

import re
import shlex
from dataclasses import replace
from pathlib import Path

from postcrash.apps import CHECK_LIMITS, Application, Building, UnknownApplicationError, application_named
from postcrash.harness.errors import UsageError
from postcrash.harness.files.places import cache_folder

_LEFT_OUT = re.compile(r" without flush(es)? [0-9, ]+$")
"""Ends the name of an application that runs without some of its flushes (`leaving_out`). Its check is the same."""


def catalogued(application: Application) -> Application | None:
    """The equal application of the catalogue, with the folders of this machine. None if there is none.

    Applications are equal if their names, commands and limits of checks are, wherever their files are.
    """
    application = replace(application, name=_LEFT_OUT.sub("", application.name))
    try:
        known = application_named(application.name.partition("[")[0])
    except UnknownApplicationError:
        return None
    if known.build:
        known = replace(known, built=Building(known, cache_folder()).place)
    return next((each for each in known.variants() if portable(each) == portable(application)), None)


def require_installed(application: Application) -> None:
    """Raise UsageError if a program of the application is not installed."""
    for program in application.programs:
        if not Path(program).exists():
            packages = " ".join(application.packages)
            raise UsageError(f"{application.name} needs {program}: run  apt-get install {packages}")


def require_built(application: Application) -> None:
    """Raise UsageError if the application has a build that was not made here."""
    if application.built is not None and not application.built.is_dir():
        name = application.name.partition("[")[0]
        raise UsageError(f"{name} is not built here: run  postcrash audit {name} --target ext4-current")


def portable(application: Application) -> tuple[object, ...]:
    """The commands of the application and the limits of its check, with words in place of its folders."""
    commands = [application.run, application.check]
    for word, folder in (("{built}", application.built), ("{here}", application.folder)):
        if folder is not None:
            for place in (shlex.quote(str(folder)), str(folder)):
                commands = [command.replace(place, word) for command in commands]
    return application.name, *commands, *(getattr(application, name) for name in CHECK_LIMITS)
