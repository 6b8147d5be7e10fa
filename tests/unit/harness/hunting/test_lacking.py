"""Workloads that the file system cannot run, or not on every disk."""

from errno import EIO, ENOSPC, EOPNOTSUPP, EPERM
from itertools import cycle
from pathlib import Path

import pytest

from postcrash.harness.errors import OperationFailedError
from postcrash.harness.hunting import hunt as hunts
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import Verdict, Workload
from postcrash.model.operation import Variant
from postcrash.store.store import Store

from .pretence import CREW, SPACE, Pretence, Run, Silent, walks


def test_what_the_file_system_does_not_have_is_counted(run: Run) -> None:
    def refuses(workload: Workload) -> list[str] | OperationFailedError:
        errnos = {"fallocate": EOPNOTSUPP, "link": EPERM, "mkdir": ENOSPC, "write": EPERM}
        failing = [operation.word for operation in workload.operations if operation.word in errnos]
        return OperationFailedError("no", failing[-1], errnos[failing[-1]]) if failing else []

    result, ran = run(refuses, symmetry=False)
    assert dict(result.lacking).keys() == {"fallocate fails with EOPNOTSUPP", "link fails with EPERM"}
    assert dict(result.refused).keys() == {"mkdir fails with ENOSPC", "write fails with EPERM"}
    assert result.verdict is Verdict.UNDECIDED
    assert result.run + sum(result.lacking.values()) + sum(result.refused.values()) == len(ran)
    again, ran = run(refuses, symmetry=False)
    assert again == result
    assert len(ran) == sum(result.refused.values()), "only what may have failed by chance is tried again"


def test_what_failed_once_is_tried_again(run: Run) -> None:
    error = OperationFailedError("no", "sync", EIO)
    result, ran = run(lambda _: error, sample=3)
    assert (result.verdict, dict(result.refused)) == (Verdict.UNDECIDED, {"sync fails with EIO": 3})
    better, tried = run(lambda _: [], sample=3)
    assert (better.verdict, better.run, tried) == (Verdict.HOLDS, 3, ran)


@pytest.mark.parametrize("errnos", [(0, EOPNOTSUPP), (EOPNOTSUPP, 0)])
def test_what_lacks_on_one_disk_only_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errnos: tuple[int, int]
) -> None:
    def refuses(workload: Workload) -> list[str] | OperationFailedError:
        errno = next(each)
        return OperationFailedError("no", "fallocate", errno) if errno else []

    each = cycle(errnos)
    monkeypatch.setattr(hunts, "examine_all", Pretence(refuses))
    for disks in (None, 1), (1, None):
        selection = Selection(SPACE, sample=1, disks=disks)
        result = run_hunt(selection, walks(tmp_path), CREW, Store(tmp_path / "store"), Silent(), fresh=True)
        assert (result.verdict, result.run, dict(result.lacking)) == (Verdict.UNDECIDED, 0, {})
        assert dict(result.refused) == {"fallocate fails with EOPNOTSUPP on one disk only": 1}


def test_what_only_this_kernel_does_not_have_leaves_a_comparison_undecided(run: Run) -> None:
    def refuses(workload: Workload) -> list[str] | OperationFailedError:
        failed = OperationFailedError("no", "fallocate", 95)
        failed.unlike = "kernel:old runs it"
        return failed if any(operation.word == "fallocate" for operation in workload.operations) else []

    for _ in "run", "known":
        result, _ = run(refuses, symmetry=False)
        assert (result.verdict, dict(result.lacking)) == (Verdict.UNDECIDED, {})
        assert result.refused.keys() == {"fallocate fails with EOPNOTSUPP, but kernel:old runs it"}


def test_another_failure_on_the_other_disk_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(workload: Workload) -> OperationFailedError:
        return OperationFailedError("no", "fallocate", next(errnos))

    errnos = cycle((95, 5))
    monkeypatch.setattr(hunts, "examine_all", Pretence(refuses))
    result = run_hunt(
        Selection(SPACE, sample=1, disks=(None, 1)),
        walks(tmp_path),
        CREW,
        Store(tmp_path / "store"),
        Silent(),
    )
    assert (result.verdict, dict(result.refused)) == (Verdict.UNDECIDED, {"fallocate fails with EIO": 1})


def test_what_works_in_another_workload_is_not_lacking(run: Run) -> None:
    """Only the first workload with a link is refused: some kernel refuses links of some files by mistake."""

    def refuses(workload: Workload) -> list[str] | OperationFailedError:
        linking = next((operation for operation in workload.operations if operation.word == "link"), None)
        if linking is None or refused.setdefault(linking.variant, workload.name) != workload.name:
            return []
        error = OperationFailedError("no", "link", EPERM)
        error.variant = linking.variant
        return error

    refused = dict[Variant, str]()
    for _ in "run", "known":
        result, _ = run(refuses, symmetry=False)
        assert (result.verdict, dict(result.lacking)) == (Verdict.UNDECIDED, {})
        assert dict(result.refused) == {"link fails with EPERM, but it works in another workload": 1}
