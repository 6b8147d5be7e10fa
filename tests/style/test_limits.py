"""Limits that only ever go down."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

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


def test_lengths_are_counted_right() -> None:
    python = "def a():\n    pass\n\nasync def b(\n    c,\n):\n    return c\n"
    assert dict(python_functions(python)) == {"a": 2, "b": 4}
    rust = (
        "trait T {\n    fn declared(&self) -> u8;\n    fn wrapped(\n        &self,\n    );\n}\n"
        "impl T {\n    pub(crate) const fn short() {}\n\n    pub fn long(\n        a: u8,\n    ) -> u8 {\n"
        "        a\n    }\n}\n\nfn last() {\n    if true {\n    }\n}\n"
    )
    assert dict(rust_functions(rust)) == {"declared": 1, "wrapped": 3, "short": 1, "long": 5, "last": 4}
