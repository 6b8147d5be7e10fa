"""The examples of a page of the documentation: what they run, and what the page says that they print.

An example stands in a block marked `console`: `$ ` and a command, which `> ` continues, and then its output. There, …
stands for any text within a line, and alone on a line for any number of lines. Commands are run as they stand on the
page, so they must be the same on each machine. Ids of findings are not: `last` is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ANY = "…"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Example:
    """A command with the lines that the page says it prints."""

    command: str
    output: list[str] = field(default_factory=list)

    def check(self, printed: str) -> None:
        """Raise AssertionError for other output."""
        match = re.fullmatch(
            "".join(map(_line, self.output)), "".join(f"{each.rstrip()}\n" for each in printed.splitlines())
        )
        wanted = "\n".join(self.output)
        assert match, f"$ {self.command}\n\nprinted\n\n{printed}\nbut the page says\n\n{wanted}"


def examples(page: str) -> Iterator[Example]:
    """The examples of a page's text, in order."""
    for block in _BLOCK.findall(page):
        example = None
        for line in block.splitlines():
            if line.startswith("$ "):
                if example:
                    yield example
                example = Example(line.removeprefix("$ "))
                continue
            assert example, f"a block must begin with a command: {line}"
            if line.startswith(">") and not example.output:
                example.command += "\n" + line.removeprefix(">").removeprefix(" ")
            else:
                example.output.append(line.rstrip())
        if example:
            yield example


def _line(line: str) -> str:
    return r"(?:.*\n)*?" if line == ANY else re.escape(line).replace(ANY, ".*?") + r"\n"
