"""Repairs: their tables, their bits, and the page made of what they come to."""

from pathlib import Path

import pytest

from ...finding_page import finding_pages
from ...mutants.change import MutantError
from ...mutants.mended import MendedHunt, MendedPage, repairs_markdown
from ...mutants.repair import Repair, bits, load_repairs, repair_changes

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


def loaded(folder: Path, text: str) -> tuple[Repair, ...]:
    (folder / "x.toml").write_text(text)
    return load_repairs(folder)


def test_each_repair_mends_pages_that_are_there_and_no_page_is_mended_twice() -> None:
    repairs, pages = load_repairs(), {page.name for page in finding_pages()}
    mended = [name for repair in repairs for name in repair.pages]
    assert len(mended) >= 20
    assert set(mended) <= pages
    assert len(mended) == len(set(mended))
    assert len({change.digest() for repair in repairs for change in repair.changes}) >= len(repairs)
    assert {name for repair in repairs for name in repair.beside} <= {repair.name for repair in repairs}
    assert all(repair.mends.endswith(".") and "|" not in repair.mends for repair in repairs)


def test_rows_of_one_name_are_made_together_by_one_bit(tmp_path: Path) -> None:
    repairs = loaded(tmp_path, ROW + SECOND + ROW.replace("[[a]]", "[[b]]"))
    assert [(repair.name, len(repair.changes), repair.pages) for repair in repairs] == [
        ("a", 2, ("a",)),
        ("b", 1, ("b",)),
    ]
    chosen = [chosen for _, chosen in repair_changes(repairs)]
    assert chosen == ["postcrash_mutant[5] >> 0 & 1", "postcrash_mutant[5] >> 0 & 1", "postcrash_mutant[5] >> 1 & 1"]
    assert [bits(repairs, made) for made in ((), repairs[1:], repairs)] == [0, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW.replace("[[a]]", "[a]"), "repair a: it is no array of tables"),
        (ROW.replace("mends", "breaks"), "repair a: its rows have file, function, new, old, and the first has mends"),
        (ROW + SECOND.replace("old", "before"), "repair a: its rows have"),
        ("".join(ROW.replace("[[a]]", f"[[a{number}]]") for number in range(33)), "33 repairs: a kernel has 32 bits"),
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
    (repair,) = loaded(tmp_path, ROW)
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
    mended, hunt = MendedPage(repair, page, "violated", "holds", 5, 4), MendedHunt.of("xfs", told, "k")
    text = repairs_markdown([mended], [hunt], "UML 6")
    assert f"| [{page.name}](findings/{page.name}.md) | It is right. | violated | holds | 5, 4 |" in text
    assert (
        "| xfs, 10m | as it is | 7 | 1e+03 | 12 | 2 | 1, 1 not looked at to the end, 2 not seen again without repairs |"
        in text
    )
    assert "| xfs, 10m | repaired | 7 | 1e+03 | 12 | 1 | |" in text
    assert "xfs, durability: a is gone\n\n```ops\ncreat b\n```\n" in text
    assert "xfs, mounts: behind" in text
    assert "xfs, mounts: known" not in text
    earlier = repairs_markdown([mended], [MendedHunt.of("xfs", told, "other")], "UML 6")
    assert "| xfs, 10m \\* | as it is |" in earlier
