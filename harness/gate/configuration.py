"""The file of a gate, postcrash.toml: what is run on which targets and kernels, and what is expected."""

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, ValidationInfo

from postcrash._core import DeviceModel
from postcrash.harness.budget import Budget, BudgetError
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.repair import Recovery
from postcrash.harness.expectations.expectation import CONTRACT, KERNEL, Expectation
from postcrash.model.places_in_toml import line_of
from postcrash.model.validation import TomlError, place_of, read_toml, shown
from postcrash.properties import UnknownPropertyError, properties_named
from postcrash.reports.gate.run import Kind
from postcrash.reports.text import cut
from postcrash.workloads import Setup

FILE = "postcrash.toml"
SCHEMA_FILE = "postcrash.schema.json"
KINDS: tuple[Kind, ...] = get_args(Kind)


def _budget(text: str) -> str:
    try:
        Budget.parse(text)
    except BudgetError as error:
        raise ValueError(str(error)) from error
    return text


def _time(text: str) -> str:
    try:
        if Budget.parse(text).recoveries is None:
            return text
    except BudgetError:
        pass
    raise ValueError(f"{text!r} is no time such as 90s, 10m or 1h")


def _model(name: str) -> str:
    return DeviceModel(name).name


def _expectation(name: str, info: ValidationInfo) -> str:
    """The level. The path of a contract, or of a kernel's file, is seen from the gate's file."""
    level, _, value = name.partition(":")
    is_path = level == CONTRACT or (level == KERNEL and os.sep in value)
    if is_path and isinstance(info.context, Path):
        name = f"{level}:{os.path.relpath(info.context / value)}"
    try:
        Expectation.named(name)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return name


def _properties(names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        properties_named(",".join(names))
    except UnknownPropertyError as error:
        raise ValueError(str(error)) from error
    return names


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is named twice")
    return names


Names = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_once)]
Time = Annotated[str, AfterValidator(_time)]
PropertyNames = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_properties)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class How(_Section):
    """What a part may say for itself, and the file for all parts that do not.

    targets   file systems: names of the catalogue, `all`, or TOML files
    kernels   names of `postcrash kernels list`, versions, or files; empty for the one that is used without a name
    models    device models
    expect    what is expected, as --expect of `hunt`
    hold      properties that must hold besides
    disks     `both`: one that completes writes at once and one that holds them back; `one`: only the first
    recovery  how crash states are recovered, as --recovery
    fsck      whether the file system's checker runs on every crash state, too
    use       whether files are changed, deleted and written anew after every recovery
    depth     2: the power may fail again during recovery
    budget    the most for one workload on one target
    """

    targets: Names | None = None
    kernels: tuple[str, ...] | None = None
    models: Annotated[tuple[Annotated[str, AfterValidator(_model)], ...], Field(min_length=1)] | None = None
    expect: Annotated[str, AfterValidator(_expectation)] | None = None
    hold: Annotated[tuple[str, ...], AfterValidator(lambda names: _properties(names) if names else names)] | None = None
    disks: Literal["both", "one"] | None = None
    recovery: Recovery | None = None
    fsck: bool | None = None
    use: bool | None = None
    depth: Annotated[int, Field(ge=1, le=2)] | None = None
    budget: Annotated[str, AfterValidator(_budget)] | None = None


class PropertiesPart(How):
    """The workloads of these properties: names and groups, as --properties of `characterize`."""

    properties: PropertyNames


class HuntPart(How):
    """Every workload of so many operations, as `postcrash hunt --ops`.

    grammar, setups, limit, seed  as the options of `hunt`; without setups, those of the grammar
    """

    hunt: Annotated[int, Field(ge=1, le=3)]
    grammar: Literal["ace", "full"] = "ace"
    setups: Annotated[tuple[Setup, ...], Field(min_length=1)] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 1


class RandomPart(How):
    """Random workloads, as `postcrash hunt --random`: so many, drawn with `seed`."""

    random: Annotated[int, Field(ge=1)]
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 1


class CorpusPart(How):
    """Every `.ops` file of a folder, or one such file. Paths are seen from the gate's file."""

    corpus: str


class ApplicationPart(How):
    """An application: its name in the catalogue, or its TOML file.

    set    values of its parameters
    every  whether each combination of the other parameters is run
    """

    application: str
    set: dict[str, str] = Field(default_factory=dict)
    every: bool = False


PartSection = PropertiesPart | HuntPart | RandomPart | CorpusPart | ApplicationPart
_CLASSES: dict[Kind, type[How]] = {
    "properties": PropertiesPart,
    "hunt": HuntPart,
    "random": RandomPart,
    "corpus": CorpusPart,
    "application": ApplicationPart,
}


def kind_of(section: Any) -> Kind | None:
    """What a part runs: the one of `KINDS` that it names. None if it names none, or several."""
    settings = section if isinstance(section, dict) else getattr(type(section), "model_fields", ())
    named = [kind for kind in KINDS if kind in settings]
    return named[0] if len(named) == 1 else None


class GateFile(How):
    """The whole file.

    time      the most for all parts together; without it, each part runs to its end
    confirm   how often the crash state of a new failure is recovered again, and its workload recorded again
    baseline  the file with known failures; it need not be there
    guests    machines at a time; without it, one for each CPU
    parts     what is run, by a name of the user's
    """

    targets: Names
    kernels: tuple[str, ...] = ()
    models: Annotated[tuple[Annotated[str, AfterValidator(_model)], ...], Field(min_length=1)] = ("cache",)
    expect: Annotated[str, AfterValidator(_expectation)] = "practice"
    time: Time | None = None
    confirm: Annotated[int, Field(ge=0, le=1000)] = 2
    baseline: str = "postcrash-known.txt"
    guests: Annotated[int, Field(ge=1, le=256)] | None = None
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
        Field(min_length=1),
    ]

    @property
    def seconds(self) -> float | None:
        """`time` in seconds."""
        return None if self.time is None else Budget.parse(self.time).seconds

    def of(self, part: How, name: str) -> Any:
        """What `part` says of `name`; what the file says if the part says nothing."""
        own = getattr(part, name)
        return getattr(self, name) if own is None else own


def load(path: Path) -> GateFile:
    """The gate in the file `path`. Raises UsageError with the line and the value."""
    try:
        return GateFile.model_validate(read_toml(path), context=path.parent)
    except TomlError as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        raise UsageError(_objection(path, error)) from error


_MESSAGE_MAX = 3000
"""The words of an error can hold a name from the file. Beside it they list what there is."""
_UNSHOWN = frozenset({"missing", "kind", "too_short"})
"""What was found says nothing for these types of errors."""


_WORDS = {
    "extra_forbidden": "there is no such setting",
    "missing": "this must be set",
    "tuple_type": "this must be a list",
    "too_short": "this needs at least one name",
}
"""What is wrong, in words of the file."""


def _objection(path: Path, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = [str(step) for step in first["loc"] if step not in ("[key]",)]
    if len(place) > 2 and place[0] == "parts" and place[2] in KINDS:
        del place[2]  # the tag, which is no place of the file
    message = first["msg"].removeprefix("Value error, ")
    message = cut(_WORDS.get(first["type"], message), _MESSAGE_MAX)
    found = "" if first["type"] in _UNSHOWN else f", found {shown(first['input'])}"
    line = line_of(path.read_text(encoding="utf-8"), place)
    return f"{path}:{line}: {place_of(place) or 'the file'}: {message}{found}"


def schema() -> str:
    """The JSON Schema of the file, for editors."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "postcrash gate"}
    return json.dumps({**GateFile.model_json_schema(), **made}, indent=2) + "\n"
