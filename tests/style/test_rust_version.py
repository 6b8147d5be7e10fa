"""The crates build with the oldest Rust that the workspace says it needs, which is what Debian 12 has."""

import json
import subprocess
import tomllib

from .conftest import ROOT

TOO_NEW = {"ruzstd 0.8.2"}
"""Crates that need a newer Rust and do not say so."""
METADATA = "source tools/lib.sh; require_cargo; cargo metadata --locked --offline --format-version 1"


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def test_every_locked_crate_supports_it() -> None:
    needed = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    done = subprocess.run(["bash", "-c", METADATA], cwd=ROOT, capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    assert TOO_NEW.isdisjoint(f"{each['name']} {each['version']}" for each in packages)
    newer = {
        f"{each['name']} {each['version']}": each["rust_version"]
        for each in packages
        if each["rust_version"] and version(each["rust_version"])[:2] > version(needed)
    }
    assert len(packages) > 50
    assert newer == {}
