"""A page explains a finding only where its target, its judge and its workload are all listed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.expectations.known_objections import KnownObjections, load_known, page_of

KNOWN = """
[lost-name]
page = "../docs/lost-name.md"
targets = ["f2fs"]
judges = ["fsync-names"]
workloads = ["generic-3*"]
"""


def found(target: str, judge: str, workload: str) -> Any:
    return SimpleNamespace(target=target, checker=judge, workload_name=workload)


def test_what_is_known_names_target_judge_and_workload(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    assert load_known(folder, tmp_path) == ()
    (folder / "known.toml").write_text(KNOWN)
    known = load_known(folder, tmp_path / "docs")
    assert page_of(found("f2fs", "fsync-names", "generic-322"), known) == "lost-name.md"
    others = [("xfs", "fsync-names", "generic-322"), ("f2fs", "mounts", "generic-322"), ("f2fs", "fsync-names", "a")]
    assert [page_of(found(*other), known) for other in others] == ["", "", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (KNOWN.replace("page", "pages"), "lost-name.page: Field required"),
        (KNOWN.replace('["f2fs"]', '"f2fs"'), "lost-name.targets: Input should be a valid tuple"),
        ("[", r"known\.toml: not TOML: Invalid initial character"),
    ],
)
def test_a_broken_file_of_what_is_known_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        load_known(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (("generic-34",), ["generic-34"]),
        (("generic-3*",), ["generic-34", "generic-3"]),
        (("generic-3?", "xfs-*"), ["generic-34", "xfs-1"]),
        (("GENERIC-34",), []),
        (("[gx]*-[0-9]",), ["generic-3", "xfs-1"]),
        ((), []),
    ],
)
def test_workloads_may_be_patterns_as_in_a_shell(patterns: tuple[str, ...], names: list[str]) -> None:
    known = KnownObjections("p.md", ("f2fs",), ("mounts", "P1"), patterns)
    asked = ("generic-34", "generic-3", "xfs-1", "my-generic-34")
    for judge in ("mounts", "P1"):
        assert [name for name in asked if known.tells_of(found("f2fs", judge, name))] == names


def test_the_first_page_that_tells_of_a_finding_explains_it() -> None:
    pages = [KnownObjections(page, ("xfs",), ("P1",), (page[0] + "*", "all")) for page in ("a.md", "b.md")]
    assert [page_of(found("xfs", "P1", name), pages) for name in ("all", "b1", "c")] == ["a.md", "b.md", ""]
    assert page_of(found("xfs", "P1", "all"), ()) == ""


def test_pages_are_paths_as_seen_from_the_folder_of_the_reader(tmp_path: Path) -> None:
    folder = tmp_path / "corpus" / "sub"
    folder.mkdir(parents=True)
    (folder / "known.toml").write_text(KNOWN)
    seen = {place: load_known(folder, tmp_path / place)[0].page for place in (".", "docs", "corpus/sub")}
    assert seen == {
        ".": "corpus/docs/lost-name.md",
        "docs": "../corpus/docs/lost-name.md",
        "corpus/sub": "../docs/lost-name.md",
    }


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "known.toml").mkdir()
    with pytest.raises(UsageError, match=r"known\.toml: Is a directory$"):
        load_known(tmp_path, tmp_path)
