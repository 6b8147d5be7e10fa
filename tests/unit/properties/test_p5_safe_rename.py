"""Litmus table of P5."""

from collections.abc import Callable

import pytest

from postcrash.model import Entry, History, Observation, Tree, Verdict
from postcrash.model.judge import UNTESTED, Opinion
from postcrash.properties import Property
from postcrash.properties.family import family
from postcrash.properties.p5_safe_rename import SafeRename

P5 = SafeRename()

OLD = "creat a; append a 100"
USUAL = (OLD, "creat b; append b 8192; rename b a")

SHARING = "creat b; reflink a 0 b 0 4096; append b 4096; rename b a"

# set-up and operations, tree after the crash, holds, relevant
ROWS = [
    (USUAL, "a=w0:100", True, False),
    (USUAL, "a=w0:100 b=w1:8192", True, False),
    (USUAL, "a=w0:100 b", True, False),
    (USUAL, "a=w1:8192", True, True),
    (USUAL, "a=w1:8192 b=w1:8192", True, True),
    # ext4 without auto_da_alloc: the rename is there, the data is not
    (USUAL, "a", False, True),
    (USUAL, "a=w1:4096", False, True),
    (USUAL, "a=w1:4096+zero:4096", False, True),
    (USUAL, "a=zero:4096+w1:4096", False, True),
    (USUAL, "a=stale:8192", False, True),
    (USUAL, "a=e5:8192", False, True),
    (USUAL, "a/", False, True),
    # The name has neither the old file nor the new one
    (USUAL, "b=w1:8192", False, True),
    (USUAL, "", False, True),
    # Half of A is new: the rename is visible, and B's data is not all there.
    (USUAL, "a=w0:100+w1:8092", False, True),
    (USUAL, "a=w1:50+w0:50", False, True),
    (USUAL, "a=w0:50+zero:50", True, False),
    (("creat a; append a 8192", "creat b; append b 8192; rename b a"), "a=w0:4096+w1:4096", False, True),
    # B shares bytes of the old file, which show nothing. Its own bytes do.
    (("creat a; append a 8192", SHARING), "a=w0:8192", True, False),
    (("creat a; append a 8192", SHARING), "a=w0:4096+w1:4096", True, True),
    (("creat a; append a 8192", SHARING), "a=w0:4096+zero:4096", True, False),
    (("creat a; append a 8192", SHARING), "a=w0:4096+w1:2048", False, True),
    (("creat a; append a 8192", SHARING), "a=zero:4096+w1:4096", False, True),
    # P5 does not judge bytes behind the data written to B.
    (USUAL, "a=w1:8192+zero:1", True, True),
    ((OLD, "creat b; write b 4096 10; rename b a"), "a=stale:4096+w1:10", True, True),
    # Data in several writes
    ((OLD, "creat b; append b 10; append b 10; rename b a"), "a=w1:10", False, True),
    # Bytes that were stored through a mapping: no call wrote them
    ((OLD, "creat b; append b 4096; mmapwrite b 0 10; rename b a"), "a=w1:4096", True, True),
    ((OLD, "creat b; append b 4096; mmapwrite b 0 10; rename b a"), "a=w2:10+zero:4086", False, True),
    ((OLD, "creat b; append b 4096; mmapwrite b 0 4096; rename b a"), "a", True, False),
    ((f"{OLD}; mmapwrite a 0 100", "creat b; append b 10; rename b a"), "a=w1:100", True, False),
    # Cases that P5 does not judge
    (("", "creat b; append b 10; rename b a"), "a", True, False),
    (("creat a", "creat b; append b 10; rename b a"), "a", True, False),
    ((OLD, "creat b; rename b a"), "a", True, False),
    ((f"{OLD}; creat b; append b 10", "rename b a"), "a", True, False),
    ((OLD, "creat b; append b 10; rename b a; append a 10"), "a", True, False),
    ((OLD, "append a 1; creat b; append b 10; rename b a"), "a", True, False),
    ((OLD, "creat b; append b 10; rename b a; unlink a"), "", True, False),
]


@pytest.mark.parametrize(("workload", "tree", "holds", "relevant"), ROWS)
def test_litmus(
    judge: Callable[[Property, str, str, str], Opinion],
    workload: tuple[str, str],
    tree: str,
    holds: bool,
    relevant: bool,
) -> None:
    judgement = judge(P5, *workload, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (holds, relevant), judgement.message


def test_before_the_rename_nothing_is_expected() -> None:
    (workload,) = family(("litmus", *USUAL))
    missing = Tree([Entry(".", "dir")])
    assert P5.examine(History(workload, 4, 4), Observation(0, missing)) == UNTESTED
    assert P5.examine(History(workload, 5, 4), Observation(0, missing)).verdict is Verdict.VIOLATED


def test_the_messages_tell_lost_data_from_a_lost_name(judge: Callable[[Property, str, str, str], Opinion]) -> None:
    assert judge(P5, *USUAL, "a").message == "rename b a (operation 5) is visible, but a is 0 bytes long"
    assert judge(P5, *USUAL, "b=w1:8192").message == (
        "rename b a (operation 5) is visible, but a is missing: neither the old file nor the new one has the name"
    )
