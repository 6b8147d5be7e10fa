"""Applications are named with their parameters, as tables show them."""

from dataclasses import replace

import pytest

from postcrash.apps import Application
from postcrash.harness.auditing.choice import name_and_parameters, names_in, no_longer_syncing
from postcrash.harness.errors import UsageError


def test_commas_within_brackets_belong_to_a_name() -> None:
    assert names_in("a[x=1,y=2],b,c[z=3]") == ["a[x=1,y=2]", "b", "c[z=3]"]
    assert names_in("a") == ["a"]


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
