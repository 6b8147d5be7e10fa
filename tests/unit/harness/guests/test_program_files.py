"""What a command needs in a guest: by a rule, and nothing else."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.guests import program_files
from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.program_files import target_files, with_libraries
from postcrash.targets import Target

PYTHON = sys.executable


def target(**fields: Any) -> Target:
    return Target(name="mine", title="Mine", fstype="fuse", mkfs=("true",), size_mib=1, **fields)


def script(place: Path, text: str) -> str:
    place.write_text(text)
    return str(place)


def test_a_program_comes_with_its_libraries_and_with_what_glibc_loads_to_end_a_thread() -> None:
    shell = shutil.which("sh")
    assert shell is not None
    files = with_libraries(shell)
    assert files[Path(shell).relative_to("/")] == Path(shell)
    names = {place.name for place in files}
    assert {"libc.so.6", "libgcc_s.so.1"} < names and any(name.startswith("ld-linux") for name in names)


def test_a_static_program_comes_alone() -> None:
    agent = str(find_binary("postcrash-agent"))
    assert [f"/{place}" for place in with_libraries(agent)] == [agent]


def test_a_shell_script_comes_with_its_shell_and_a_file_among_its_arguments(tmp_path: Path) -> None:
    named = script(tmp_path / "settings.gz", "not compressed at all")
    helper = script(tmp_path / "helper", "#!/bin/sh -e\nexec true\n")
    files = target_files(target(helper=(helper, "-c", named, "/nowhere")))
    own = {Path(each).relative_to("/"): Path(each) for each in (helper, named)}
    assert files == {**with_libraries("/bin/sh"), **own}


def test_python_comes_with_what_the_script_imports_and_how_it_starts(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import _ctypes\nfrom . import nothing\n")
    text = "import beside\ntry:\n    import no_such_module\nexcept ImportError:\n    pass\n"
    places = set(target_files(target(helper=(script(tmp_path / "mine", f"#!{PYTHON}\n{text}"), "mount"))))
    names = {place.name for place in places}
    assert Path(PYTHON).relative_to("/") in places and (tmp_path / "beside.py").relative_to("/") in places
    assert {"mine", "utf_8.py", "os.py"} <= names
    assert any(name.startswith("libffi") for name in names), "a module that is a binary has libraries"
    assert not {"unittest", "tkinter"} & {place.parent.name for place in places}
    by_name = target_files(target(fsck=(PYTHON, script(tmp_path / "plain.py", text))))
    assert {place.name for place in by_name} - names == {"plain.py"}


def test_what_env_would_look_for_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = shutil.which("sh")
    helper = script(tmp_path / "helper", "#!/usr/bin/env sh\nexec true\n")
    files = target_files(target(helper=(helper,)))
    assert files[Path(helper).relative_to("/")] == f"#!{shell}\nexec true\n".encode()
    (tmp_path / "sh").write_text("#!/bin/sh\n")
    (tmp_path / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=f"{tmp_path}/sh, which runs it, is a script too: name a binary"):
        target_files(target(helper=(helper,)))


@pytest.mark.parametrize(
    ("line", "named"),
    [("/no/such/shell -e", "/no/such/shell"), ("/usr/bin/env no-such-shell", "no-such-shell"), ("/usr/bin/env", "")],
)
def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, line: str, named: str) -> None:
    with pytest.raises(UsageError) as raised:
        target_files(target(helper=(script(tmp_path / "helper", f"#!{line}\n"),)))
    assert str(raised.value) == f"{tmp_path}/helper: the program that its first line names is not there: {named!r}"


def test_a_script_that_python_cannot_read_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"the modules of {tmp_path}/mine: SyntaxError: ") as raised:
        target_files(target(helper=(script(tmp_path / "mine", f"#!{PYTHON}\nimport\n"),)))
    assert "\n" not in str(raised.value)


def test_a_program_that_is_not_there_is_left_out() -> None:
    assert target_files(target(helper=("myfs",), fsck=("/no/such/fsck",))) == {}


def test_files_and_folders_that_the_target_names_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "below").mkdir(parents=True)
    for name in ("data/a", "data/below/b"):
        script(tmp_path / name, name)
    agent = str(find_binary("postcrash-agent"))
    files = target_files(target(files=(str(tmp_path / "data"), agent)))
    assert set(files.values()) == {tmp_path / "data/a", tmp_path / "data/below/b", Path(agent)}
    with pytest.raises(UsageError, match=f"target mine: files: there is no {tmp_path}/none"):
        target_files(target(files=(str(tmp_path / "none"),)))
    monkeypatch.setattr(program_files, "FILES_MAX", 1)
    with pytest.raises(UsageError, match="target mine brings 2 files with 0 MiB into guests: 1 files with 128 MiB are"):
        target_files(target(files=(str(tmp_path / "data"),)))
