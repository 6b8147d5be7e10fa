"""What the record of a whole gate says, and what it adds to the baseline. Its parts only pretend to run."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.gate import gate as module
from postcrash.harness.gate.gate import Gate, Watcher, run_gate
from postcrash.model import Verdict
from postcrash.store.gate_run import TIME_SPENT, Failure, GateRun, Part

from .conftest import CAUSE, OTHER, failure, part

KNOWN = "postcrash-known.txt"


class NoFollowUp:
    """Leaves failures as they were found."""

    def __init__(self, *_: object) -> None: ...

    def __call__(self, _planned: object, failure: Failure) -> Failure:
        return failure

    retry_known = __call__


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a gate whose only part comes to what is given."""
    file = tmp_path / "postcrash.toml"
    file.write_text('targets = ["ext4-current"]\nconfirm = 0\n[parts.small]\nhunt = 1\n')
    planned = SimpleNamespace(
        name="small",
        kernel=None,
        kernel_name="default",
        target=SimpleNamespace(name="ext4-current"),
        how=SimpleNamespace(model="cache"),
    )
    monkeypatch.setattr(module, "_planned", lambda *_: [planned])
    monkeypatch.setattr(module, "digests_of", lambda *_: {"kernel": "0" * 64})
    monkeypatch.setattr(module, "FollowUp", NoFollowUp)
    monkeypatch.setattr(module, "with_upstream", lambda parts, *_: parts)

    def run(came_to: Part, *, interrupted: bool = False, **asked: Any) -> GateRun:
        runner = SimpleNamespace(
            run=lambda *_: (came_to,), interrupted=interrupted, until=None, is_open=lambda _: False
        )
        monkeypatch.setattr(module, "Runner", lambda *_: runner)
        ignored: Any = lambda *_: nullcontext()  # noqa: E731
        return run_gate(Gate(file, **asked), Session(tmp_path / "store"), Watcher(ignored, ignored, ignored))

    return run


def test_the_record_says_that_the_run_was_interrupted(run: Any) -> None:
    told = run(part(), interrupted=True)
    assert (told.interrupted, told.verdict) == (True, Verdict.UNDECIDED)
    assert not run(part()).interrupted


def test_an_interrupted_run_says_of_no_line_that_it_is_fixed(run: Any, tmp_path: Path) -> None:
    run(part(failure()), accept="known")
    assert run(part(), interrupted=True).fixed == ()
    assert [line.cause for line in run(part()).fixed] == [CAUSE]


def test_the_record_has_what_it_rests_on(run: Any) -> None:
    assert run(part()).digests == {"kernel": "0" * 64}


def test_a_shard_leaves_open_what_another_one_may_put_to_the_test(run: Any) -> None:
    """The merge of all shards decides, and their records have what it needs for that."""
    unasked = part(hold={"P5": None}, tested={"P5": 0})
    assert run(unasked).verdict is Verdict.UNDECIDED
    shard = run(unasked, shard=(1, 2))
    assert (shard.verdict, shard.parts[0].hold) == (Verdict.HOLDS, {"P5": None})


def test_what_is_never_put_to_the_test_can_be_accepted(run: Any) -> None:
    unasked = part(hold={"P5": None}, tested={"P5": 0})
    assert run(unasked, accept="no workload renames").verdict is Verdict.HOLDS
    assert run(unasked).verdict is Verdict.HOLDS
    assert run(unasked, shard=(1, 2)).parts[0].hold == {"P5": "no workload renames"}


def test_a_reason_that_the_baseline_could_not_have_is_refused_before_anything_runs(run: Any) -> None:
    with pytest.raises(UsageError, match=r"--accept: '\\x1b' is a character that nobody can see"):
        run(part(failure()), accept="known \x1b[31m")
    assert run(part(failure()), accept="soft\u00adware\nin two lines").verdict is Verdict.HOLDS


def test_a_lack_of_time_is_not_accepted(run: Any, tmp_path: Path) -> None:
    spent = failure(verdict="undecided", message=f"crash interval N: N of N crash states; {TIME_SPENT}", finding="")
    other = failure(cause=OTHER, verdict="undecided", message="a guest was lost", finding="")
    assert run(part(spent, other), accept="slow").verdict is Verdict.UNDECIDED
    text = (tmp_path / KNOWN).read_text()
    assert (CAUSE in text, OTHER in text) == (False, True)


def test_an_interrupt_while_failures_are_followed_up_leaves_a_result(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is accepted then."""

    class Interrupted(NoFollowUp):
        def __call__(self, _planned: object, failure: Failure) -> Failure:
            raise KeyboardInterrupt

        retry_known = __call__

    monkeypatch.setattr(module, "FollowUp", Interrupted)
    told = run(part(failure()), accept="known")
    assert (told.interrupted, [each.cause for each in told.parts[0].failures]) == (True, [CAUSE])
    assert not (tmp_path / KNOWN).exists()
    (tmp_path / KNOWN).write_text(f"{CAUSE} violated * # known\n")
    assert run(part(failure())).verdict is Verdict.UNDECIDED


def test_a_line_about_the_finding_that_the_gate_shows_is_about_the_failure(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a store that does not know yet what the smallest workload is."""
    smallest = "f-aaaaaaaaaaaaaaaa"

    class Minimizes(NoFollowUp):
        def __call__(self, _planned: object, failure: Failure) -> Failure:
            return failure.model_copy(update={"finding": smallest})

    monkeypatch.setattr(module, "FollowUp", Minimizes)
    (told,) = run(part(failure())).parts
    assert (told.failures[0].finding, told.gate_verdict) == (smallest, Verdict.VIOLATED)
    (tmp_path / KNOWN).write_text(f"{smallest} violated * # as the gate names it\n")
    assert run(part(failure())).verdict is Verdict.HOLDS


PAGE = "docs/findings/btrfs-half-a-rename.md"


@pytest.fixture
def known_upstream(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures of the cause CAUSE are known upstream, and no others."""

    def told(parts: Any, *_: object) -> Any:
        page = {CAUSE: {"upstream": PAGE}}
        return tuple(
            each.model_copy(
                update={"failures": tuple(one.model_copy(update=page.get(one.cause, {})) for one in each.failures)}
            )
            for each in parts
        )

    monkeypatch.setattr(module, "with_upstream", told)


@pytest.mark.usefixtures("known_upstream")
def test_what_is_known_upstream_fails_the_gate_until_it_is_accepted(run: Any, tmp_path: Path) -> None:
    """Another bug may show in the same words, and a line says in how many workloads they are known."""
    assert run(part(failure(workloads=3))).verdict is Verdict.VIOLATED
    told = run(part(failure(workloads=3)), accept_upstream=True)
    assert (told.verdict, told.baseline) == (Verdict.HOLDS, KNOWN)
    assert f"<=3         # known upstream: {PAGE}" in (tmp_path / KNOWN).read_text()
    assert run(part(failure(workloads=4))).verdict is Verdict.VIOLATED


@pytest.mark.usefixtures("known_upstream")
def test_accepting_what_is_known_upstream_accepts_nothing_else(run: Any, tmp_path: Path) -> None:
    told = run(part(failure(), failure(cause=OTHER)), accept_upstream=True)
    assert (told.verdict, told.counts().new, told.counts().upstream) == (Verdict.VIOLATED, 1, 0)
    assert OTHER not in (tmp_path / KNOWN).read_text()
    run(part(failure(), failure(cause=OTHER)), accept_upstream=True, accept="seen")
    assert "# seen" in (tmp_path / KNOWN).read_text()


def test_a_reason_is_of_bounded_length(run: Any) -> None:
    with pytest.raises(UsageError, match=r"^--accept: the reason has 2001 characters, and may have 2000$"):
        run(part(failure()), accept="x" * 2001)


def test_only_a_gate_of_all_its_parts_tells_in_how_many_workloads_a_failure_is(run: Any, tmp_path: Path) -> None:
    run(part(failure(workloads=3)), accept="known", names=("small",))
    assert "<=" not in (tmp_path / KNOWN).read_text()
