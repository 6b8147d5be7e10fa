"""Litmus table of P2 and its null-bytes variation."""

from collections.abc import Callable

import pytest

from postcrash.model import Verdict
from postcrash.model.judge import Opinion
from postcrash.properties import Property
from postcrash.properties.p2_safe_appends import SafeAppends, SafeAppendsOrNulls

P2, NULLS = SafeAppends(), SafeAppendsOrNulls()

NEW = ("", "creat a; append a 8192")
OLD = ("creat a; append a 100", "append a 5000")

# set-up and operations, tree after the crash, P2 holds, P2-null holds, relevant
ROWS = [
    (NEW, "", True, True, False),
    (NEW, "a", True, True, False),
    (NEW, "a=w0:8192", True, True, True),
    (NEW, "a=w0:1", True, True, True),
    (NEW, "a=w0:4096+zero:4096", False, True, True),
    (NEW, "a=zero:8192", False, True, True),
    (NEW, "a=zero:4096+w0:4096", False, False, True),
    (NEW, "a=w0:4096+zero:1+w0:4095", False, False, True),
    (NEW, "a=w0:4096+stale:4096", False, False, True),
    (NEW, "a=stale:100", False, False, True),
    (NEW, "a=other:100", False, False, True),
    (NEW, "a=e5:4096", False, False, True),
    (NEW, "a=w0:8192+zero:1", False, False, True),
    (OLD, "a=w0:100", True, True, False),
    (OLD, "a=w0:50", True, True, False),
    (OLD, "", True, True, False),
    (OLD, "a/", True, True, False),
    (OLD, "a=w0:100+w1:5000", True, True, True),
    (OLD, "a=w0:100+w1:3996", True, True, True),
    (OLD, "a=w0:100+w1:3996+zero:1004", False, True, True),
    (OLD, "a=w0:100+zero:3996+w1:1004", False, False, True),
    (OLD, "a=w0:100+w1:3996+stale:1004", False, False, True),
    # P2 does not judge bytes before the old end.
    (OLD, "a=zero:100+w1:5000", True, True, True),
    # Files that P2 does not judge
    (("", "creat a; append a 10; append a 10"), "a=stale:20", True, True, False),
    (("", "creat a; append a 10; truncate a 20"), "a=stale:20", True, True, False),
    (("", "creat a; append a 10; fallocate a none 0 20"), "a=stale:20", True, True, False),
    (("mkdir D", "creat D/a; append D/a 10; rename D E"), "E/ E/a=stale:10", True, True, False),
    (("", "creat a; mmapwrite a 0 10"), "a=stale:10", True, True, False),
    (("creat a; append a 20", "unlink a; creat a; append a 10"), "a=w0:20", True, True, False),
    (("creat a; append a 20", "creat b; rename b a; append a 10"), "a=w0:20", True, True, False),
    (("creat a; append a 10", "write a 5 10"), "a=stale:15", True, True, False),
    # The name of the file does not matter, nor whether it is to stay.
    (("", "creat a; append a 10; rename a b"), "a=stale:10", False, False, True),
    (("", "creat a; append a 10; rename a b"), "b=w0:5+zero:5", False, True, True),
    (("", "creat a; append a 10; rename a b"), "b=w0:5", True, True, True),
    (("", "creat a; append a 10; link a b"), "a=stale:10 b=stale:10", False, False, True),
    (("", "creat a; append a 10; link a b"), "a=w0:10 b=w0:10", True, True, True),
    (("", "creat a; append a 10; unlink a"), "a=stale:10", False, False, True),
    (("creat c; append c 20", "creat a; append a 10; rename a c"), "a c=stale:10", True, True, False),
    # All operations that append by write()
    (("creat a; append a 10", "write a 10 10"), "a=w0:10+stale:10", False, False, True),
    (("creat a", "write-osync a 0 10"), "a=stale:10", False, False, True),
    (("creat a", "dwrite a 0 512"), "a=stale:512", False, False, True),
    (("creat a", "append a 10; fsync a; writeback a; setxattr a user.x y"), "a=stale:10", False, False, True),
    # Several files
    (("creat a; creat b", "append a 10; append b 10"), "a=w0:10 b=w1:5+zero:5", False, True, True),
]


@pytest.mark.parametrize(("workload", "tree", "strict", "nulls", "relevant"), ROWS)
def test_litmus(
    judge: Callable[[Property, str, str, str], Opinion],
    workload: tuple[str, str],
    tree: str,
    strict: bool,
    nulls: bool,
    relevant: bool,
) -> None:
    judgement = judge(P2, *workload, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (strict, relevant), judgement.message
    judgement = judge(NULLS, *workload, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (nulls, relevant), judgement.message


def test_the_message_says_what_is_there(judge: Callable[[Property, str, str, str], Opinion]) -> None:
    assert judge(P2, *OLD, "a=w0:100+w1:3996+stale:1004").message == (
        "append a 5000 (operation 3) at 100: a is 5100 bytes long; "
        "of its bytes, 100 to 4096 are those of append a 5000, 4096 to 5100 are stale, from free space"
    )
