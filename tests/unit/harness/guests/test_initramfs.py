"""cpio understands the initramfs."""

import subprocess
from pathlib import Path

from postcrash.harness.guests.initramfs import initramfs


def test_cpio_unpacks_what_was_packed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    contents = {"init": b"x", "lib/deep/er/lib.so": bytes(range(256)) * 33, "empty": b""}
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    (root / "init").chmod(0o755)
    (root / "dev").mkdir()
    listed = subprocess.run(["cpio", "-tv", "--quiet"], input=initramfs(root), capture_output=True, check=True)
    modes = {line.split()[-1]: line.split()[0] for line in listed.stdout.decode().splitlines()}
    assert modes["dev/console"] == "crw-------"
    assert modes["init"] == "-rwxr-xr-x"
    assert set(modes) == {*contents, "dev", "dev/console", "lib", "lib/deep", "lib/deep/er"}
    for name, content in contents.items():
        command = ["cpio", "-i", "--quiet", "--to-stdout", name]
        assert subprocess.run(command, input=initramfs(root), capture_output=True, check=True).stdout == content
