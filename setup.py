"""Builds the Rust parts: the extension module, and for a wheel the programs as package data in postcrash/_bin.

The manual pages are those that tools/dist has put into man/, so that a source archive has them too.

A source checkout needs neither here: tools/setup builds them with cargo and sets POSTCRASH_SKIP_RUST.
"""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools_rust import Binding, RustExtension

ROOT = Path(__file__).resolve().parent
SKIP_RUST = os.environ.get("POSTCRASH_SKIP_RUST") == "1"


class BuildWithPrograms(build_py):
    """Adds the programs that tools/cargo-programs builds, unless the installation is an editable one."""

    def run(self) -> None:
        super().run()
        if self.editable_mode or SKIP_RUST:
            return
        built = subprocess.run(
            [ROOT / "tools/cargo-programs"], check=True, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8"
        ).stdout.splitlines()
        folder = Path(self.build_lib) / "postcrash/_bin"
        folder.mkdir(parents=True, exist_ok=True)
        for program in built:
            shutil.copy(program, folder)


EXTENSION = RustExtension(
    "postcrash._core", path="crashgen/python/Cargo.toml", binding=Binding.PyO3, py_limited_api="auto", debug=False
)

setup(
    cmdclass={"build_py": BuildWithPrograms},
    rust_extensions=[] if SKIP_RUST else [EXTENSION],
    data_files=[("share/man/man1", sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("man/*.1")))],
)
