"""The configuration of a gate, postcrash.toml: what runs on which targets and kernels, and what is expected."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails

from postcrash._core import DeviceModel
from postcrash.harness.budget import Budget, BudgetError
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.examination.repair import Recovery
from postcrash.harness.expectations.expectation import CONTRACT, KERNEL, Expectation
from postcrash.model.numbers import plural
from postcrash.model.places_in_toml import line_of
from postcrash.model.text import cut
from postcrash.model.validation import TomlError, place_of, read_toml, shown
from postcrash.properties import properties_named
from postcrash.store.gate_run import PartKind
from postcrash.workloads import Setup

KINDS: tuple[PartKind, ...] = get_args(PartKind)
_CONTROLS = r"[\u0000-\u001f\u007f-\u009f]"
"""Control characters, for regular expressions of Python and of JSON Schema."""


def _accepted_by(parse: Callable[[Any], object]) -> AfterValidator:
    """Checks that `parse` accepts a value, which stays as it is."""

    def check(value: Any) -> Any:
        parse(value)
        return value

    return AfterValidator(check)


def _check_time(text: str) -> None:
    try:
        is_time = Budget.parse(text).recoveries is None
    except BudgetError:
        is_time = False
    if not is_time:
        raise ValueError(f"{shown(text)} is no time such as 90s, 10m or 1h")


def _check_controls(name: str) -> None:
    """No file name has a NUL, and other control characters would move a terminal's cursor."""
    if re.search(_CONTROLS, name):
        raise ValueError(f"{shown(name)} has a control character")


def _expectation(name: str, info: ValidationInfo) -> str:
    """The level. The path of a contract, or of a kernel's file, is relative to the gate's file."""
    level, _, value = name.partition(":")
    is_path = level == CONTRACT or (level == KERNEL and os.sep in value)
    if is_path and isinstance(info.context, Path):
        name = f"{level}:{os.path.relpath(info.context / value)}"
    try:
        Expectation.named(name)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return name


def _not_boolean(number: object) -> object:
    """Refuses a boolean, which Python takes for 0 or 1."""
    if isinstance(number, bool):
        raise ValueError(f"{shown(number)} is no number of operations")
    return number


def _check_properties(names: Sequence[str]) -> None:
    if names:
        properties_named(",".join(names))


def _check_unique(names: Sequence[str]) -> None:
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise ValueError(f"{shown(repeated)} is named twice")


_IS_LIST = Field(strict=False)
"""Accepts a list of TOML for a tuple. Its items stay strict."""
_IS_SET = Field(json_schema_extra={"uniqueItems": True})
"""For the schema. `_check_unique` checks it."""

Name = Annotated[str, _accepted_by(_check_controls), Field(json_schema_extra={"not": {"pattern": _CONTROLS}})]
KernelNames = Annotated[tuple[Name, ...], _IS_LIST, _IS_SET, _accepted_by(_check_unique)]
_Names = Annotated[tuple[Name, ...], _IS_LIST, _IS_SET, Field(min_length=1), _accepted_by(_check_unique)]
ModelName = Annotated[Name, AfterValidator(lambda name: DeviceModel(name).name)]
Models = Annotated[tuple[ModelName, ...], _IS_LIST, _IS_SET, Field(min_length=1), _accepted_by(_check_unique)]
Time = Annotated[str, _accepted_by(_check_time)]
Expected = Annotated[Name, AfterValidator(_expectation)]
PropertyNames = Annotated[tuple[Name, ...], _IS_LIST, Field(min_length=1), _accepted_by(_check_properties)]
Hold = Annotated[tuple[Name, ...], _IS_LIST, _accepted_by(_check_properties)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class PartSettings(_Section):
    """Settings of a part. Those of the file apply to parts that do not have them."""

    targets: _Names | None = None
    """File systems: names of the catalogue, `all`, or TOML files."""
    kernels: KernelNames | None = None
    """Names of `postcrash kernels list`, versions, or files; empty for the one that is used without a name."""
    models: Models | None = None
    """Device models."""
    expect: Expected | None = None
    """What is expected, as --expect of `hunt`."""
    hold: Hold | None = None
    """Further properties that must hold."""
    disks: Literal["both", "one"] | None = None
    """`both`: one that completes writes at once and one that holds them back; `one`: only the first."""
    recovery: Recovery | None = None
    """How crash states are recovered, as --recovery."""
    fsck: bool | None = None
    """Whether the file system's checker runs on every crash state, too."""
    use: bool | None = None
    """Whether files are changed, deleted and written anew after every recovery."""
    depth: Annotated[int, Field(ge=1, le=2)] | None = None
    """2: the power may fail again during recovery."""
    budget: Annotated[str, _accepted_by(Budget.parse)] | None = None
    """The most for one workload on one target."""


class PropertiesPart(PartSettings):
    """The workloads of these properties: names and groups, as --properties of `characterize`."""

    properties: PropertyNames
    """Names and groups of properties."""


class HuntPart(PartSettings):
    """The workloads of `postcrash hunt`, or with a number those of `postcrash hunt --ops`."""

    hunt: Annotated[Literal["default", 1, 2, 3], BeforeValidator(_not_boolean)]
    """`default`, or the number of operations."""
    grammar: Literal["ace", "full"] | None = None
    """Which operations and files: ace, which is taken without it, has the bounds of ACE, full has more."""
    setups: Annotated[tuple[Setup, ...], _IS_LIST, Field(min_length=1)] | None = None
    """The histories of the files that operations need; without it, those of the grammar."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """The most workloads: the first ones of the default hunt, otherwise random ones."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 1
    """The seed of the random choice."""

    @model_validator(mode="after")
    def _fits(self) -> "HuntPart":
        for setting in ("grammar", "setups"):
            if self.hunt == "default" and getattr(self, setting) is not None:
                raise ValueError(f"the default hunt has a mixture of its own: leave {setting} out, or give a number")
        return self


class RandomPart(PartSettings):
    """Random workloads, as `postcrash hunt --random`."""

    random: Annotated[int, Field(ge=1, lt=2**63)]
    """The number of workloads."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 1
    """The seed of the random choice."""


class CorpusPart(PartSettings):
    """Every `.ops` file of a folder, or one such file. Paths are seen from the gate's file."""

    corpus: Name
    """The folder, or the file."""


class ApplicationPart(PartSettings):
    """An application: its name in the catalogue, or its TOML file."""

    application: Name
    """A name such as `sqlite-3.40` or `sqlite-3.40[journal=wal]`, or a file whose name ends in .toml."""
    set: dict[Name, str] = Field(default_factory=dict)
    """Values of its parameters."""
    every: bool = False
    """Whether each combination of the other parameters is run."""


PartSection = PropertiesPart | HuntPart | RandomPart | CorpusPart | ApplicationPart


def kind_of(section: Any) -> PartKind | None:
    """The one of `KINDS` that is a setting of the part. None if there is none, or more than one."""
    settings = section if isinstance(section, dict) else getattr(type(section), "model_fields", ())
    kinds = [kind for kind in KINDS if kind in settings]
    return kinds[0] if len(kinds) == 1 else None


class GateFile(PartSettings):
    """The configuration of a gate."""

    targets: _Names
    """File systems of all parts that name none: names of the catalogue, `all`, or TOML files."""
    kernels: KernelNames = ()
    """Kernels of all parts that name none; empty for the one that is used without a name."""
    models: Models = ("cache",)
    """Device models of all parts that name none."""
    expect: Expected = "practice"
    """What is expected of all parts that do not say, as --expect of `hunt`."""
    time: Time | None = None
    """The most for all parts together; without it, each part runs to its end."""
    confirm: Annotated[int, Field(ge=0, le=1000)] = 2
    """How often the crash state of a new failure is recovered again, and its workload recorded again."""
    baseline: Name = "postcrash-known.txt"
    """The file with known failures; it need not be there."""
    guests: Annotated[int, Field(ge=1, le=256)] | None = None
    """Machines at a time; without it, one for each CPU."""
    parts: Annotated[
        dict[
            Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")],
            Annotated[
                Annotated[PropertiesPart, Tag("properties")]
                | Annotated[HuntPart, Tag("hunt")]
                | Annotated[RandomPart, Tag("random")]
                | Annotated[CorpusPart, Tag("corpus")]
                | Annotated[ApplicationPart, Tag("application")],
                Discriminator(
                    kind_of,
                    custom_error_type="kind",
                    custom_error_message=f"a part has exactly one of {', '.join(KINDS)}",
                ),
            ],
        ],
        Field(min_length=1, json_schema_extra={"additionalProperties": False}),
    ]
    """The parts, by names of the user's choice."""

    @property
    def seconds(self) -> float | None:
        """`time` in seconds."""
        return None if self.time is None else Budget.parse(self.time).seconds

    def setting(self, part: PartSettings, name: str) -> Any:
        """The value of the setting `name` for `part`. The file's value applies where the part has none."""
        own = getattr(part, name)
        return getattr(self, name) if own is None else own


def load(path: Path) -> GateFile:
    """Reads the gate's file `path`. Raises UsageError with a line for each error: its place and value."""
    try:
        return GateFile.model_validate(read_toml(path), context=path.parent)
    except TomlError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        message, *others = _error_lines(path, error)
        raise UsageError(message, others) from error


@contextmanager
def located_errors(file: Path, gate: GateFile, part: str, name: str) -> Iterator[None]:
    """Adds the place of the setting `name` of a part to the body's usage errors, which do not know the file.

    This is the place in the whole file if the part does not have the setting.
    """
    try:
        yield
    except (UsageError, NothingSelectedError) as error:
        is_of_file = name in gate.model_fields_set and name not in gate.parts[part].model_fields_set
        place = (name,) if is_of_file else ("parts", part, name)
        line = line_of(file.read_text(encoding="utf-8"), place)
        raise UsageError(f"{file}:{line}: {place_of(place)}: {cut(str(error), _MESSAGE_MAX)}") from error


_ERRORS_MAX = 10
"""How many errors are shown."""
_MESSAGE_MAX = 3000
"""The longest message of an error. It can hold a name from the file, and list the names that are valid."""
_TYPES_WITHOUT_VALUE = frozenset({"missing", "kind", "too_short", "value_error"})
"""Errors of these types do not show the value: it says nothing, or the messages of this module's checks have it."""

_MESSAGES = {
    "extra_forbidden": "there is no such setting",
    "missing": "this must be set",
    "tuple_type": "this must be a list",
    "too_short": "this needs at least one name",
}
"""Messages for types of errors, in place of pydantic's."""


def _error_lines(path: Path, error: ValidationError) -> list[str]:
    """The errors in the order of the file."""
    text = path.read_text(encoding="utf-8")
    errors = [details for details in error.errors(include_url=False) if not _is_consequence(details)]
    located = sorted((_located_message(text, details) for details in errors[:_ERRORS_MAX]), key=lambda pair: pair[0])
    lines = [f"{path}:{line}: {message}" for line, message in located]
    more = len(errors) - _ERRORS_MAX
    return [*lines, f"{path}: {plural(more, 'other thing')} wrong, too"] if more > 0 else lines


def _is_consequence(details: ErrorDetails) -> bool:
    """Whether a list is too short only because its items are invalid, for which there are errors, too."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def _located_message(text: str, details: ErrorDetails) -> tuple[int, str]:
    """The line of the file, and the error there."""
    place = [str(step) for step in details["loc"] if step not in ("[key]",)]
    if len(place) > 2 and place[0] == "parts" and place[2] in KINDS:
        del place[2]  # the tag, which is no place of the file
    message = details["msg"].removeprefix("Value error, ")
    message = cut(_MESSAGES.get(details["type"], message), _MESSAGE_MAX)
    found = "" if details["type"] in _TYPES_WITHOUT_VALUE else f", found {shown(details['input'])}"
    return line_of(text, place), f"{place_of(place) or 'the file'}: {message}{found}"
