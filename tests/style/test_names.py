"""One word has one meaning: no two modules of the code give a public type the same name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from .figures import Code


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
    assert places["Finding"] == ["reports/store/records.py"]
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_public_types_are_found() -> None:
    source = "class A: ...\nclass _B: ...\nRow = tuple[str, str]\n_Row = Row\nLIMIT = 3\nnames = {}\n"
    assert list(public_types(source)) == ["A", "Row"]
