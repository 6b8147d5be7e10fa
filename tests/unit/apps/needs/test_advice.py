"""Advice on flushes of small protocols."""

from dataclasses import replace

import pytest

from postcrash.apps.needs import Advice, BadFolder, EnoughSet, SearchLimits, advise, is_enough

from ..conftest import Traced
from .test_needs import OLD_OR_NEW, judge

pytestmark = pytest.mark.slow

SAID_IS_THERE = "not said or f.get('a') == b'new'"


def advice_on(traced: Traced, before: str, program: str, condition: str, names: frozenset[str] = frozenset()) -> Advice:
    return advise(traced(program, before), judge(condition), SearchLimits(), names, lambda text: None)


def needed(advice: Advice) -> list[bool]:
    return [isinstance(each.without, BadFolder) for each in advice.flushes]


def test_each_flush_is_needed_or_can_go(traced: Traced) -> None:
    program = "f = put('b', 'new'); os.fsync(f); os.fsync(f); os.rename('b', 'a'); sync('.'); print(1, flush=True)"
    advice = advice_on(traced, "put('a', 'old')", program, f"{OLD_OR_NEW} and ({SAID_IS_THERE})")
    assert needed(advice) == [False, True, True], "without both, the file can be empty"
    assert [each.is_instead for each in advice.flushes] == [False, True, False]
    assert (advice.noticed, [each.can_go for each in advice.flushes]) == (2, [True, False, False])
    alone = advice_on(traced, "put('a', 'old')", program.replace("os.fsync(f); os.fsync(f)", "os.fsync(f)"), OLD_OR_NEW)
    assert needed(alone) == [True, False]


def test_flushes_that_can_go_can_go_together(traced: Traced) -> None:
    """What is advised is followed as a whole."""
    program = "f = put('b', 'new'); os.fsync(f); os.fdatasync(f); os.fsync(f); os.rename('b', 'a')"
    protocol = traced(program, "put('a', 'old')")
    advice = advise(protocol, judge(OLD_OR_NEW), SearchLimits(), frozenset(), lambda text: None)
    gone = [each.step.number for each in advice.flushes if each.can_go]
    assert len(gone) == 2
    without = [replace(step, durable=()) if step.number in gone else step for step in protocol.steps]
    rest = replace(protocol, steps=tuple(without))
    assert isinstance(is_enough(rest, judge(OLD_OR_NEW), SearchLimits(), frozenset()), EnoughSet)


def test_what_was_not_decided_can_not_go(traced: Traced) -> None:
    program = "os.fsync(put('b', 'new')); os.rename('b', 'a'); sync('.'); print(1, flush=True)"
    protocol = traced(program, "put('a', 'old')")
    unknown = advise(protocol, lambda states: [None] * len(states), SearchLimits(), frozenset(), lambda text: None)
    few = advise(protocol, judge("True"), SearchLimits(folders=1), frozenset(), lambda text: None)
    for advice in unknown, few:
        assert len(advice.flushes) == 2
        assert not any(each.can_go or each.is_known for each in advice.flushes)
        assert advice.noticed == 0


def test_a_limit_on_what_is_added_is_not_taken_for_the_end(traced: Traced) -> None:
    program = "; ".join(f"put('n{n}', 'new'); os.rename('n{n}', 'a{n}')" for n in range(14))
    condition = " and ".join(f"f.get('a{n}', b'new') == b'new'" for n in range(14))
    advice = advice_on(traced, "", program, condition, frozenset({"A-rename"}))
    assert isinstance(advice.result, BadFolder) and advice.is_cut
    assert len(advice.missing) == 12


def test_what_a_file_system_gives_saves_flushes(traced: Traced) -> None:
    program = "os.fsync(put('b', 'new')); os.rename('b', 'a')"
    assert needed(advice_on(traced, "put('a', 'old')", program, OLD_OR_NEW)) == [True]
    assert needed(advice_on(traced, "put('a', 'old')", program, OLD_OR_NEW, frozenset({"P5"}))) == [False]


def test_a_check_that_always_passes_notices_nothing(traced: Traced) -> None:
    advice = advice_on(traced, "", "os.fsync(put('a', 'new')); sync('.'); print(1, flush=True)", "True")
    assert (advice.noticed, len(advice.flushes)) == (0, 2)


@pytest.mark.parametrize(
    ("program", "condition", "missing"),
    [
        ("put('b', 'new'); os.rename('b', 'a')", OLD_OR_NEW, [("pwrite64", False)]),
        ("os.unlink('a'); print(1, flush=True)", "not said or 'a' not in f", [("unlink", True)]),
        (
            "os.unlink('a'); put('a', 'new'); print(1, flush=True)",
            SAID_IS_THERE,
            [("openat", True), ("pwrite64", False)],
        ),
    ],
)
def test_what_is_missing(traced: Traced, program: str, condition: str, missing: list[tuple[str, bool]]) -> None:
    """With the missing flushes, nothing fails."""
    advice = advice_on(traced, "put('a', 'old')", program, condition)
    assert sorted((each.after.call, each.is_folder) for each in advice.missing) == missing
    assert isinstance(advice.result, EnoughSet)
    assert not advice.flushes


def test_what_no_flush_mends(traced: Traced) -> None:
    advice = advice_on(traced, "", "print(1, flush=True); put('a', 'new')", SAID_IS_THERE)
    assert isinstance(advice.result, BadFolder)


DSYNC = "f = os.open('a', os.O_WRONLY | os.O_DSYNC); os.pwrite(f, b'new', 0); print(1, flush=True)"


def test_a_write_that_flushes_itself_is_still_a_write_without_its_flush(traced: Traced) -> None:
    """Where every write is durable when it returns, it needs no O_DSYNC."""
    assert needed(advice_on(traced, "put('a', 'old')", DSYNC, SAID_IS_THERE)) == [True]
    given = frozenset({"D-return-data"})
    assert needed(advice_on(traced, "put('a', 'old')", DSYNC, SAID_IS_THERE, given)) == [False]


def test_a_write_that_flushes_itself_makes_the_size_durable_that_it_needs(traced: Traced) -> None:
    advice = advice_on(traced, "put('a', '')", f"put('a', 'old'); {DSYNC}", SAID_IS_THERE)
    assert (needed(advice), advice.missing) == ([True], ())
