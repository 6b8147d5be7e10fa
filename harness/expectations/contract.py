"""What was measured on a kernel that somebody trusts: the properties that held, for hunts on other kernels.

A contract is JSON, so that it can be kept beside the code that it is about, and read in a review. It names each
property with what its verdict rests on.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pydantic

from postcrash.harness.errors import UsageError
from postcrash.model import Verdict
from postcrash.model.validation import first_objection
from postcrash.reports.store.records import Cell


class HeldProperty(pydantic.BaseModel):
    """What the verdict of one property covers; `states` is decimal text, as it outgrows what JSON readers take."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    states: str
    workloads: int
    recoveries: int


class Contract(pydantic.BaseModel):
    """The properties that held of each target on `kernel`, on drives of the device `model`."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)
    format: Literal["postcrash contract 1"] = "postcrash contract 1"
    kernel: str
    model: str
    held: dict[str, dict[str, HeldProperty]]

    @staticmethod
    def of(cells: Iterable[Cell], kernel: str, model: str) -> "Contract":
        """That of a table's cells: a property that was not decided, or violated, is no part of it."""
        held: dict[str, dict[str, HeldProperty]] = {}
        for cell in cells:
            if cell.verdict is Verdict.HOLDS:
                about = HeldProperty(states=str(cell.states), workloads=cell.workloads, recoveries=cell.recoveries)
                held.setdefault(cell.target, {})[cell.property] = about
        return Contract(kernel=kernel, model=model, held=held)

    @staticmethod
    def load(file: str) -> "Contract":
        """That in `file`. Raises UsageError with the place of what is wrong."""
        try:
            return Contract.model_validate_json(Path(file).read_bytes())
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from error
        except pydantic.ValidationError as error:
            raise UsageError(f"{file} is no contract of `characterize --contract`: {first_objection(error)}") from error

    def to_text(self) -> str:
        """As a file has it."""
        return self.model_dump_json(indent=2) + "\n"

    def of_target(self, target: str, model: str, file: str) -> dict[str, HeldProperty]:
        """What held of the target. Raises UsageError if the contract says nothing of it."""
        if model != self.model:
            raise UsageError(f"{file} is about device model {self.model}, not {model}")
        if not self.held.get(target):
            raise UsageError(f"{file} says nothing about {target}; it has {', '.join(self.held) or 'no target'}")
        return self.held[target]
