"""Commands that are printed work as they are printed: in the same folder, with a store elsewhere, blanks in paths."""

import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from postcrash.model import ExitCode

from .command import EXAMPLE, Ended, postcrash

GATE = 'targets = ["ext4-original"]\ndisks = "one"\nconfirm = 0\n[parts.rename]\nproperties = ["P5"]\nhold = ["P5"]\n'
_COMMAND = re.compile(r"(?:^|: )\W*(postcrash .*)$")
_FORMS = ("junit", "ktap", "sarif", "markdown", "html", "json")


class Printer:
    """Runs commands in a folder, with one store, and collects the commands that they print."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder / "a folder", str(folder / "my store")
        self.folder.mkdir()
        self.printed: dict[str, str] = {}
        """By what printed it first."""

    def run(self, *words: str) -> Ended:
        done = postcrash(self.folder, "--store", self.store, *words)
        assert done.returncode in (ExitCode.HOLDS, ExitCode.VIOLATED), done.stderr
        self.take(words[0], done.stdout.splitlines())
        return done

    def take(self, source: str, lines: Iterable[str]) -> int:
        found = [match[1] for match in map(_COMMAND.search, lines) if match]
        for line in found:
            self.printed.setdefault(line, source)
        return len(found)


def lines_of(form: str, text: str) -> Iterator[str]:
    """The lines that people read in a form of a gate's result."""
    if form == "html":
        yield from map(html.unescape, re.findall(r"<code>(postcrash [^<]*)</code>", text))
    elif form == "junit":
        yield from "\n".join(ElementTree.fromstring(text).itertext()).splitlines()
    elif form == "sarif":
        for result in json.loads(text)["runs"][0]["results"]:
            yield from result["message"]["text"].splitlines()
    else:
        yield from text.splitlines()


@pytest.fixture(scope="module")
def printer(tmp_path_factory: pytest.TempPathFactory) -> Printer:
    """After a check, a hunt, an audit, a gate in all forms, and a bundle."""
    printer = Printer(tmp_path_factory.mktemp("printed"))
    printer.run("check", str(EXAMPLE), "--target", "ext4-original", "--judge", "P5", "--minimize")
    printer.run("bundle", "last", "-o", "one finding.tar.gz")
    hunt = ("hunt", "--ops", "1", "--target", "ext4-current", "--model", "lying", "--workload-limit", "2")
    printer.run(*hunt, "--one-disk", "--no-minimize", "--budget", "100")
    printer.run(*("audit", "--run", "echo new >f; echo done", "--check", "grep -q new f"), "--target", "ext4-current")
    (printer.folder / "my gate.toml").write_text(GATE)
    printer.run("gate", "my gate.toml", *(word for form in _FORMS for word in (f"--{form}", f"gate.{form}")))
    for form in _FORMS[:-1]:
        text = (printer.folder / f"gate.{form}").read_text(encoding="utf-8")
        assert printer.take(form, lines_of(form, text)) >= 2, form
    printer.run("merge", "gate.json")
    return printer


def test_each_command_that_is_printed_names_the_store(printer: Printer) -> None:
    """A bundle can be taken to any store."""
    assert set(printer.printed.values()) >= {"check", "hunt", "audit", "bundle", "gate"}
    for line, source in printer.printed.items():
        assert source == "bundle" or shlex.split(line)[1:3] == ["--store", printer.store], (source, line)
    names = {shlex.split(line)[1 if source == "bundle" else 3] for line, source in printer.printed.items()}
    assert names == {"explain", "repro", "report", "gate"}


def test_each_command_that_is_printed_runs(printer: Printer) -> None:
    failed = {}
    for line in printer.printed:
        done = postcrash(printer.folder, *shlex.split(line)[1:])
        if done.returncode not in (ExitCode.HOLDS, ExitCode.VIOLATED):
            failed[line] = done.returncode, done.stderr
    assert failed == {}
