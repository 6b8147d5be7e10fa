"""What is measured, whatever the workload."""

from pathlib import Path
from typing import Protocol

from side_by_side.site import Site

Figures = dict[str, float]
"""Figures by name. The name ends with the unit, after a comma."""


class Workload(Protocol):
    """Something that runs on any of the file systems."""

    name: str

    def set_up(self, folder: Path) -> None:
        """Put into `folder` what it needs: on the same file system, mounted asynchronously."""

    def measure(self, site: Site) -> Figures:
        """Run it. Raises WorkloadError."""
