"""The walks through the code name what is there."""

import re
from pathlib import Path

from ...style.code import PACKAGES

ROOT = Path(__file__).resolve().parents[3]
_DEFINITION = re.compile(r"^ *(?:pub(?:\([a-z]+\))? )?(?:class|def|struct|enum|trait|fn) (\w+)", re.MULTILINE)
_NAME = re.compile(r"`([^`]+)`")


def walks(page: str) -> str:
    return page.partition("\n## Walks through the code\n")[2].partition("\n## ")[0]


def missing(names: list[str], places: set[str], definitions: set[str]) -> list[str]:
    """Names that are neither the end of a file's or folder's path, nor that of a class or function."""
    is_place = {name: any(place.endswith("/" + name.rstrip("/")) for place in places) for name in names}
    return [name for name in names if not is_place[name] and name not in definitions]


def test_what_the_walks_name_is_there() -> None:
    files = [file for folder in PACKAGES for file in (ROOT / folder, *(ROOT / folder).rglob("*"))]
    sources = [file for file in files if file.suffix in (".py", ".rs")]
    definitions = {name for file in sources for name in _DEFINITION.findall(file.read_text(encoding="utf-8"))}
    places = {f"/{file.relative_to(ROOT)}" for file in files}
    names = _NAME.findall(walks((ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")))
    assert len(names) > 20
    assert missing(names, places, definitions) == []


def test_what_is_not_there_is_noticed() -> None:
    page = "\n## Walks through the code\n\n`Tally` of `a/b.py` in `a/` by `run` of `c.py`\n\n## Folders\n\n`x.py`\n"
    assert missing(_NAME.findall(walks(page)), {"/a", "/a/b.py"}, {"run"}) == ["Tally", "c.py"]
