"""An application under audit, as a TOML file says what it is (docs/audit.md)."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pydantic
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from postcrash.model.argument import COMMAND_BYTES_MAX
from postcrash.model.validation import TomlError, first_objection, read_toml

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
HERE = "here"
"""In commands, `{here}` is the folder of the application's file."""


class ApplicationFileError(ValueError):
    """An application's file cannot be used; the message shows the file, the field and the value."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Application:
    """What is run, and what its user expects of it after a crash.

    run         a shell command: runs in the folder; each line that it prints acknowledges something
    check       a shell command: has the application recover in the folder, and exits with 0 if all is as it promised
    summary     what it is, in a few words
    set_up      a shell command: what was there before, durable when `run` begins; empty for an empty folder
    packages    Debian packages that must be installed for it
    programs    files that are there if the packages are
    parameters  names with the values that each may have, the default first; `{name}` in a command stands for it
    seconds     how long `set_up` and `run` may each take in a guest; check_seconds: how long `check` may take
    folder      the folder of the application's file, which guest and sandbox see
    """

    name: str
    run: str
    check: str
    summary: str = ""
    set_up: str = ""
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    parameters: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    seconds: int = Field(default=60, ge=1, le=3600)
    check_seconds: int = Field(default=20, ge=1, le=3600)
    folder: Path | None = None

    def with_parameters(self, chosen: Mapping[str, str]) -> "Application":
        """The application with a value for each parameter, the default where none is chosen.

        Raises ApplicationFileError for an unknown parameter or value, or a placeholder that stands for nothing.
        """
        for name, value in chosen.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ApplicationFileError(f"{self.name} has no parameter {name!r} (known: {known})")
            if value not in self.parameters[name]:
                known = ", ".join(self.parameters[name])
                raise ApplicationFileError(f"{self.name}: {name} cannot be {value!r} (known: {known})")
        values = {name: chosen.get(name, known[0]) for name, known in self.parameters.items()}
        if self.folder is not None:
            values[HERE] = str(self.folder)
        set_up, run, check = (self._filled(command, values) for command in (self.set_up, self.run, self.check))
        named = ",".join(f"{name}={value}" for name, value in values.items() if name != HERE)
        name = f"{self.name}[{named}]" if named else self.name
        return replace(self, name=name, parameters={}, set_up=set_up, run=run, check=check)

    def variants(self, chosen: Mapping[str, str] | None = None) -> list["Application"]:
        """The application with all combinations of the parameters that are not chosen. Errors as `with_parameters`."""
        given = dict(chosen or {})
        left = [name for name in self.parameters if name not in given]
        combinations = itertools.product(*(self.parameters[name] for name in left))
        return [self.with_parameters({**given, **dict(zip(left, values, strict=True))}) for values in combinations]

    def _filled(self, command: str, values: Mapping[str, str]) -> str:
        def value_of(match: re.Match[str]) -> str:
            if match[1] not in values:
                raise ApplicationFileError(f"{self.name}: nothing is called {match[0]} in {command!r}")
            return values[match[1]]

        filled = _PLACEHOLDER.sub(value_of, command) if values else command
        if not filled.isprintable() or len(filled.encode()) > COMMAND_BYTES_MAX:
            raise ApplicationFileError(
                f"{self.name}: a command is one line of at most {COMMAND_BYTES_MAX} bytes, found {filled[:80]!r}"
            )
        return filled


_schema = pydantic.TypeAdapter(Application)


def load_application(path: Path) -> Application:
    """The application that the TOML file `path` describes, named after it. Raises ApplicationFileError."""
    try:
        return _schema.validate_python({"name": path.stem, **read_toml(path), "folder": path.resolve().parent})
    except TomlError as error:
        raise ApplicationFileError(str(error)) from None
    except pydantic.ValidationError as error:
        raise ApplicationFileError(f"{path}: {first_objection(error)}") from None
