"""Litmus table of P3."""

from collections.abc import Callable

import pytest

from postcrash.model import Verdict
from postcrash.model.judge import Opinion
from postcrash.properties import Property
from postcrash.properties.p3_ordered_data_appends import OrderedDataAppends

P3 = OrderedDataAppends()

NEW = ("", "creat a; creat b; append a 8192; append b 8192")
OLD = ("creat a; append a 100; creat b; append b 100", "append a 100; append b 100")
MAPPED = ("creat a; append a 4096; creat b", "mmapwrite a 4096 4096; append b 10")

# set-up and operations, tree after the crash, holds, relevant
ROWS = [
    (NEW, "", True, False),
    (NEW, "a=w0:8192", True, False),
    (NEW, "a=w0:8192 b", True, False),
    (NEW, "a=w0:8192 b=w1:8192", True, True),
    (NEW, "a=w0:8192 b=w1:1", True, True),
    (NEW, "b=w1:1", False, True),
    (NEW, "a b=w1:8192", False, True),
    (NEW, "a=w0:4096 b=w1:8192", False, True),
    (NEW, "a=w0:4096+zero:4096 b=w1:4096", False, True),
    (NEW, "a=zero:4096+w0:4096 b=w1:4096", False, True),
    (NEW, "a=e5:8192 b=w1:4096", False, True),
    (NEW, "a/ b=w1:4096", False, True),
    # These do not count as found: nulls, stale bytes, a later part without the first byte
    (NEW, "a b=zero:8192", True, False),
    (NEW, "a b=stale:8192", True, False),
    (NEW, "a b=zero:4096+w1:4096", True, False),
    (NEW, "a b=w1:4096+stale:4096", False, True),
    (OLD, "a=w0:100 b=w1:100", True, False),
    (OLD, "a=w0:100+w2:100 b=w1:100+w3:100", True, True),
    (OLD, "a=w0:100 b=w1:100+w3:100", False, True),
    (OLD, "a=w0:100+w2:100 b=w1:100", True, False),
    # P3 does not judge bytes before the appended ones.
    (OLD, "a=zero:100+w2:100 b=zero:100+w3:100", True, True),
    (MAPPED, "a=w0:4096+zero:4096 b=w2:10", False, True),
    (MAPPED, "a=w0:4096+w1:4096 b=w2:10", True, True),
    # Cases that P3 does not judge
    (("creat a; creat b", "append a 10; append b 10; append a 10"), "a b=w1:10", True, False),
    (("creat a; append a 10; creat b", "write a 0 10; append b 10"), "a b=w1:10", True, False),
    (("creat a", "append a 10; append a 10"), "a=zero:10+w1:10", True, False),
    (("creat a; creat b", "append a 10; append b 10; rename a c"), "c=w0:10 b=w1:10", True, False),
    (("creat a; creat b", "append a 10; append b 10; unlink a"), "b=w1:10", True, False),
    # A second name changes nothing.
    (("creat a; creat b", "append a 10; append b 10; link a c"), "a b=w1:10", False, True),
    # Each pair counts.
    (("creat a; creat b; creat c", "append a 1; append b 1; append c 1"), "a=w0:1 b c=w2:1", False, True),
]


@pytest.mark.parametrize(("workload", "tree", "holds", "relevant"), ROWS)
def test_litmus(
    judge: Callable[[Property, str, str, str], Opinion],
    workload: tuple[str, str],
    tree: str,
    holds: bool,
    relevant: bool,
) -> None:
    judgement = judge(P3, *workload, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (holds, relevant), judgement.message


def test_the_message_names_both_appends(judge: Callable[[Property, str, str, str], Opinion]) -> None:
    assert judge(P3, *NEW, "a b=w1:8192").message == (
        "append b 8192 (operation 4) is found, append a 8192 (operation 3) before it is not: a is 0 bytes long"
    )
