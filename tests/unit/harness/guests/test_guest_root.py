"""What a guest's root has of this machine."""

import shutil
from pathlib import Path

from postcrash.harness.guests.binaries import find_binary
from postcrash.harness.guests.guest_root import with_libraries


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
