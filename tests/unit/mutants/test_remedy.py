"""Remedies: their tables, their bits, and the page made of what they come to."""

from pathlib import Path

import pytest

from ...finding_page import finding_pages
from ...mutants.change import MutantError
from ...mutants.mended import MendedHunt, MendedPage, remedies_markdown
from ...mutants.remedy import Remedy, bits, load_remedies, remedy_changes

ROW = """
[[a]]
mends = "It is right."
file = "fs/x/x.c"
function = "flush"
old = "return 0;"
new = "return 1;"
"""
SECOND = """
[[a]]
file = "fs/x/y.c"
function = "commit"
old = "1"
new = "2"
"""


def loaded(folder: Path, text: str) -> tuple[Remedy, ...]:
    (folder / "x.toml").write_text(text)
    return load_remedies(folder)


def test_each_remedy_mends_pages_that_are_there_and_no_page_is_mended_twice() -> None:
    remedies, pages = load_remedies(), {page.name for page in finding_pages()}
    mended = [name for remedy in remedies for name in remedy.pages]
    assert len(mended) >= 20
    assert set(mended) <= pages
    assert len(mended) == len(set(mended))
    assert len({change.digest() for remedy in remedies for change in remedy.changes}) >= len(remedies)
    assert {name for remedy in remedies for name in remedy.beside} <= {remedy.name for remedy in remedies}
    assert all(remedy.mends.endswith(".") and "|" not in remedy.mends for remedy in remedies)


def test_rows_of_one_name_are_made_together_by_one_bit(tmp_path: Path) -> None:
    remedies = loaded(tmp_path, ROW + SECOND + ROW.replace("[[a]]", "[[b]]"))
    assert [(remedy.name, len(remedy.changes), remedy.pages) for remedy in remedies] == [
        ("a", 2, ("a",)),
        ("b", 1, ("b",)),
    ]
    chosen = [chosen for _, chosen in remedy_changes(remedies)]
    assert chosen == ["postcrash_mutant[5] >> 0 & 1", "postcrash_mutant[5] >> 0 & 1", "postcrash_mutant[5] >> 1 & 1"]
    assert [bits(remedies, made) for made in ((), remedies[1:], remedies)] == [0, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW.replace("[[a]]", "[a]"), "remedy a: it is no array of tables"),
        (ROW.replace("mends", "breaks"), "remedy a: its rows have file, function, new, old, and the first has mends"),
        (ROW + SECOND.replace("old", "before"), "remedy a: its rows have"),
        ("".join(ROW.replace("[[a]]", f"[[a{number}]]") for number in range(33)), "33 remedies: a kernel has 32 bits"),
    ],
)
def test_a_table_that_is_wrong_is_an_error_with_the_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(MutantError, match=message):
        loaded(tmp_path, text)


def counted(*groups: str) -> dict[str, object]:
    """What a hunt tells in JSON."""
    found = [{"checker": "mounts", "message": message, "workload": "creat a\n"} for message in groups]
    return {"workloads": {"run": 7}, "states": "1000", "recoveries": 12, "groups": found}


def test_the_page_shows_both_verdicts_and_what_is_left(tmp_path: Path) -> None:
    page = finding_pages()[0]
    (remedy,) = loaded(tmp_path, ROW)
    left = [["durability", "a is gone", "creat b\n"]]
    told = {
        "time": "10m",
        "before": counted("known", "gone"),
        "left": left,
        "open": 1,
        "unseen": 2,
        "after": counted("behind"),
        "key": "k",
    }
    mended, hunt = MendedPage(remedy, page, "violated", "holds", 5, 4), MendedHunt.of("xfs", told, "k")
    text = remedies_markdown([mended], [hunt], "UML 6")
    assert f"| [{page.name}](../findings/{page.name}.md) | It is right. | violated | holds | 5, 4 |" in text
    fates = "1, 1 not looked at to the end, 2 not seen again without remedies"
    assert f"| xfs, 10m | as it is | 7 | 1e+03 | 12 | 2 | {fates} |" in text
    assert "| xfs, 10m | mended | 7 | 1e+03 | 12 | 1 | |" in text
    assert "xfs, durability: a is gone\n\n```ops\ncreat b\n```\n" in text
    assert "xfs, mounts: behind" in text
    assert "xfs, mounts: known" not in text
    earlier = remedies_markdown([mended], [MendedHunt.of("xfs", told, "other")], "UML 6")
    assert "| xfs, 10m \\* | as it is |" in earlier
