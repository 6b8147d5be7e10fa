"""Litmus table of P1."""

from collections.abc import Callable

import pytest

from postcrash.model import Entry, History, Observation, Tree, Verdict
from postcrash.model.judge import Opinion
from postcrash.properties import Property
from postcrash.properties.family import family
from postcrash.properties.p1_ordered_directory_operations import OrderedDirectoryOperations

P1 = OrderedDirectoryOperations()

# set-up, operations, names after the crash, holds, relevant
ROWS = [
    ("", "creat a; creat b", "", True, False),
    ("", "creat a; creat b", "a", True, False),
    ("", "creat a; creat b", "a b", True, True),
    ("", "creat a; creat b", "b", False, True),
    ("", "creat a; fsync a; creat b", "b", False, True),
    ("creat s", "unlink s; creat a", "s", True, False),
    ("creat s", "unlink s; creat a", "", True, False),
    ("creat s", "unlink s; creat a", "a", True, True),
    ("creat s", "unlink s; creat a", "a s", False, True),
    ("creat s", "creat a; unlink s", "", False, True),
    # btrfs, as in the paper: {unlink; rename} is reordered
    ("creat s; creat t", "unlink s; rename t u", "s u", False, True),
    ("creat s; creat t", "unlink s; rename t u", "t", True, False),
    ("creat s; creat t", "unlink s; rename t u", "u", True, True),
    # A rename that is half done does not break the order until something later is visible.
    ("creat t", "rename t u; creat a", "t u", True, False),
    ("creat t", "rename t u; creat a", "", True, False),
    ("creat t", "rename t u; creat a", "t u a", False, True),
    ("creat t", "rename t u; creat a", "a", False, True),
    ("creat s; creat t", "unlink s; rename t u", "s t u", False, True),
    # Chains: the effect of creat shows under the later name.
    ("", "creat a; rename a b; creat c", "b", True, True),
    ("", "creat a; rename a b; creat c", "b c", True, True),
    ("", "creat a; rename a b; creat c", "a c", False, True),
    ("", "creat a; rename a b; creat c", "c", False, True),
    ("", "creat a; rename a b; rename b c; creat d", "c d", True, True),
    # Effects that can no longer be seen break nothing.
    ("", "creat a; unlink a; creat b", "b", True, True),
    ("", "creat a; unlink a; creat b", "a b", False, True),
    ("", "creat a; unlink a; creat b", "", True, False),
    # Directories
    ("", "mkdir D; creat D/a", "D/", True, False),
    ("", "mkdir D; creat D/a; creat b", "D/ b", False, True),
    ("mkdir D; creat D/a", "rename D E; creat b", "E/ E/a b", True, True),
    ("mkdir D; creat D/a", "rename D E; creat b", "D/ D/a b", False, True),
    ("mkdir D; mkdir E; creat D/t", "rename D/t E/u; creat E/b", "D/ D/t E/ E/b", False, True),
    ("mkdir D", "rmdir D; creat b", "D/ b", False, True),
    ("creat s", "link s l; creat b", "s b", False, True),
    ("creat s", "link s l; creat b", "s l b", True, True),
    ("", "symlink a l; creat b", "b", False, True),
    # A renamed file replaces another
    ("creat a", "creat b; rename b a; creat c", "a c", True, True),
    ("creat a", "creat b; rename b a; creat c", "a b c", False, True),
    # A name can stand for an old file or a new one. Only bytes, type and target tell the two apart.
    ("creat s; append s 10", "unlink s; creat s; creat b", "s=w0:10 b", False, True),
    ("creat s; append s 10", "unlink s; creat s; creat b", "s b", True, True),
    ("creat s; append s 10", "unlink s; creat s; append s 10; creat b", "s=w1:10 b", True, True),
    ("creat s", "unlink s; creat s; creat b", "s b", True, True),
    ("creat s", "unlink s; mkdir s; creat b", "s b", False, True),
    ("creat s", "unlink s; mkdir s; creat b", "s/ b", True, True),
    ("symlink x s", "unlink s; symlink y s; creat b", "s>x b", False, True),
    ("symlink x s", "unlink s; symlink y s; creat b", "s>y b", True, True),
    ("creat a; append a 10", "creat b; rename b a; creat c", "a=w0:10 c", False, True),
    # Contents that belong to none of the files do not break the order.
    ("creat s; creat o; append o 10", "unlink s; creat s; creat b", "s=w0:10 o=w0:10 b", True, True),
    # rename(2) between two links of one file does nothing, whether it is persisted or not.
    ("creat a; link a b", "rename a b; creat c", "a b c", True, True),
    ("creat a", "link a b; rename a b; creat c", "a b c", True, True),
    ("creat a", "link a b; rename a b; creat c", "a c", False, True),
    ("creat a; link a b", "rename a b; creat c", "b c", False, True),
    # Exchanged names exist before and after, and the files in exchanged directories move.
    ("mkdir D; creat D/a; mkdir E", "exchange D E; rename E/a c", "D/ E/ c", True, True),
    ("mkdir D; creat D/a; mkdir E", "exchange D E; creat b", "D/ E/ E/a b", True, True),
    ("mkdir D; creat D/a; mkdir E", "exchange D E; creat b", "D/ D/a E/ b", False, True),
    ("mkdir D; creat D/a; mkdir E", "exchange D E", "D/ E/", True, False),
    ("creat a; append a 10; creat b; append b 10", "exchange a b; creat c", "a=w0:10 b=w1:10 c", False, True),
    ("creat a; append a 10; creat b; append b 10", "exchange a b; creat c", "a=w1:10 b=w0:10 c", True, True),
    ("creat a; creat b", "exchange a b; creat c", "a b c", True, True),
    # Names that P1 does not judge
    ("creat s", "creat a; creat b", "a b", True, True),
    ("creat s", "creat a; creat b", "a b lost+found/", True, True),
    # No choice of operations explains these names.
    ("", "creat a; mkdir D; creat D/b; rename D E", "a D/ E/b", False, True),
]


@pytest.mark.parametrize(("setup", "operations", "tree", "holds", "relevant"), ROWS)
def test_litmus(
    judge: Callable[[Property, str, str, str], Opinion],
    setup: str,
    operations: str,
    tree: str,
    holds: bool,
    relevant: bool,
) -> None:
    judgement = judge(P1, setup, operations, tree)
    assert (judgement.verdict is Verdict.HOLDS, judgement.relevant) == (holds, relevant), judgement.message


def test_the_message_names_both_operations(judge: Callable[[Property, str, str, str], Opinion]) -> None:
    assert judge(P1, "creat s; creat t", "unlink s; rename t u", "s u").message == (
        "rename t u (operation 4) is visible, unlink s (operation 3) before it is not"
    )
    assert judge(P1, "creat t", "rename t u; creat a", "t u a").message == (
        "creat a (operation 3) is visible, "
        "rename t u (operation 2) before it is half done (the old name is still there)"
    )


def test_operations_that_had_not_started_explain_nothing() -> None:
    (workload,) = family(("litmus", "", "creat a; creat b; unlink a"))
    tree = Tree([Entry(".", "dir"), Entry("b", "file")])
    assert P1.examine(History(workload, 3, 3), Observation(0, tree)).verdict is Verdict.HOLDS
    assert P1.examine(History(workload, 2, 2), Observation(0, tree)).verdict is Verdict.VIOLATED
    assert P1.examine(History(workload, 0, 0), Observation(0, Tree([Entry(".", "dir")]))).relevant is False


def test_many_operations_are_judged_quickly() -> None:
    operations = "; ".join(f"creat a{i}; rename a{i} b{i}; creat c{i}; unlink c{i}" for i in range(100))
    (workload,) = family(("long", "", operations))
    count = len(workload.operations)
    names = [f"b{i}" for i in range(100)]
    whole = Tree([Entry(".", "dir"), *(Entry(name, "file") for name in names)])
    assert P1.examine(History(workload, count, count), Observation(0, whole)).verdict is Verdict.HOLDS
    assert (
        P1.examine(History(workload, count, count), Observation(0, whole.changed({"b50": None}))).verdict
        is Verdict.VIOLATED
    )
