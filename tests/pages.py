"""The examples of a page of the documentation: what they run, and what the page says that they print.

An example stands in a block marked `console`: `$ ` and a command, which `> ` continues, and then its output. There, …
stands for any text within a line, and alone on a line for any number of lines. Ids of findings and causes differ from
machine to machine. The first time that the page shows one, it stands for the id that is really there; from then on, it
is that id.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

ANY = "…"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"\b([fc]-[0-9a-f]{8,})\b")


@dataclass
class Example:
    """A command with the lines that the page says it prints."""

    command: str
    output: list[str] = field(default_factory=list)

    def pattern(self, ids: Mapping[str, str]) -> re.Pattern[str]:
        """What the real output must match. `ids`: the real ids of those that the page has shown."""
        shown: set[str] = set()
        return re.compile("".join(_line(line, ids, shown) for line in self.output))

    def found(self, printed: str, ids: Mapping[str, str]) -> dict[str, str]:
        """The real ids of those that this example shows for the first time. Raises AssertionError for other output."""
        match = self.pattern(ids).fullmatch("".join(f"{line.rstrip()}\n" for line in printed.splitlines()))
        wanted = "\n".join(self.output)
        assert match, f"$ {self.command}\n\nprinted\n\n{printed}\nbut the page says\n\n{wanted}"
        return {name.replace("_", "-"): value for name, value in match.groupdict().items()}


def with_ids(text: str, ids: Mapping[str, str]) -> str:
    """The text with the real ids."""
    return _ID.sub(lambda match: ids.get(match[1], match[1]), text)


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


def _line(line: str, ids: Mapping[str, str], shown: set[str]) -> str:
    if line == ANY:
        return r"(?:.*\n)*?"
    # Every second part is an id.
    parts = _ID.split(line)
    texts = (re.escape(part).replace(ANY, ".*?") for part in parts[::2])
    names = (_id(part, ids, shown) for part in parts[1::2])
    return "".join(text + name for text, name in zip_longest(texts, names, fillvalue="")) + r"\n"


def _id(name: str, ids: Mapping[str, str], shown: set[str]) -> str:
    if name in ids:
        return re.escape(ids[name])
    group = name.replace("-", "_")
    if name in shown:
        return f"(?P={group})"
    shown.add(name)
    return f"(?P<{group}>{name[0]}-[0-9a-f]+)"
