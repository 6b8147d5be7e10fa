"""Applications that are built from source: what is built is what their file names, and it is built once."""

import hashlib
import shutil
import subprocess
import tarfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from postcrash.apps import Application, ApplicationFileError, BuildError, Building, Package, load_application
from postcrash.apps.building import fetched


@dataclass
class Registry:
    """Has one package, and counts how often it is fetched."""

    package: Path
    times: int = 0

    def fetch(self, source: Package, folder: Path) -> Path:
        """See `Fetch`."""
        self.times += 1
        return Path(shutil.copy(self.package, folder))


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """A package of one file, in a folder as npm has it."""
    (tmp_path / "text").write_text("of the package\n")
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as archive:
        archive.add(tmp_path / "text", "package/text")
    return Registry(tmp_path / "package.tgz")


@pytest.fixture
def application(tmp_path: Path, registry: Registry) -> Application:
    """An application that is a copy of the package's file, behind what `build.sh` says."""
    (tmp_path / "build.sh").write_text('echo "our own"; cat text')
    digest = hashlib.sha256(registry.package.read_bytes()).hexdigest()
    build = "sh {here}/build.sh >{built}/made"
    source = Package(npm="p@1", sha256=digest)
    return Application("mine", "cat {built}/made", "true", folder=tmp_path, source=source, build=build)


def built(application: Application, registry: Registry, cache: Path) -> str:
    """What is in the file that the build makes."""
    building = Building(application, cache)
    building.make(lambda line: None, registry.fetch)
    return (building.place / "made").read_text()


def test_what_is_built_is_in_the_cache_once(application: Application, registry: Registry, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    said: list[str] = []
    building = Building(application, cache)
    for _ in range(2):
        building.make(said.append, registry.fetch)
    assert (building.place / "made").read_text() == "our own\nof the package\n"
    assert registry.times == 1
    assert said == ["mine: fetching p@1 and building it, the first time a minute or two"]
    assert [path.name for path in (cache / "built").iterdir()] == [building.place.name]
    known = replace(application, built=building.place).with_parameters({})
    assert known.run == f"cat {building.place}/made"
    assert known.visible == (tmp_path, building.place)


def test_a_file_that_the_build_names_decides_what_is_built(
    application: Application, registry: Registry, tmp_path: Path
) -> None:
    first = Building(application, tmp_path).place
    (tmp_path / "build.sh").write_text("echo another one")
    assert Building(application, tmp_path).place != first
    assert built(application, registry, tmp_path) == "another one\n"
    other = replace(application, source=Package(npm="p@2", sha256="0" * 64))
    assert Building(other, tmp_path).place != Building(application, tmp_path).place


def test_another_package_is_not_built(application: Application, registry: Registry, tmp_path: Path) -> None:
    registry.package.write_bytes(b"something else")
    with pytest.raises(BuildError, match=r"mine: p@1 is not the package that its file names: expected SHA-256 \w+, "):
        built(application, registry, tmp_path)
    assert list((tmp_path / "built").iterdir()) == []


def test_a_build_that_fails_shows_its_end_and_where_its_log_is(
    application: Application, registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "build.sh").write_text("seq 100 >&2; exit 3")
    with pytest.raises(BuildError, match=r"fails with status 3 \(log: (.*)\):\n91\n(.*\n)*100") as told:
        built(application, registry, tmp_path)
    (log,) = (tmp_path / "built").iterdir()
    assert str(log) in str(told.value)
    assert len(log.read_text().splitlines()) == 100


def test_a_build_without_a_package_runs_in_an_empty_folder(tmp_path: Path) -> None:
    """It is made of files that are beside the application's own, and a change of one of them makes it anew."""
    (tmp_path / "driver.c").write_text("one")
    application = Application("mine", "a", "b", folder=tmp_path, build="ls >{built}/there; cp {here}/driver.c {built}")
    said: list[str] = []
    for content in ("one", "two"):
        (tmp_path / "driver.c").write_text(content)
        building = Building(application, tmp_path / "cache")
        building.make(said.append)
        assert (building.place / "driver.c").read_text() == content
        assert (building.place / "there").read_text() == ""
    assert said == ["mine: building its driver, the first time a minute or two"] * 2


def test_two_at_the_same_time_do_not_collide(application: Application, registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text("sleep 0.3; cat text")
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(built(application, registry, tmp_path / "cache")))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["of the package\n"] * 3
    assert len(list((tmp_path / "cache/built").iterdir())) == 1


def test_nothing_is_left_of_a_build_that_is_interrupted(
    application: Application, registry: Registry, tmp_path: Path
) -> None:
    def interrupted(source: Package, folder: Path) -> Path:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Building(application, tmp_path).make(lambda line: None, interrupted)
    assert list((tmp_path / "built").iterdir()) == []


def test_without_npm_its_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BuildError, match=r"p@1 is a package of npm, .* apt-get install npm"):
        fetched(Package(npm="p@1", sha256="0" * 64), tmp_path)


@pytest.mark.parametrize("given", [{"npm": "p@1"}, {"pypi": "p==1"}])
def test_a_package_is_fetched_by_its_name(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of pip, which runs what it fetches, the digest is asked as well."""
    ran: list[list[str]] = []

    def run(words: list[str], cwd: Path, **how: object) -> subprocess.CompletedProcess[str]:
        ran.append(words)
        (cwd / "p.tgz").touch()
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    (tmp_path / "fetched").mkdir()
    source = Package(sha256="0" * 64, **given)
    assert fetched(source, tmp_path / "fetched") == tmp_path / "fetched/p.tgz"
    (words,) = ran
    if source.npm:
        assert words == ["/usr/bin/npm", "pack", "--loglevel=error", "--ignore-scripts", "p@1"]
    else:
        assert Path(words[-1]).read_text() == f"p==1 --hash=sha256:{'0' * 64}\n"


SHA256 = f'sha256 = "{"0" * 64}"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'build = "make"\n[source]\n{SHA256}', "in npm, or one in pypi"),
        (f'build = "make"\n[source]\n{SHA256}\nnpm = "a@1"\npypi = "a==1"', "in npm, or one in pypi"),
        (f'build = "make"\n[source]\n{SHA256}\nnpm = "--global"', "source.npm"),
        ('build = "make"\n[source]\nnpm = "a@1"\nsha256 = "0"', "source.sha256"),
        (f'[source]\n{SHA256}\nnpm = "a@1"', "with a source has a build"),
        ('like = "none"', "there is no"),
    ],
)
def test_what_is_wrong_with_a_source_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(f'run = "a"\ncheck = "b"\n{text}\n')
    with pytest.raises(ApplicationFileError, match=said):
        load_application(tmp_path / "mine.toml")


def test_a_file_takes_what_it_does_not_say_from_another_one(tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text('run = "a"\ncheck = "b"\nseconds = 7\n')
    (tmp_path / "new.toml").write_text('like = "old"\nrun = "c"\n')
    new = load_application(tmp_path / "new.toml")
    assert (new.name, new.run, new.check, new.seconds) == ("new", "c", "b", 7)
