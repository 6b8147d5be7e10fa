from postcrash.corpus import FSTESTS, RECOVERY, for_recovery, of_fstests
from postcrash.model import simulate


def test_every_workload_of_the_folders_is_shipped_under_a_name_of_its_own() -> None:
    files = {file.stem for folder in (FSTESTS, RECOVERY) for file in folder.glob("*.ops")}
    shipped = [*for_recovery(), *of_fstests()]
    assert {workload.name for workload in shipped} == files
    assert len(shipped) == len(files) > 150


def test_every_workload_can_succeed() -> None:
    for workload in (*for_recovery(), *of_fstests()):
        simulate(workload)
