"""An application under audit, as a TOML file says what it is (docs/audit.md)."""

import itertools
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from postcrash.model.argument import COMMAND_BYTES_MAX
from postcrash.model.validation import TomlError, first_objection, read_toml, shown

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
HERE = "here"
"""In commands, `{here}` is the folder of the application's file."""
BUILT = "built"
"""In commands, `{built}` is the folder with what the application's build has made."""
CHECK_LIMITS = ("check_seconds", "check_memory_mib", "check_disk_mib", "check_sockets")
"""The fields of `Application` that limit its check."""
_DIGEST = "[0-9a-f]{64}"


class ApplicationFileError(ValueError):
    """An application's file cannot be used; the message shows the file, the field and the value."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Package:
    """The package with an application's source, by the name that it has in its registry.

    npm     "NAME@VERSION", a package of npm; or
    pypi    "NAME==VERSION", a source distribution of PyPI
    sha256  digest of the package's file
    """

    sha256: str = Field(pattern=f"^{_DIGEST}$")
    npm: str = Field(default="", pattern=r"^((@[\w.-]+/)?[\w.-]+@[\w.+-]+)?$")
    pypi: str = Field(default="", pattern=r"^([\w.-]+==[\w.+!-]+)?$")

    def __post_init__(self) -> None:
        """Raises ValueError unless there is one name."""
        if bool(self.npm) == bool(self.pypi):
            raise ValueError("a source has a name in npm, or one in pypi")

    @property
    def package(self) -> str:
        """Its name and version."""
        return self.npm or self.pypi


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Application:
    """What is run, and what its user expects of it after a crash.

    run         a shell command: runs in the folder; each line that it prints acknowledges something
    check       a shell command: has the application recover in the folder, and exits with 0 if all is as it promised
    recover     a shell command: has the application recover in the folder, and does nothing else; empty: there is none
    summary     what it is, in a few words
    set_up      a shell command: what was there before, durable when `run` begins; empty for an empty folder
    packages    Debian packages that must be installed for it
    programs    files that are there if the packages are
    parameters  names with the values that each may have, the default first; `{name}` in a command stands for it
    seconds     how long `set_up` and `run` may each take in a guest; check_seconds: how long `check` may take
    check_memory_mib, check_disk_mib  what `check` may use: memory of each process; disk of the folder, and of all else
    check_sockets  whether `check` can make sockets; without them, checks are faster
    inodes      how many inodes it needs at least; targets with fewer are made with this number
    folder      the folder of the application's file, which guest and sandbox see
    build       a shell command that builds it, if it is built: it puts into `{built}` what it makes
    source      the package that it is built from: the build runs there, and in an empty folder if there is none
    built       the folder with what the build has made (`Building`), which guest and sandbox see
    left_out    numbers of its flushes that do nothing in a guest; see `run-unflushed` in docs/workloads.md
    """

    name: str
    run: str
    check: str
    recover: str = ""
    summary: str = ""
    set_up: str = ""
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    parameters: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    seconds: int = Field(default=60, ge=1, le=3600)
    check_seconds: int = Field(default=20, ge=1, le=3600)
    check_memory_mib: int = Field(default=2048, ge=64, le=1 << 20)
    check_disk_mib: int = Field(default=256, ge=1, le=1 << 20)
    check_sockets: bool = True
    inodes: int = Field(default=0, ge=0, le=100_000)
    folder: Path | None = None
    source: Package | None = None
    build: str = ""
    built: Path | None = None
    left_out: tuple[Annotated[int, Field(ge=1, lt=1_000_000)], ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a source that is not built."""
        if self.source is not None and not self.build:
            raise ValueError("an application with a source has a build")

    @property
    def visible(self) -> tuple[Path, ...]:
        """The folders that guest and sandbox see."""
        return tuple(path for path in (self.folder, self.built) if path is not None)

    def build_command(self, made: Path) -> str:
        """What builds the application into the folder `made`. Errors as `with_parameters`."""
        return self._filled(self.build, self._places() | {BUILT: shlex.quote(str(made))})

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
                raise ApplicationFileError(f"{self.name}: {name} cannot be {shown(value)} (known: {known})")
        values = {name: chosen.get(name, known[0]) for name, known in self.parameters.items()}
        named = ",".join(f"{name}={value}" for name, value in values.items())
        values |= self._places()
        commands = (self.set_up, self.run, self.check, self.recover)
        set_up, run, check, recover = (self._filled(command, values) for command in commands)
        name = f"{self.name}[{named}]" if named else self.name
        return replace(self, name=name, parameters={}, set_up=set_up, run=run, check=check, recover=recover)

    def variants(self, chosen: Mapping[str, str] | None = None) -> list["Application"]:
        """The application with all combinations of the parameters that are not chosen. Errors as `with_parameters`."""
        given = dict(chosen or {})
        left = [name for name in self.parameters if name not in given]
        combinations = itertools.product(*(self.parameters[name] for name in left))
        return [self.with_parameters({**given, **dict(zip(left, values, strict=True))}) for values in combinations]

    def _places(self) -> dict[str, str]:
        """The folders that commands can name, as words of a shell."""
        return {
            name: shlex.quote(str(path))
            for name, path in ((HERE, self.folder), (BUILT, self.built))
            if path is not None
        }

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
    """The application that the TOML file `path` describes, named after it. Raises ApplicationFileError.

    With `like = "NAME"` it takes what it does not say from the file NAME.toml beside it.
    """
    try:
        return _schema.validate_python({"name": path.stem, **_fields(path), "folder": path.resolve().parent})
    except TomlError as error:
        raise ApplicationFileError(str(error)) from None
    except pydantic.ValidationError as error:
        raise ApplicationFileError(f"{path}: {first_objection(error)}") from None


def _fields(path: Path) -> dict[str, Any]:
    """What the file says, and the one that it is like, which is like no other."""
    fields = read_toml(path)
    like = fields.pop("like", None)
    if like is None:
        return fields
    known = {file.stem: file for file in path.parent.glob("*.toml")}
    if not isinstance(like, str) or like not in known:
        raise ApplicationFileError(f"{path}: like: there is no file for {shown(like)} beside it")
    return {**read_toml(known[like]), **fields}
