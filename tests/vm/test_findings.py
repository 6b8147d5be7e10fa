"""Every page of docs/findings can be reproduced on this kernel."""

import json
import re
from pathlib import Path

import pytest

from postcrash.harness.guests.kernels.kernel import find_kernel

from ..finding_page import FOLDER, VERDICTS, FindingPage, finding_pages
from .command import postcrash


@pytest.mark.parametrize("page", finding_pages(), ids=lambda page: page.name)
def test_a_page_shows_what_it_says(page: FindingPage, tmp_path: Path) -> None:
    page.put_workload(tmp_path)
    done = postcrash(tmp_path, *page.arguments, "--engine", "uml", "--json", "-")
    assert done.stdout, done.stderr
    assert json.loads(done.stdout)["verdict"] == VERDICTS[page.sign(find_kernel().version)]


def test_the_index_says_what_the_pages_say() -> None:
    index = (FOLDER / "README.md").read_text()
    rows = re.findall(r"^\| \[.*\]\((.*)\) \| .*? \| (.) \| (.) \| (.) \| (.) \|$", index, re.MULTILINE)
    assert {name: tuple(signs) for name, *signs in rows} == {f"{page.name}.md": page.signs for page in finding_pages()}
