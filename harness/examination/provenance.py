"""How a recording was made, as its metadata say."""

import json
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import ConfigDict, Field

from postcrash._core import Recording
from postcrash.apps import Application
from postcrash.harness.examination.recording import RECORDERS
from postcrash.harness.wire import Message


@dataclass(frozen=True, slots=True)
class Provenance(Message):
    """What postcrash reads in the metadata of a workload's recording. Metadata say more, for people.

    base          the id of the base image on which the workload began
    recorder      the recorder of the requests, and `requested` the one that was asked for, which may be `auto`
    held          seed of the held-back completions; None if they were not held back
    device        the path of the requests, in words
    application   the application that was run, with all that is needed to judge once more
    acknowledged  the lines of the first of two crashes, which its check is told of
    test          the test of pytest whose function is the check; only pytest can judge once more
    """

    __pydantic_config__ = ConfigDict(extra="ignore")
    base: str
    recorder: str
    held: Annotated[int, Field(strict=True, ge=0, lt=2**64)] | None
    requested: str | None = None
    device: str = ""
    application: Application | None = None
    acknowledged: tuple[str, ...] | None = None
    test: str | None = None

    def __post_init__(self) -> None:
        for name in (self.recorder, self.recorder_again):
            if name not in RECORDERS:
                raise ValueError(f"there is no recorder {name!r}")

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """The provenance of `recording`. Raises `WireError`."""
        return cls.from_wire(json.loads(recording.metadata))

    @property
    def recorder_again(self) -> str:
        """The recorder to request when the workload is recorded again."""
        return self.requested or self.recorder
