"""Workload files as tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.files.workload_files import loaded
from postcrash.harness.testing.judging import judge_operations
from postcrash.harness.testing.rig import Case, Rig, failures
from postcrash.model import Workload


class OpsFile(pytest.File):
    """A file in the .ops language. It has a test for each case."""

    rig: Rig

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, rig: Rig) -> "OpsFile":
        """The collector of the file `path`."""
        file: OpsFile = cls.from_parent(parent, path=path)
        file.rig = rig
        return file

    def collect(self) -> Iterator["OpsItem"]:
        """The tests. A mistake in the file is an error with its place."""
        try:
            workload = loaded(str(self.path))
        except UsageError as error:
            raise self.CollectError(str(error)) from None
        for case in self.rig.file_cases:
            item: OpsItem = OpsItem.from_parent(self, name=str(case))
            item.rig, item.case, item.workload = self.rig, case, workload
            item.add_marker("postcrash")
            yield item


class OpsItem(pytest.Item):
    """One workload on one target: every crash state is judged."""

    rig: Rig
    case: Case
    workload: Workload

    def runtest(self) -> None:
        """Passes if the verdict is HOLDS. A property that the workload does not put to the test is skipped."""
        with failures(self.rig):
            judge_operations(self.rig, self.case, self.workload, self, skip_untested=True)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test is: its file."""
        return self.path, 0, f"{self.path.name}[{self.name}]"
