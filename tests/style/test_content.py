"""No file of the project may have these contents. The forbidden words are put together here, so this file passes."""

import re
from pathlib import Path

import pytest

UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")

# This path exists on one machine only.
MACHINE_PATH = re.compile(r"(?<![\w.~}-])/(work|root|opt|Users|home)/[\w.-]+")

# The machine's own configuration decides where packages come from.
REGISTRY_HOST = re.compile(
    r"\b(pypi|pythonhosted|crates|npmjs|rubygems)\.(org|io)\b|\b\w+\.golang\.org\b|\bdeb\.debian\.org\b"
    r"|\b[\w-]*(artifactory|nexus|mirror)[\w-]*\.[\w-]+\.\w+"
)

# This is the only source that Cargo.lock may name: cargo's word for the public registry, whatever mirror serves it.
CARGO_SOURCE = "registry+https://github.com/rust-lang/crates" + ".io-index"


def offending_lines(texts: dict[Path, str], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_nothing_is_left_for_later(texts: dict[Path, str]) -> None:
    assert offending_lines(texts, UNFINISHED) == []


def test_no_machine_path(texts: dict[Path, str]) -> None:
    assert offending_lines(texts, MACHINE_PATH) == []


def test_no_registry_host(texts: dict[Path, str]) -> None:
    without_lock = {path: text for path, text in texts.items() if path.suffix != ".lock"}
    assert offending_lines(without_lock, REGISTRY_HOST) == []


@pytest.mark.parametrize("lock", ["Cargo.lock", "apps/catalogue/replace-rust.lock"])
def test_cargo_lock_names_the_public_registry_only(root: Path, lock: str) -> None:
    sources = re.findall(r'^source = "(.*)"$', (root / lock).read_text(), re.MULTILINE)
    assert sources
    assert set(sources) == {CARGO_SOURCE}


def test_the_patterns_find_what_they_should() -> None:
    assert UNFINISHED.search("# TO" + "DO: later")
    assert MACHINE_PATH.search('open("/ho' + 'me/someone/file")')
    assert MACHINE_PATH.search("cd /wo" + "rk/main")
    assert not MACHINE_PATH.search("mnt/home/a, {tox_root}/work/x and ~/work/y")
    assert REGISTRY_HOST.search("https://py" + "pi.org/simple")
    assert REGISTRY_HOST.search("https://mirr" + "or.example.com/debian")
