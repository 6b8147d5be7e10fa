"""Whether a target has an operation: names make no difference to it, and other arguments do."""

from postcrash.harness.examination.support import Support
from postcrash.model import parse_workload


def test_an_operation_is_there_if_it_ran_with_the_same_arguments_on_any_file() -> None:
    ran = parse_workload("creat a\nlink a b\nappend a 8192\nfallocate a insert-range 0 4096\n", "ran")
    tried = parse_workload("mkdir D\ncreat D/x\nlink D/x y\nfallocate y insert-range 0 8192\n", "tried")
    _, _, link, shift = (operation.variant for operation in tried.operations)
    support = Support()
    support.refused(link)
    assert (support.has(link), support.contradictions) == (False, set())
    support.ran(ran)
    assert (support.has(link), support.has(shift), support.contradictions) == (True, False, {link})


def test_a_handle_is_no_name() -> None:
    named, held = (
        parse_workload(text, "w").operations[-1] for text in ("creat a\nlink a b\n", "tmpfile f\nlink @f b\n")
    )
    assert named.variant != held.variant
