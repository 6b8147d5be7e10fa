"""The code of a checkout, as tests of style see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

PACKAGES = (
    "apps",
    "checkers",
    "crashgen",
    "harness",
    "model",
    "properties",
    "recorders",
    "reports",
    "store",
    "targets",
    "workloads",
)


@dataclass(frozen=True)
class Code:
    """The text of each file of a checkout, by its path. `tests` are the paths of all tests."""

    texts: Mapping[PurePosixPath, str]
    tests: frozenset[PurePosixPath]

    @staticmethod
    def among(texts: Mapping[PurePosixPath, str]) -> "Code":
        """What counts among these files."""
        every = {path: text for path, text in texts.items() if path.suffix in (".py", ".rs")}
        code = {path: text for path, text in every.items() if path.parts[0] in PACKAGES and "tests" not in path.parts}
        return Code(code, frozenset(path for path in every if path.parts[0] == "tests"))

    def modules(self) -> list[PurePosixPath]:
        """The Python modules, without those that only name a package."""
        return [path for path in self.texts if path.suffix == ".py" and path.name != "__init__.py"]

    def without_mirror(self) -> list[PurePosixPath]:
        """Modules that have no test of their name in the folder of the unit tests that mirrors theirs."""
        return [
            path
            for path in self.modules()
            if PurePosixPath("tests", "unit", path.parent, f"test_{path.name.lstrip('_')}") not in self.tests
        ]
