"""A package of PyPI with a configure script and C sources: unpacked, configured, built and removed."""

import re
import shutil
from itertools import pairwise
from pathlib import Path

from postcrash.apps.application import Application, Package
from postcrash.apps.building import Building
from postcrash.harness.files.places import cache_folder
from side_by_side.site import Site
from side_by_side.workload import Figures

SECONDS = "build, s"
CPU_SECONDS = "build, CPU s"
STAGES = ("unpack", "configure", "make", "remove")
_PACKAGE = "PyNaCl==1.5.0"
_SHA256 = "8ac7448f09ab85811607bdd21ec2464495ac8b7c66d146bf545b0f08fb9220ba"
_SCRIPT = """
set -e
say() { echo "stage $(date +%s.%N)"; }
say; tar -xf source.tar
say; mkdir object; cd object; ../source/configure --disable-shared --enable-minimal CFLAGS=-O0
say; make -C src
say; cd ..; rm -r source object
say
"""


class SourceBuild:
    """libsodium, which PyNaCl comes with."""

    name = "build"

    def __init__(self) -> None:
        pack = "cp -r src/libsodium source && tar -cf {built}/source.tar source"
        package = Application(
            "libsodium-source", run="true", check="true", build=pack, source=Package(_SHA256, pypi=_PACKAGE)
        )
        building = Building(package, cache_folder())
        building.make(print)
        self._archive = building.place / "source.tar"

    def set_up(self, folder: Path) -> None:
        """The archive."""
        shutil.copy(self._archive, folder)

    def measure(self, site: Site) -> Figures:
        """Seconds until the end is seen, those of its processes, and of each stage."""
        run = site.run("sh", "-c", _SCRIPT)
        times = [float(time) for time in re.findall(r"^stage ([\d.]+)$", run.output, re.MULTILINE)]
        stages = zip(STAGES, pairwise(times), strict=True)
        return {SECONDS: run.seconds, CPU_SECONDS: run.cpu_s} | {
            f"{stage}, s": after - before for stage, (before, after) in stages
        }
