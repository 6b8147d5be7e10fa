"""What is compared when a certificate is tested."""

from typing import Any

import pytest

from postcrash.harness.examination.certify import _comparable


def shown(*lines: str, whole: bool, size: int = 1) -> dict[str, Any]:
    tree = [{"path": "a", "size": size, "hash": str(lines)}]
    return {"mount_errno": 0, "tree": tree, "klog": list(lines), "klog_whole": whole}


@pytest.mark.parametrize(
    ("predicted", "observed", "same"),
    [
        (shown("<4>a", whole=True), shown("<4>a", whole=True), True),
        (shown("<4>a", whole=True), shown(whole=True), False),
        (shown("<4>a", whole=True), shown(whole=False), True),
        (shown(whole=False), shown("<4>a", whole=True), True),
        (shown(whole=False), shown(whole=True, size=2), False),
        (shown(whole=True), None, False),
        ({**shown(whole=True), "tree": None}, {**shown(whole=True), "tree": None}, True),
    ],
)
def test_logs_are_compared_where_both_are_whole(predicted: Any, observed: Any, same: bool) -> None:
    first, second = _comparable(predicted, observed)
    assert (first == second) is same
