"""An application of the catalogue is known again by its commands, wherever its files were."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from postcrash.apps import Application, application_named, applications
from postcrash.harness.auditing.application_lookup import catalogued, require_built, require_installed
from postcrash.harness.auditing.judge import about
from postcrash.harness.errors import UsageError

SET = {"synchronous": "off"}


def elsewhere(application: Application, folder: Path = Path("/elsewhere")) -> Application:
    """The application as a finding of another machine tells it."""
    built = folder / "built" if application.build else None
    told: Any = about(replace(application, folder=folder / "catalogue", built=built).with_parameters({}))
    return Application(**told)


@pytest.mark.parametrize("folder", ["/elsewhere", "/elsewhere with blanks"])
def test_each_application_is_known_with_the_folders_of_this_machine(folder: str) -> None:
    for application in applications():
        told = elsewhere(application, Path(folder))
        found = catalogued(told)
        assert found is not None, application.name
        assert found.name == told.name
        assert found.folder == application.folder
        assert "elsewhere" not in f"{found.run} {found.check} {found.built}"


def test_a_variant_is_that_variant() -> None:
    told = application_named("sqlite-3.40").with_parameters(SET)
    known: Any = about(told)
    found = catalogued(Application(**known))
    assert found is not None
    assert (found.name, found.check) == (told.name, told.check)


@pytest.mark.parametrize(
    "change",
    [
        {"check": "true"},
        {"run": "sh -c evil"},
        {"name": "sqlite-3.40"},
        {"name": "nothing"},
        {"check_seconds": 3000},
        {"check_memory_mib": 4096},
        {"check_disk_mib": 4096},
        {"check_sockets": True},
        {"folder": Path("/")},
        {"folder": Path("sh")},
    ],
)
def test_what_is_like_one_is_none(change: dict[str, Any]) -> None:
    told = application_named("sqlite-3.40").with_parameters(SET)
    assert catalogued(replace(told, **change)) is None


def test_what_is_not_here_is_said() -> None:
    nowhere = Application("a[x=1]", "r", "c", packages=("pack",), programs=("/nowhere/p",), built=Path("/nowhere/b"))
    with pytest.raises(UsageError, match=r"^a\[x=1\] needs /nowhere/p: run  apt-get install pack$"):
        require_installed(nowhere)
    with pytest.raises(UsageError, match=r"^a is not built here: run  postcrash audit a "):
        require_built(nowhere)
