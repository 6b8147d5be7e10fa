"""The folder postcrash/ gives the top-level folders one import name."""

from pathlib import Path

from ..conftest import LONGEST

PACKAGES = {
    "corpus",
    "model",
    "targets",
    "recorders",
    "crashgen",
    "properties",
    "checkers",
    "harness",
    "reports",
    "store",
    "workloads",
    "apps",
}


def test_postcrash_links_to_each_package(root: Path) -> None:
    links = {path.name: path.readlink() for path in (root / "postcrash").iterdir() if path.is_symlink()}
    assert links == {name: Path("..", name) for name in PACKAGES}


def test_postcrash_holds_nothing_else(root: Path) -> None:
    allowed = {"__init__.py", "py.typed", "_core.pyi", "_core.abi3.so", "_bin", "__pycache__"}
    files = {path.name for path in (root / "postcrash").iterdir() if not path.is_symlink()}
    assert files - allowed == set()


def test_each_package_says_what_it_is(root: Path) -> None:
    for name in PACKAGES:
        assert (root / name / "__init__.py").read_text().startswith('"""'), name


def test_the_longest_files_of_tests_are_there(root: Path) -> None:
    missing = [file for file in LONGEST if not (root / "tests" / file).is_file()]
    assert missing == [], "tests/conftest.py names them"
