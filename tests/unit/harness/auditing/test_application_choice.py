"""Applications are named with their parameters, as tables show them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.apps import Application, application_lists, application_named, applications
from postcrash.harness.auditing.application_choice import name_and_parameters, names_in, no_longer_syncing
from postcrash.harness.errors import UsageError

PAGE = Path(__file__).resolve().parents[4] / "docs/results/needs-and-gives.md"


def test_commas_within_brackets_belong_to_a_name() -> None:
    assert names_in("a[x=1,y=2],b,c[z=3]") == ["a[x=1,y=2]", "b", "c[z=3]"]
    assert names_in("a") == ["a"]


def test_a_list_stands_for_its_names(tmp_path: Path) -> None:
    (tmp_path / "mine.list").write_text("# two\na[x=1,y=2]\n\n  b # the second\n")
    assert names_in(f"c,{tmp_path}/mine.list") == ["c", "a[x=1,y=2]", "b"]


def test_the_lists_of_the_catalogue_name_applications_of_it() -> None:
    for name in application_lists():
        for each in names_in(name):
            plain, parameters = name_and_parameters(each)
            known = application_named(plain).parameters
            assert all(value in known[parameter] for parameter, value in parameters.items())


def test_the_published_list_has_the_rows_of_its_page() -> None:
    """In their order. A row names all parameters."""
    table = PAGE.read_text(encoding="utf-8").partition("| --- |")[2].partition("\n\n")[0].splitlines()[1:]
    rows = [name_and_parameters(row.split(" | ")[0].removeprefix("| ").replace("\\", "")) for row in table]
    listed = [name_and_parameters(each) for each in names_in("published")]
    defaults = {each.name: {name: known[0] for name, known in each.parameters.items()} for each in applications()}
    assert [(name, defaults[name] | chosen) for name, chosen in listed] == rows


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"# nothing\n\n", "no name of an application is in it"),
        (b"\xff\n", "not UTF-8"),
        (b"a\n" * 40_000, "more than 65536 bytes"),
    ],
)
def test_what_is_no_list(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "mine.list"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=f"^{re.escape(f'{file}: {said}')}"):
        names_in(str(file))


def test_parameters_follow_a_name() -> None:
    assert name_and_parameters("a[x=1,y=2]") == ("a", {"x": "1", "y": "2"})
    assert name_and_parameters("a[]") == name_and_parameters("a") == ("a", {})


@pytest.mark.parametrize("text", ["a[x]", "a[x=1", "[x=1]", "a[x=1]b", ""])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(UsageError):
        name_and_parameters(text)


def test_without_fsync_nothing_of_it_syncs_but_its_check() -> None:
    """Neither what it does nor how it recovers: a second crash would find the recovery flushed."""
    application = Application(name="a", run="r; sync", check="c; sync", recover="v; sync")
    changed = no_longer_syncing(application)
    assert changed.name == "a without fsync"
    assert (changed.run, changed.recover) == ("eatmydata sh -c 'r; sync'", "eatmydata sh -c 'v; sync'")
    assert changed.check == application.check
    assert no_longer_syncing(replace(application, recover="")).recover == ""
