"""The tests mirror the code."""

from pathlib import Path, PurePosixPath

from .code import Code

WITHOUT_MIRROR = 93
"""How many modules have no unit test of their name. This only goes down. Most are tested elsewhere, as in guests."""


def test_no_more_modules_are_without_a_test_of_their_name(root: Path, texts: dict[Path, str]) -> None:
    paths = {PurePosixPath(path): text for path, text in texts.items()}
    code = Code.among(paths)
    assert code.modules()
    missing = code.without_mirror()
    assert len(missing) <= WITHOUT_MIRROR, f"new ones are among {', '.join(map(str, missing))}"
    assert len(missing) == WITHOUT_MIRROR, "there are fewer now: say so here"


def test_a_module_without_a_mirror_is_found() -> None:
    paths = ("harness/cli/check.py", "harness/cli/__init__.py", "harness/places.py", "harness/guests/lib.rs")
    code = Code.among(dict.fromkeys(map(PurePosixPath, (*paths, "tests/unit/harness/test_places.py")), ""))
    assert code.without_mirror() == [PurePosixPath("harness/cli/check.py")]
