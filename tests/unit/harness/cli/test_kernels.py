"""`postcrash kernels`: what is here already stays, and nothing is replaced that nobody wanted replaced."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from postcrash.harness.cli import kernels as module
from postcrash.harness.errors import UsageError
from postcrash.harness.guests.kernels.debian import Suite
from postcrash.harness.guests.kernels.stock import KernelParts, Stock
from postcrash.model import ExitCode

from ..guests.kernels.test_stock import uml
from .conftest import postcrash

ORIGIN = "user-mode-linux 6.12um1+b22"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POSTCRASH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def add(path: Path, name: str, *, replaces: bool = False) -> int:
    command: Any = module.add.callback
    code: int = command(path, None, None, name, replaces, None)
    return code


def test_the_same_kernel_can_be_added_twice(tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = uml(tmp_path / "linux", body=b"first")
    assert [add(mine, "mine") for _ in range(2)] == [ExitCode.HOLDS] * 2
    first, second, *_ = [line for line in capsys.readouterr().out.splitlines() if line.startswith("mine")]
    assert (first, second) == (f"mine: {mine}", f"mine is here already: {mine}")


def test_a_kernel_is_replaced_only_if_that_is_asked_for(tmp_path: Path, cache: Path) -> None:
    mine = uml(tmp_path / "linux", body=b"first")
    add(mine, "mine")
    uml(mine, body=b"second")
    refused = postcrash(tmp_path, "kernels", "add", mine, "--name", "mine")
    assert refused.returncode == ExitCode.USAGE
    assert "a kernel is called 'mine' already: --replace puts the new one in its place" in refused.stderr
    assert Stock(cache).all()[0].path.read_bytes().endswith(b"first")
    assert add(mine, "mine", replaces=True) == ExitCode.HOLDS
    assert Stock(cache).all()[0].path.read_bytes().endswith(b"second")


@pytest.mark.parametrize("answer", [True, False])
def test_at_a_terminal_the_user_is_asked(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    asked: list[str] = []

    def confirm(text: str, err: bool) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(click, "confirm", confirm)
    mine = uml(tmp_path / "linux", body=b"first")
    add(mine, "mine")
    uml(mine, body=b"second")
    if answer:
        add(mine, "mine")
    else:
        with pytest.raises(UsageError, match="called 'mine' already"):
            add(mine, "mine")
    assert [text.startswith("mine is 6.98.0 (") for text in asked] == [True]
    assert Stock(cache).all()[0].path.read_bytes().endswith(b"second" if answer else b"first")


def test_a_kernel_is_removed(tmp_path: Path, cache: Path) -> None:
    add(uml(tmp_path / "linux"), "mine")
    assert postcrash(tmp_path, "kernels", "remove", "mine").stdout == "mine is removed\n"
    refused = postcrash(tmp_path, "kernels", "remove", "mine")
    assert refused.returncode == ExitCode.USAGE
    assert refused.stderr.endswith("no kernel is called 'mine' (postcrash kernels list: none)\n")


def test_the_list_tells_builds_of_one_version_apart(tmp_path: Path) -> None:
    for name in ("base", "patched"):
        add(uml(tmp_path / "linux", "6.98.0-g1a2b3c4d5e6f", name.encode()), name)
    told = json.loads(postcrash(tmp_path, "kernels", "list", "--json", "-").stdout)["kernels"]
    assert [(each["name"], each["commit"]) for each in told] == [(name, "1a2b3c4d5e6f") for name in ("base", "patched")]
    assert len({each["content"] for each in told}) == len({each["build"] for each in told}) == 2
    listed = postcrash(tmp_path, "kernels", "list").stdout
    assert all(each["build"] in listed for each in told)


class Archive:
    """A suite that has one kernel, and counts how often it is downloaded."""

    downloads = 0

    def __init__(self, linux: Path) -> None:
        self._linux = linux

    def origin(self, _package: str) -> str:
        return ORIGIN

    @contextmanager
    def unpacked(self, _package: str) -> Iterator[KernelParts]:
        self.downloads += 1
        yield KernelParts(self._linux, None, None, f"{ORIGIN} (trixie)")


def test_what_was_fetched_is_not_fetched_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(uml(tmp_path / "linux", "6.12.113"))
    monkeypatch.setattr(module, "Suite", lambda *_: archive)
    fetch: Any = module.fetch.callback
    for suite, name in (("trixie", None), ("stable", None), ("trixie", "uml-6.12.113"), ("trixie", "new")):
        assert fetch("user-mode-linux", suite, name, False, None) == ExitCode.HOLDS
    told = [line for line in capsys.readouterr().out.splitlines() if ORIGIN in line]
    assert [line.partition(":")[0] for line in told] == [
        *("uml-6.12.113", "uml-6.12.113 is here already", "uml-6.12.113 is here already", "new")
    ]
    assert archive.downloads == 2


def test_what_a_suite_would_fetch_is_known_before_it_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        ("depends", "linux-image-amd64"): "linux-image-amd64\n  Depends: linux-image-6.12.9+deb13-amd64\n",
        (
            "madison",
            "linux-image-6.12.9+deb13-amd64",
        ): " linux-image-6.12.9+deb13-amd64 | 6.12.9-2 | http://a Packages\n"
        " linux-image-6.12.9+deb13-amd64 | 6.12.9-1 | http://a Packages\n",
    }
    suite = Suite.__new__(Suite)
    monkeypatch.setattr(suite, "_apt", lambda *words: said.get((words[1], words[-1]), "there"), raising=False)
    assert suite.origin("linux-image-amd64") == "linux-image-6.12.9+deb13-amd64 6.12.9-2"
