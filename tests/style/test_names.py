"""One word has one meaning: no two modules give a public type the same name. Names say what things are."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .code import Code

RUST_TYPE = re.compile(r"^ *(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)", re.MULTILINE)
KINDS_OF_PROPERTY = {"Ordered"}
"""An adjective, like `Atomic` and `Durable` beside it."""
PARTICIPLE = re.compile(r"_?[A-Z][a-z]*[^e]ed")


def public_types(source: str) -> Iterator[str]:
    """The classes that a module defines and the names that it gives to other types, such as `Row = tuple[str, str]`."""
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.isupper():
                pass
            case _:
                continue
        if name[0].isupper():
            yield name


def test_a_public_type_has_a_name_of_its_own(texts: dict[Path, str]) -> None:
    code = Code.among({PurePosixPath(path): text for path, text in texts.items()})
    places = defaultdict(list)
    for module in code.modules():
        if "catalogue" not in module.parts:
            for name in public_types(code.texts[module]):
                places[name].append(str(module))
    assert places["Finding"] == ["store/records.py"]
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_public_types_are_found() -> None:
    source = "class A: ...\nclass _B: ...\nRow = tuple[str, str]\n_Row = Row\nLIMIT = 3\nnames = {}\n"
    assert list(public_types(source)) == ["A", "Row"]


def test_no_type_is_named_by_a_participle(texts: dict[Path, str]) -> None:
    """`Recorded` says that something was recorded, and not what it is."""
    code = Code.among({PurePosixPath(path): text for path, text in texts.items()})
    found = []
    for path, text in code.texts.items():
        names = RUST_TYPE.findall(text) if path.suffix == ".rs" else classes(text)
        found += [f"{path}: {name}" for name in names if PARTICIPLE.fullmatch(name) and name not in KINDS_OF_PROPERTY]
    assert found == []


def classes(source: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def test_participles_are_found() -> None:
    source = "pub struct Recorded {\n    pub(crate) enum Seed {}\ntype Hunted = u8;\nstruct RecordedRun;\n"
    assert [name for name in RUST_TYPE.findall(source) if PARTICIPLE.fullmatch(name)] == ["Recorded", "Hunted"]
    assert classes("class _Asked:\n    class B: ...\n") == ["_Asked", "B"]


BETTER = {
    "told": "report, details, row, or what else it is",
    "asked": "question, requested, options",
    "unasked": "unexamined",
    "said": "message, reason, output",
    "listed": "names, entries",
    "left_open": "unresolved",
    "hunted": "hunt, hunt_report",
    "audited": "audit, audit_report",
    "recorded": "recording, run",
    "taking": "capture, recording",
    "seat": "cpu_pinning",
    "natures": "kinds",
    "lives": "history, inode_history",
    "casualties": "lost_guests",
    "several": "many, batch, or what they are",
    "fixed": "resolved, constant",
}
"""Words that say that something was done, or hint at it, with names that say what it is."""
REMAINING: dict[str, int] = {
    "store": 2,
}
"""How many names in each folder are still such a word. These only go down."""
RUST_NOISE = re.compile(r'//.*|"(?:\\.|[^"\\])*"')
RUST_NAME = re.compile(
    r"\b(?:fn|mod|let mut|let|const|static) (?P<item>\w+)"
    r"|(?<![\w:])(?P<typed>[a-z_]\w*): "
    r"|\|&?(?P<closure>\w+)[,|]"
)


def python_names(source: str) -> Iterator[str]:
    """The names that a module gives: to functions, classes, parameters, variables and attributes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def rust_names(source: str) -> Iterator[str]:
    """The names that a file gives: to functions, modules, parameters, fields and variables."""
    for match in RUST_NAME.finditer(RUST_NOISE.sub("", source)):
        yield match[match.lastgroup or 0]


def is_poor(name: str) -> bool:
    """Whether the name is one of the words, alone or with `is_` or `as_` before it."""
    return name.lower().lstrip("_").removeprefix("is_").removeprefix("as_") in BETTER


def test_names_say_what_things_are(texts: dict[Path, str]) -> None:
    code = Code.among({PurePosixPath(path): text for path, text in texts.items()})
    places: dict[str, list[str]] = defaultdict(list)
    for path, text in code.texts.items():
        names = rust_names(text) if path.suffix == ".rs" else python_names(text)
        folder = "/".join(path.parts[:-1][:2])
        places[folder] += [f"{path}: {name}" for name in (path.stem, *names) if is_poor(name)]
    found = {folder: len(names) for folder, names in places.items() if names}
    more = {folder: names for folder, names in places.items() if len(names) > REMAINING.get(folder, 0)}
    assert not more, f"{more}\nbetter: {BETTER}"
    assert found == {folder: count for folder, count in REMAINING.items() if count}, "there are fewer now: say so here"


def test_poor_names_are_found() -> None:
    python = "def told(asked, *, said=1):\n    self._seat = [x for hunted in y]\n    fine = told\nclass Lives: ...\n"
    assert [name for name in python_names(python) if is_poor(name)] == [
        "told",
        "Lives",
        "asked",
        "said",
        "_seat",
        "hunted",
    ]
    rust = 'pub fn told(&self, asked: u8) {\n    let mut is_told = "said: "; // seat: u8\n    x.map(|hunted| y)\n}\n'
    assert list(filter(is_poor, rust_names(rust))) == ["told", "asked", "is_told", "hunted"]
