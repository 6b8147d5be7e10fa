"""Contracts: the properties that held on a kernel that somebody trusts, for hunts on other kernels.

A contract is JSON, so that it can be kept beside the code that it is about, and read in a review. For each property, it
says what the verdict rests on.
"""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pydantic

from postcrash.harness.errors import UsageError
from postcrash.model import Verdict
from postcrash.model.text import cut, one_line
from postcrash.model.validation import TooLargeError, first_objection, read_bounded, shown
from postcrash.properties import UnknownPropertyError, property_named
from postcrash.store.records import Cell

_BYTES_MAX = 16 << 20
_KNOWN_MAX = 200


class HeldProperty(pydantic.BaseModel):
    """What the verdict of one property covers. `states` is decimal text, as it can be too large for JSON."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    states: str = pydantic.Field(pattern=r"^[1-9][0-9]*$")
    workloads: int = pydantic.Field(ge=1)
    recoveries: int = pydantic.Field(ge=0)


class Contract(pydantic.BaseModel):
    """The properties that held for each target on `kernel`, on drives of the device `model`."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    format: Literal["postcrash contract 1"]
    kernel: str = pydantic.Field(pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")
    model: str
    held: dict[str, dict[str, HeldProperty]]

    @staticmethod
    def of(cells: Iterable[Cell], kernel: str, model: str) -> "Contract":
        """The contract of a table's cells. Properties that were undecided or violated are not part of it."""
        held: dict[str, dict[str, HeldProperty]] = {}
        for cell in cells:
            if cell.verdict is Verdict.HOLDS:
                about = HeldProperty(states=str(cell.states), workloads=cell.workloads, recoveries=cell.recoveries)
                held.setdefault(cell.target, {})[cell.property] = about
        return Contract(format="postcrash contract 1", kernel=kernel, model=model, held=held)

    @staticmethod
    def load(file: str) -> "Contract":
        """The contract in `file`. Raises UsageError with the place of the error."""
        try:
            text = read_bounded(Path(file), _BYTES_MAX)
            contract = Contract.model_validate_json(text)
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from error
        except TooLargeError as error:
            raise UsageError(str(error)) from error
        except pydantic.ValidationError as error:
            raise UsageError(f"{file} is no contract of `characterize --contract`: {first_objection(error)}") from error
        json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, file))
        for name in dict.fromkeys(name for held in contract.held.values() for name in held):
            _check_name(name, file)
        return contract

    def to_text(self) -> str:
        """The contract as the text of a file."""
        return self.model_dump_json(indent=2) + "\n"

    def of_target(self, target: str, model: str, file: str) -> dict[str, HeldProperty]:
        """The properties that held for the target. Raises UsageError if the contract says nothing about the target."""
        if model != self.model:
            raise UsageError(f"{file} is about device model {self.model}, not {model}")
        if not self.held.get(target):
            known = cut(one_line(", ".join(self.held)), _KNOWN_MAX)
            raise UsageError(f"{file} says nothing about {target}; it has {known or 'no target'}")
        return self.held[target]


def _without_repeats(pairs: list[tuple[str, Any]], file: str) -> dict[str, Any]:
    """An object of the file, of which JSON's parsers would keep the last of two fields with one name."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise UsageError(f"{file}: {shown(name)} stands {count} times in one object")
    return dict(pairs)


def _check_name(name: str, file: str) -> None:
    try:
        known = property_named(name).name
    except UnknownPropertyError as error:
        raise UsageError(f"{file}: {error}") from error
    if name != known:
        raise UsageError(f"{file}: no property is called {name!r}, but {known} is")
