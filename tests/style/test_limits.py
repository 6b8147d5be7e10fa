"""Limits that only ever go down."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
POSITIONAL_MAX = 6
"""The most values that a call of ours passes by their places. A reader cannot tell more apart without their names."""

# This matches a line that opens a Rust function, as rustfmt writes it. The closing brace has the same indentation.
RUST_FUNCTION = re.compile(
    r'^(?P<indent> *)(pub(\([^)]*\))? )?((const|async|unsafe|extern( "[^"]*")?) )*fn (?P<name>\w+)', re.MULTILINE
)


def python_functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function's name and its length in lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def rust_functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function's name and its length in lines. A function whose body has no lines of its own counts as one."""
    lines = source.splitlines()
    for match in RUST_FUNCTION.finditer(source):
        first = source.count("\n", 0, match.start())
        yield match["name"], rust_function_end(lines, first, match["indent"]) - first + 1


def rust_function_end(lines: list[str], first: int, indent: str) -> int:
    for number in range(first, len(lines)):
        if lines[number] == indent + "}":
            return number
        signature_may_end = number == first or lines[number].startswith(indent + ")")
        if signature_may_end and lines[number].endswith((";", "}")):
            return number
    return len(lines) - 1


def named_by_us(trees: Mapping[Path, ast.Module]) -> set[str]:
    """Our classes and functions whose parameters all have names. One with `*values` takes a list, not parameters."""
    parameters: set[str] = set()
    listing: set[str] = set()
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                parameters.add(node.name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                (listing if node.args.vararg else parameters).add(node.name)
    return parameters - listing


def long_calls(tree: ast.Module, ours: set[str]) -> Iterator[tuple[str, int]]:
    """Each call of a class or function of `ours` with too many positional values: its name and line.

    A function that is itself a parameter of the file, such as a fixture, can have any parameters.
    """
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            values = [value for value in node.args if not isinstance(value, ast.Starred)]
            if name in ours - parameters and len(values) > POSITIONAL_MAX:
                yield name, node.lineno


FUNCTIONS = {".py": python_functions, ".rs": rust_functions}


def test_files_are_short(texts: dict[Path, str]) -> None:
    lengths = {path: len(text.splitlines()) for path, text in texts.items() if path.suffix in FUNCTIONS}
    assert lengths
    assert {path: length for path, length in lengths.items() if length > FILE_LINES_MAX} == {}


def test_functions_are_short(texts: dict[Path, str]) -> None:
    lengths = {
        f"{path}: {name}": length
        for path, text in texts.items()
        if path.suffix in FUNCTIONS
        for name, length in FUNCTIONS[path.suffix](text)
    }
    assert lengths
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES_MAX} == {}


def test_calls_name_their_values(texts: dict[Path, str]) -> None:
    trees = {path: ast.parse(text) for path, text in texts.items() if path.suffix == ".py"}
    ours = named_by_us(trees)
    assert ours
    assert [f"{path}:{line}: {name}" for path, tree in trees.items() for name, line in long_calls(tree, ours)] == []


def test_calls_without_names_are_found() -> None:
    tree = ast.parse(
        "class Cell: ...\n"
        "def one(a, b): ...\n"
        "def many(*values): ...\n"
        "def test(fixture):\n"
        "    records.Cell(1, 2, 3, 4, 5, 6, 7)\n"
        "    Cell(1, 2, *x, 3, 4, 5, 6, g=7)\n"
        "    one(1, 2, *x, 3, 4, 5, 6, 7)\n"
        "    many(1, 2, 3, 4, 5, 6, 7)\n"
        "    fixture(1, 2, 3, 4, 5, 6, 7)\n"
        "    theirs(1, 2, 3, 4, 5, 6, 7)\n"
    )
    assert list(long_calls(tree, named_by_us({Path("a.py"): tree}))) == [("Cell", 5), ("one", 7)]


def test_lengths_are_counted_right() -> None:
    python = "def a():\n    pass\n\nasync def b(\n    c,\n):\n    return c\n"
    assert dict(python_functions(python)) == {"a": 2, "b": 4}
    rust = (
        "trait T {\n    fn declared(&self) -> u8;\n    fn wrapped(\n        &self,\n    );\n}\n"
        "impl T {\n    pub(crate) const fn short() {}\n\n    pub fn long(\n        a: u8,\n    ) -> u8 {\n"
        "        a\n    }\n}\n\nfn last() {\n    if true {\n    }\n}\n"
    )
    assert dict(rust_functions(rust)) == {"declared": 1, "wrapped": 3, "short": 1, "long": 5, "last": 4}
