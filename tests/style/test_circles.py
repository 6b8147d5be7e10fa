"""No two modules of a crate use each other, even indirectly. (import-linter checks this for Python: pyproject.toml.)"""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = sorted(path.parent for path in ROOT.glob("*/**/src") if (path.parent / "Cargo.toml").exists())
Module = tuple[str, ...]

_USE = re.compile(r"^\s*(?:pub(?:\([a-z]+\))? )?use (.+?);", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"\bcrate((?:::\w+)+)")
_COMMENT = re.compile(r"//.*")
_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*", re.MULTILINE | re.DOTALL)


def code_of(text: str) -> str:
    """The code without comments and without tests, which may use anything."""
    return _COMMENT.sub("", _TESTS.sub("", text))


def modules(crate: Path) -> dict[Module, str]:
    """The code of each module."""
    found = {}
    for file in sorted((crate / "src").rglob("*.rs")):
        path = file.relative_to(crate / "src").with_suffix("").parts
        name = path[:-1] if path[-1] in {"mod", "lib", "main"} else path
        found[name] = code_of(file.read_text(encoding="utf-8"))
    return found


def paths(tree: str) -> Iterator[Module]:
    """The paths that a use declaration names: `a::{b, c::d}` is a::b and a::c::d."""
    head, brace, rest = tree.strip().partition("{")
    start = tuple(part for part in head.split("::") if part)
    if not brace:
        yield tuple(part.split(" as ")[0].strip() for part in start)
        return
    depth, item = 0, ""
    for character in rest.rstrip().removesuffix("}") + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield from (start + path for path in paths(item) if item.strip())
            item = ""
        else:
            item += character


def used(name: Module, text: str, known: dict[Module, str]) -> set[Module]:
    """The modules of the crate that one of them uses. A folder that declares its own modules does not use them."""
    named = [path for match in _USE.finditer(text) for path in paths(match[1])]
    named += [("crate", *match[1].split("::")[1:]) for match in _NAMED.finditer(text)]
    found = set()
    for path in named:
        absolute = path[1:] if path[0] == "crate" else (*name[:-1], *path[1:]) if path[0] == "super" else None
        while absolute and absolute not in known:
            absolute = absolute[:-1]
        if absolute and absolute != name:
            found.add(absolute)
    return found


def circle(uses: dict[Module, set[Module]]) -> list[Module]:
    """The modules of a circle. Empty if there is none."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: str(crate.relative_to(ROOT)))
def test_there_is_no_circle(crate: Path) -> None:
    known = modules(crate)
    assert not circle({name: used(name, text, known) for name, text in known.items()})


def test_a_circle_is_found() -> None:
    a, c, e = ("a",), ("b", "c"), ("e",)
    texts = {a: "use crate::b::c::{self, D};", c: "use std::io;\nuse crate::{e, x};", e: "crate::a::f()"}
    assert set(circle({name: used(name, text, texts) for name, text in texts.items()})) == {a, c, e}
    texts[e] = code_of("/// Like [`crate::a`].\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    use crate::a::f;\n}\n")
    assert not circle({name: used(name, text, texts) for name, text in texts.items()})
