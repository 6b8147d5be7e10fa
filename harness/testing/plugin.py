"""The pytest plugin. Without `--postcrash` it imports almost nothing, since pytest loads it in every run."""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postcrash.harness.testing.options import SWITCH, Options, add_options

if TYPE_CHECKING:
    from postcrash.harness.testing.crash_fs import CrashFs
    from postcrash.harness.testing.items import OpsFile
    from postcrash.harness.testing.rig import Case, Rig

MARKER = "postcrash"
FIXTURE = "crash_fs"
_MARKER_HELP = (
    f"{MARKER}(target=..., property=...): for tests with {FIXTURE}: names of targets, and of properties that judge in "
    "place of what is expected, each with commas between them"
)
_rig_key: "pytest.StashKey[Rig]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """See `options`."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """With `--postcrash`, checks all names early, so that a wrong one gives an error of one line."""
    config.addinivalue_line("markers", _MARKER_HELP)
    if config.getoption("postcrash"):
        from postcrash.harness.testing.rig import Rig

        config.stash[_rig_key] = Rig(Options.of(config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the guest."""
    if _rig_key in config.stash:
        config.stash[_rig_key].close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "OpsFile | None":
    """A workload file has a test for each target."""
    rig = parent.config.stash.get(_rig_key, None)
    if rig is None or file_path.suffix != ".ops":
        return None
    from postcrash.harness.testing.items import OpsFile

    return OpsFile.of(parent, file_path, rig)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the fixture is run on each target."""
    rig = metafunc.config.stash.get(_rig_key, None)
    if rig is None or FIXTURE not in metafunc.fixturenames:
        return
    try:
        cases = _cases(rig, metafunc.definition.get_closest_marker(MARKER))
    except pytest.UsageError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from None
    metafunc.parametrize(FIXTURE, cases, ids=str, indirect=True)


def _cases(rig: "Rig", marker: pytest.Mark | None) -> "list[Case]":
    options = {} if marker is None else marker.kwargs
    if marker is not None and (marker.args or not options.keys() <= {"target", "property"}):
        raise pytest.UsageError(f"a marker is written {_MARKER_HELP.partition(':')[0]}")
    return rig.cases(str(options.get("target", "")), str(options.get("property", "")))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests with the fixture, so that `-m postcrash` selects all tests of this plugin."""
    if FIXTURE in getattr(item, "fixturenames", ()):
        item.add_marker(MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A test that judged nothing does not pass."""
    result = yield
    fixture = pyfuncitem.funcargs.get(FIXTURE)
    if _rig_key in pyfuncitem.config.stash and fixture is not None and not getattr(fixture, "is_checked", True):
        pytest.fail(f"nothing was judged: the test did not call {FIXTURE}.check()", pytrace=False)
    return result


@pytest.fixture
def crash_fs(request: pytest.FixtureRequest) -> "CrashFs":
    """A real file system in a guest: run something on it, crash it everywhere, and judge what is left."""
    rig = request.config.stash.get(_rig_key, None)
    if rig is None:
        pytest.skip(f"crash states take a guest: run  pytest {SWITCH}")
    from postcrash.harness.testing.crash_fs import CrashFs

    return CrashFs(rig, request.param, request.node)
