"""The tests mirror the code, and the figures of docs/house.md are counted right."""

from pathlib import Path, PurePosixPath

from .figures import FIGURES, Code

WITHOUT_MIRROR = 98
"""How many modules have no unit test of their name. This only goes down. Most are tested elsewhere, as in guests."""


def test_no_more_modules_are_without_a_test_of_their_name(root: Path, texts: dict[Path, str]) -> None:
    paths = {PurePosixPath(path): text for path, text in texts.items()}
    code = Code.among(paths)
    assert code.modules()
    missing = code.without_mirror()
    assert len(missing) <= WITHOUT_MIRROR, f"new ones are among {', '.join(map(str, missing))}"
    assert len(missing) == WITHOUT_MIRROR, "there are fewer now: say so here"


def test_figures_are_counted() -> None:
    code = Code.among(
        {
            PurePosixPath(
                "harness/cli.py"
            ): "from postcrash.harness.commands import check\nfrom postcrash.harness import cli\n",
            PurePosixPath(
                "harness/commands/check.py"
            ): "from postcrash.harness.places import here\n\ndef check():\n    here()\n",
            PurePosixPath("harness/commands/__init__.py"): "",
            PurePosixPath("harness/places.py"): "def here(): ...\n",
            PurePosixPath("crashgen/core/src/lib.rs"): "fn one() {\n}\n",
            PurePosixPath("crashgen/core/tests/walk.rs"): "fn not_counted() {\n}\n",
            PurePosixPath("tests/unit/harness/test_places.py"): "",
        }
    )
    assert code.arrows() == {("cli", "commands"), ("commands", "places")}
    assert code.without_mirror() == [PurePosixPath("harness/cli.py"), PurePosixPath("harness/commands/check.py")]
    shown = {name: figure(code) for name, figure in FIGURES.items()}
    assert (shown["files"], shown["functions"], shown["lines of the longest function"]) == (5, 3, 2)
    assert (shown["Python modules"], shown["with a unit test of their name"]) == (3, 1)
