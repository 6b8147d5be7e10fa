"""The same command runs inside and outside of xsync."""

from pathlib import Path

import pytest

from side_by_side import site
from side_by_side.settings import BARRIERS, EAGER, SETTINGS, SYNCHRONOUS
from side_by_side.site import ADDRESS, Site, WorkloadError

FOLDER = Path("/")


@pytest.fixture(autouse=True)
def _xsync_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "find_binary", lambda name: Path("bin", name))


def test_outside_it_is_the_command_alone() -> None:
    assert Site(FOLDER, SYNCHRONOUS).command("make", "all") == ["make", "all"]
    as_user = Site(FOLDER, SYNCHRONOUS).command("make", user="postgres")
    assert as_user[0] == "setpriv" and as_user[-1] == "make" and "--reuid=postgres" in as_user


def test_inside_it_follows_the_options_of_xsync() -> None:
    command = Site(FOLDER, EAGER).command("make", user="postgres", network=True)
    options = ["--eager", "--user", "postgres", "--network", "tun", "--address", ADDRESS]
    assert command == ["bin/xsync", "run", "--fs", "/", *options, "--", "make"]


def test_all_settings_are_mounted_with_data_journal_and_with_barriers_but_one() -> None:
    options = {setting: setting.mount_options.split(",") for setting in SETTINGS}
    assert all("data=journal" in of_one for of_one in options.values())
    assert [setting for setting in SETTINGS if "barrier=0" in options[setting]] == [SYNCHRONOUS]
    assert [setting for setting in SETTINGS if "sync" in options[setting]] == [SYNCHRONOUS, BARRIERS]


def test_a_command_that_fails_says_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"status 3\nno luck"):
        Site(tmp_path, SYNCHRONOUS).run("sh", "-c", "echo no luck; exit 3")


def test_a_command_runs_in_the_folder(tmp_path: Path) -> None:
    run = Site(tmp_path, SYNCHRONOUS).run("pwd")
    assert Path(run.output.strip()) == tmp_path.resolve()


def test_waiting_takes_time_and_computing_takes_the_processors(tmp_path: Path) -> None:
    waited = Site(tmp_path, SYNCHRONOUS).run("sleep", "0.3")
    assert waited.seconds >= 0.3 > waited.cpu_s
    computed = Site(tmp_path, SYNCHRONOUS).run(
        "timeout", "--preserve-status", "0.5", "sh", "-c", "trap 'exit 0' TERM; while :; do :; done"
    )
    assert computed.cpu_s > waited.cpu_s
