"""Prints figures of the structure of checkouts, a column for each (docs/house.md).

    python -m tests.style.figures [FOLDER …]

Only the code counts, without tests and benchmarks.
"""

import ast
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .test_limits import python_functions, rust_functions

PACKAGES = (
    "apps",
    "checkers",
    "crashgen",
    "harness",
    "model",
    "properties",
    "recorders",
    "reports",
    "targets",
    "workloads",
)
LONG_FILE, LONG_FUNCTION = 300, 40


@dataclass(frozen=True)
class Code:
    """The text of each file of a checkout, by its path. `tests` are the paths of all tests."""

    texts: Mapping[PurePosixPath, str]
    tests: frozenset[PurePosixPath]

    @staticmethod
    def of(folder: Path) -> "Code":
        """The files that git tracks in the checkout at `folder`."""
        command = ["git", "-c", "safe.directory=*", "-C", str(folder), "ls-files", "-z", "*.py", "*.rs"]
        listed = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        paths = [PurePosixPath(name) for name in listed.split("\0") if name and not (folder / name).is_symlink()]
        return Code.among({path: (folder / path).read_text(encoding="utf-8") for path in paths})

    @staticmethod
    def among(texts: Mapping[PurePosixPath, str]) -> "Code":
        """What counts among these files."""
        every = {path: text for path, text in texts.items() if path.suffix in (".py", ".rs")}
        code = {path: text for path, text in every.items() if path.parts[0] in PACKAGES and "tests" not in path.parts}
        return Code(code, frozenset(path for path in every if path.parts[0] == "tests"))

    def functions(self) -> list[int]:
        """The length of each function in lines."""
        counts = {".py": python_functions, ".rs": rust_functions}
        return [length for path, text in self.texts.items() for _, length in counts[path.suffix](text)]

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

    def arrows(self) -> set[tuple[str, str]]:
        """Which room of harness/ uses which other one. A room is a folder, or a module that is in none."""
        found = set()
        for path in self.modules():
            if path.parts[0] == "harness":
                here = path.with_suffix("").parts[1]
                found |= {(here, there) for there in _used_rooms(self.texts[path]) if there != here}
        return found


def _used_rooms(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("postcrash.harness"):
            room = (node.module or "").split(".")[2:3]
            yield from room or [name.name for name in node.names]


FIGURES: Mapping[str, Callable[[Code], object]] = {
    "files": lambda code: len(code.texts),
    f"files of more than {LONG_FILE} lines": lambda code: sum(_lines(text) > LONG_FILE for text in code.texts.values()),
    "lines of the longest file": lambda code: max(map(_lines, code.texts.values())),
    "functions": lambda code: len(code.functions()),
    f"functions of more than {LONG_FUNCTION} lines": lambda code: sum(n > LONG_FUNCTION for n in code.functions()),
    "lines of the longest function": lambda code: max(code.functions()),
    "lines of a function, median": lambda code: statistics.median(code.functions()),
    "rooms of harness/": lambda code: len({room for arrow in code.arrows() for room in arrow}),
    "arrows between them": lambda code: len(code.arrows()),
    "Python modules": lambda code: len(code.modules()),
    "with a unit test of their name": lambda code: len(code.modules()) - len(code.without_mirror()),
}


def _lines(text: str) -> int:
    return len(text.splitlines())


def main(folders: list[str]) -> None:
    """Print a Markdown table."""
    checkouts = [Code.of(Path(folder)) for folder in folders or ["."]]
    for name, figure in FIGURES.items():
        print(f"| {name} |", " | ".join(f"{figure(code):,}" for code in checkouts), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
