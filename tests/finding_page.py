"""The pages of docs/findings, as tests and measurements read them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Self

FOLDER = Path(__file__).resolve().parents[1] / "docs/findings"
VERDICTS = {"✗": "violated", "✓": "holds"}
VERSIONS = ("5.10", "6.1", "6.12", "7.2")
"""The kernels that a page has a sign for."""


@dataclass(frozen=True)
class FindingPage:
    """What a page says can be run.

    signs      for each of VERSIONS, a key of VERDICTS, or – where there is no such file system
    arguments  those of `postcrash`: `check`, the name of the workload's file, the target and the judge come first
    """

    name: str
    target: str
    judge: str
    signs: tuple[str, ...]
    workload: str
    arguments: tuple[str, ...]

    @classmethod
    def read(cls, place: Path) -> Self:
        """The page in this file."""
        text = place.read_text()
        header, row = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)[0::2]
        assert header.split(" | ") == ["target", "judge", *VERSIONS]
        target, judge, *signs = row.split(" | ")
        (workload,) = re.findall(r"^```ops\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        (command,) = re.findall(r"^    postcrash (.*)$", text, re.MULTILINE)
        arguments = tuple(shlex.split(command))
        assert arguments[:6] == ("check", f"{place.stem}.ops", "--target", target, "--judge", judge)
        return cls(place.stem, target, judge, tuple(signs), workload, arguments)

    def sign(self, version: str) -> str:
        """The sign of the kernel `6.1.176`, or of another one of that series."""
        return self.signs[VERSIONS.index(".".join(version.split(".")[:2]))]

    def put_workload(self, folder: Path) -> None:
        """Write the workload to the file that the arguments name."""
        (folder / self.arguments[1]).write_text(self.workload)


def finding_pages() -> tuple[FindingPage, ...]:
    """All pages, by name."""
    return tuple(FindingPage.read(place) for place in sorted(FOLDER.glob("*.md")) if place.name != "README.md")
