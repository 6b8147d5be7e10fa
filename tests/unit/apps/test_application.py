"""Applications as files: what is taken, and one clear error for what is not."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from postcrash.apps import (
    Application,
    ApplicationFileError,
    UnknownApplicationError,
    application_named,
    applications,
    load_application,
)

TEXT = (
    'run = "sh {here}/run.sh {mode}"\ncheck = "check {mode} {level}"\n[parameters]\nmode = ["a", "b"]\nlevel = ["1"]\n'
)


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_parameters_are_put_into_commands(tmp_path: Path) -> None:
    application = load_application(written(tmp_path, TEXT)).with_parameters({"mode": "b"})
    assert application.name == "mine[mode=b,level=1]"
    assert application.run == f"sh {tmp_path}/run.sh b"
    assert application.check == "check b 1"


def test_a_folder_whose_name_has_blanks_stays_one_word(tmp_path: Path) -> None:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    application = replace(load_application(written(folder, TEXT)), built=folder / "built", build="make {here} {built}")
    assert shlex.split(application.with_parameters({}).run) == ["sh", f"{folder}/run.sh", "a"]
    assert shlex.split(application.build_command(folder / "new")) == ["make", str(folder), f"{folder}/new"]


def test_there_is_a_variant_for_each_combination(tmp_path: Path) -> None:
    names = [each.name for each in load_application(written(tmp_path, TEXT)).variants()]
    assert names == ["mine[mode=a,level=1]", "mine[mode=b,level=1]"]
    (chosen,) = load_application(written(tmp_path, TEXT)).variants({"mode": "b"})
    assert chosen.name == names[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run = 1", "run"),
        ('run = "a"', "check"),
        ('run = "a"\ncheck = "b"\ncolour = "red"', "colour"),
        ('run = "a"\ncheck = "b"\nseconds = 0', "seconds"),
        ('run = "a"\ncheck = "b"\ninodes = -1', "inodes"),
        ('run = "a"\ncheck = "b"\ncheck_memory_mib = 1', "check_memory_mib"),
        ('run = "a"\ncheck = "b"\ncheck_disk_mib = 0', "check_disk_mib"),
        ('like = "sub/folder"', "like: there is no file for 'sub/folder' beside it"),
        ("like = [1]", "like: there is no file for"),
        (f'like = "{"a" * 300}"', "like: there is no file for 'aaa"),
        ("run = ", "not TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ApplicationFileError, match=said):
        load_application(written(tmp_path, text))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ApplicationFileError, match="No such file"):
        load_application(tmp_path / "none.toml")


@pytest.mark.parametrize(("chosen", "said"), [({"mode": "c"}, "'c'"), ({"colour": "red"}, "colour")])
def test_an_unknown_parameter_is_said(tmp_path: Path, chosen: dict[str, str], said: str) -> None:
    with pytest.raises(ApplicationFileError, match=said):
        load_application(written(tmp_path, TEXT)).with_parameters(chosen)


@pytest.mark.parametrize("command", ["a {nothing}", "two\nlines", "x" * 5000])
def test_a_command_that_cannot_be_recorded_is_refused(tmp_path: Path, command: str) -> None:
    application = Application(name="mine", run=command, check="true", folder=tmp_path)
    with pytest.raises(ApplicationFileError, match="mine"):
        application.with_parameters({})


@pytest.mark.parametrize("application", applications(), ids=lambda application: application.name)
def test_the_catalogue_s_commands_are_complete(application: Application) -> None:
    assert application.summary
    for variant in replace(application, built=Path("/built") if application.build else None).variants():
        assert "{" not in variant.run + variant.check + variant.set_up
    for program in application.programs:
        assert Path(program).exists(), f"{program} of {application.packages}"


def test_an_unknown_application_is_said() -> None:
    with pytest.raises(UnknownApplicationError, match=r"did you mean 'sqlite-3\.40'"):
        application_named("sqlite-3.4")
