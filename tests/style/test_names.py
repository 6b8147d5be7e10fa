"""One word has one meaning: no two modules give a public type the same name, and types are named by nouns."""

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
