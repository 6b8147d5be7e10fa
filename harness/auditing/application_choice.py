"""Find the application that a name, a file or commands mean, with its parameters. One that comes as source is built."""

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from postcrash.apps import (
    Application,
    ApplicationFileError,
    BuildError,
    Building,
    UnknownApplicationError,
    application_lists,
    application_named,
    load_application,
)
from postcrash.harness.auditing.application_lookup import require_installed
from postcrash.harness.errors import InfrastructureError, UsageError
from postcrash.harness.files.output import say
from postcrash.harness.files.places import cache_folder
from postcrash.harness.files.text_files import text_of
from postcrash.model.validation import shown

_VARIANT = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")
_LIST_BYTES_MAX = 64 << 10
_NO_SYNC = "eatmydata"
_TAKEN = ("/", "/tmp", "/mnt")


def names_in(text: str) -> list[str]:
    """The names in a list with commas between them. Commas within brackets belong to a name.

    A list of the catalogue stands for its names, and so does a file NAME.list: one name a line, `#` begins a comment.
    Raises UsageError for a file that cannot be read, or has no name.
    """
    return [each for name in re.split(r",(?![^\[]*\])", text) for each in _meant(name)]


def _meant(name: str) -> list[str]:
    """The names that the list of this name or file has, or the name itself."""
    file = application_lists().get(name) or Path(name)
    if file.suffix != ".list":
        return [name]
    lines = text_of(file, _LIST_BYTES_MAX).splitlines()
    names = [name for line in lines if (name := line.partition("#")[0].strip())]
    if not names:
        raise UsageError(f"{file}: no name of an application is in it")
    return names


def name_and_parameters(text: str) -> tuple[str, dict[str, str]]:
    """The name and the parameters in a text such as `sqlite-3.40[journal=wal]`, as tables show it. UsageError."""
    match = _VARIANT.fullmatch(text)
    if match is None:
        raise UsageError(f"{shown(text)}: expected a name such as sqlite-3.40 or sqlite-3.40[journal=wal]")
    return match[1], assignments(match[2].split(",") if match[2] else ())


def application_called(name: str) -> Application:
    """The application of the catalogue, or the one that the TOML file `name` describes. Raises UsageError."""
    try:
        return load_application(Path(name)) if name.endswith(".toml") else application_named(name)
    except (ApplicationFileError, UnknownApplicationError) as error:
        raise UsageError(str(error)) from error


def application_of_commands(run: str, check: str, set_up: str, folder: Path) -> Application:
    """The application of these shell commands, which see `folder` and can call it `{here}`. Raises UsageError."""
    if str(folder) in _TAKEN:
        raise UsageError(
            f"the sandbox has a folder of its own at {folder}: "
            "put your files into another folder, and start the command there"
        )
    return Application(name="command", run=run, check=check, set_up=set_up, folder=folder)


def assignments(given: Iterable[str]) -> dict[str, str]:
    """The parameters in words such as `synchronous=off`. Raises UsageError."""
    values = {}
    for word in given:
        parameter, is_set, value = word.partition("=")
        if not is_set:
            raise UsageError(f"{shown(word)} sets no parameter: expected NAME=VALUE")
        values[parameter] = value
    return values


def no_longer_syncing(application: Application) -> Application:
    """The application, with fsync and all other calls that make files durable doing nothing. Raises UsageError."""
    if shutil.which(_NO_SYNC) is None:
        raise UsageError(f"--without-fsync needs {_NO_SYNC}: run  apt-get install {_NO_SYNC}")
    run, recover = (
        command and shlex.join([_NO_SYNC, "sh", "-c", command]) for command in (application.run, application.recover)
    )
    return replace(application, name=f"{application.name} without fsync", run=run, recover=recover)


def leaving_out(application: Application, flushes: Sequence[int]) -> Application:
    """The application, with its flushes of these numbers doing nothing when it runs in a guest."""
    numbers = tuple(sorted(set(flushes)))
    word = "flush" if len(numbers) == 1 else "flushes"
    return replace(
        application, name=f"{application.name} without {word} {', '.join(map(str, numbers))}", left_out=numbers
    )


def variants_of(application: Application, values: Mapping[str, str], *, every: bool) -> list[Application]:
    """The application with these parameters and the defaults of others, or with `every` combination of the others.

    An application that comes as source is built, if it is not yet. Raises UsageError, also where a program of the
    application is not installed, and InfrastructureError where it cannot be built.
    """
    building = Building(application, cache_folder()) if application.build else None
    known = application if building is None else replace(application, built=building.place)
    try:
        variants = known.variants(values) if every else [known.with_parameters(values)]
    except ApplicationFileError as error:
        raise UsageError(str(error)) from error
    require_installed(application)
    if building is not None:
        try:
            building.make(say)
        except BuildError as error:
            raise InfrastructureError(str(error)) from error
    return variants
