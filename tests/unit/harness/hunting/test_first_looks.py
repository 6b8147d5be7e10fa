from postcrash.harness.hunting.first_looks import DistinctWorkloads, Novelty
from postcrash.model import parse_workload

TEXTS = ("creat foo", "creat bar", "creat foo", "creat A")


def kinds(*, symmetry: bool) -> list[Novelty]:
    distinct = DistinctWorkloads(symmetry=symmetry)
    return [distinct.kind_of(parse_workload(text, "w")) for text in TEXTS]


def test_a_workload_that_differs_in_names_only_is_alike() -> None:
    assert kinds(symmetry=True) == [Novelty.NEW, Novelty.ALIKE, Novelty.SAME, Novelty.NEW]


def test_without_symmetry_only_equal_workloads_are_left_out() -> None:
    assert kinds(symmetry=False) == [Novelty.NEW, Novelty.NEW, Novelty.SAME, Novelty.NEW]
