"""Contracts: the properties that held on a kernel that somebody trusts, for hunts on other kernels.

A contract is JSON, so that it can be kept beside the code that it is about, and read in a review. For each property, it
says what the verdict rests on.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pydantic

from postcrash.harness.errors import UsageError
from postcrash.model import Verdict
from postcrash.model.validation import TooLargeError, first_objection, read_bounded
from postcrash.reports.store.records import Cell
from postcrash.reports.text import cut, one_line

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
            return Contract.model_validate_json(read_bounded(Path(file), _BYTES_MAX))
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from error
        except TooLargeError as error:
            raise UsageError(str(error)) from error
        except pydantic.ValidationError as error:
            raise UsageError(f"{file} is no contract of `characterize --contract`: {first_objection(error)}") from error

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
