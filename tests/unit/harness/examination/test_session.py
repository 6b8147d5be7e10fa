"""What a session makes once for many commands' parts."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.examination import session as sessions
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.targets import TARGETS, Target, target_named


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels for which a root folder was made, in order."""
    made: list[str] = []

    def guest_root(kernel: Kernel, _cache: Path, targets: Iterable[Target]) -> Path:
        made.append(kernel.version)
        return Path(f"/{kernel.version}-{len(tuple(targets))}")

    monkeypatch.setattr(sessions, "guest_root", guest_root)
    return made


def kernel(version: str) -> Kernel:
    return Kernel(Path("/kernel"), version, None, Uml())


def test_a_guest_root_is_made_once_for_each_kernel(tmp_path: Path, made: list[str]) -> None:
    session = Session(tmp_path)
    roots = [session.root_of(kernel(version)) for version in ("6.1", "7.2", "6.1")]
    assert made == ["6.1", "7.2"]
    assert roots[0] == roots[2] != roots[1]


def test_a_loaded_target_has_its_programs_in_the_root(tmp_path: Path, made: list[str]) -> None:
    session = Session(tmp_path)
    before = session.root_of(kernel("6.1"))
    session._own.append(replace(TARGETS[0], name="mine"))
    assert session.root_of(kernel("6.1")) != before
    assert made == ["6.1", "6.1"]


@pytest.mark.parametrize("helper", [("no-such-program",), ("./myfs", "mount")])
def test_a_helper_that_is_not_there_is_one_clear_error(
    tmp_path: Path, made: list[str], helper: tuple[str, ...]
) -> None:
    mine = replace(target_named("fuse2fs"), name="mine", package="", helper=helper)
    with pytest.raises(InfrastructureError, match=rf"there is no program {helper[0]} \(target mine\)"):
        Session(tmp_path).require_programs(mine, kernel("6.1"), [])
