"""A workspace with copies of some crates, in which faults are planted."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "target/release"
LIBRARIES = (".rlib", ".rmeta", ".so", ".d")
PROFILE = """
[profile.release.package.{name}]
opt-level = {opt_level}
debug = false
debug-assertions = true
overflow-checks = true
"""


def make_workspace(folder: Path, crates: Sequence[str], members: Sequence[str], opt_level: int) -> None:
    """Copy `crates` of the project into `folder`. They are built with `opt_level`, and with all checks at run time.

    What they depend on is taken from the project's own release build where that has it, because building it takes most
    of a minute.
    """
    names = []
    for crate in crates:
        shutil.copytree(ROOT / crate, folder / crate)
        names.append(tomllib.loads((ROOT / crate / "Cargo.toml").read_text())["package"]["name"])
    shutil.copy(ROOT / "Cargo.lock", folder)
    written = f"members = {json.dumps(members)}"
    manifest, count = re.subn(r"^members = .*$", written, (ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE)
    assert count == 1
    profiles = "".join(PROFILE.format(name=name, opt_level=opt_level) for name in names)
    (folder / "Cargo.toml").write_text(manifest + profiles)
    for part in ("deps", "build", ".fingerprint"):
        if (BUILT / part).is_dir():
            shutil.copytree(BUILT / part, folder / "target/release" / part, ignore=_unneeded)


def _unneeded(folder: str, files: list[str]) -> set[str]:
    """What of a folder of the release build belongs to our own crates, or is a program of theirs."""
    ours = {file for file in files if re.match(r"(lib)?(postcrash|crashdisk)", file)}
    is_flat = Path(folder).name == "deps"
    return ours | {file for file in files if is_flat and not file.endswith(LIBRARIES)}


def cargo(*arguments: str, quiet: bool = True) -> list[str]:
    """A command that runs cargo with `arguments`, the release profile and nothing from the network."""
    command, *rest = arguments
    script = f'source "{ROOT}/tools/lib.sh" && use_cargo && exec "$@"'
    options = ["--offline", "--release", *(["--quiet"] if quiet else [])]
    return ["bash", "-c", script, "bash", "cargo", command, *options, *rest]


def environment(folder: Path) -> dict[str, str]:
    """The environment of cargo in a workspace."""
    return {**os.environ, "CARGO_TARGET_DIR": str(folder / "target"), "CARGO_INCREMENTAL": "1"}
