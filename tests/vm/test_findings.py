"""Every page of docs/findings can be reproduced on this kernel."""

import json
import re
import shlex
from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel

from .command import postcrash

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs/findings"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.name != "README.md")
VERDICTS = {"✗": "violated", "✓": "holds"}
VERSIONS = ("5.10", "6.1", "6.12", "7.2")


def row_of(text: str) -> list[str]:
    """The target, the judge, and a sign for each version of the kernel."""
    lines: list[str] = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    header, row = lines[0::2]
    assert header.split(" | ") == ["target", "judge", *VERSIONS]
    return row.split(" | ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    target, judge, *signs = row_of(text)
    (workload,) = re.findall(r"^```ops\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / f"{page.stem}.ops").write_text(workload)
    (command,) = re.findall(r"^    postcrash (.*)$", text, re.MULTILINE)
    arguments = shlex.split(command)
    assert arguments[:6] == ["check", f"{page.stem}.ops", "--target", target, "--judge", judge]
    done = postcrash(tmp_path, *arguments, "--engine", "uml", "--json", "-")
    assert done.stdout, done.stderr
    series = ".".join(find_kernel().version.split(".")[:2])
    assert json.loads(done.stdout)["verdict"] == VERDICTS[signs[VERSIONS.index(series)]]


def test_the_index_says_what_the_pages_say() -> None:
    index = (FOLDER / "README.md").read_text()
    rows = re.findall(r"^\| \[.*\]\((.*)\) \| .*? \| (.) \| (.) \| (.) \| (.) \|$", index, re.MULTILINE)
    assert {name: signs for name, *signs in rows} == {page.name: row_of(page.read_text())[2:] for page in PAGES}
