"""How failures are followed up. Nothing is recovered: the verdicts are made up."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.gate import follow_up as module
from postcrash.harness.gate.follow_up import FollowUp
from postcrash.harness.gate.part_scheduler import KNOWN_RETRIES_MAX, _with_followed
from postcrash.model import Verdict
from postcrash.store.gate_run import Failure, Share
from postcrash.store.store import NotInStoreError

from .conftest import FINDING, failure, part

KNOWN = failure(known="bug 7", found=FINDING)
PLANNED: Any = SimpleNamespace(kernel="a kernel")


def following(notes: list[str], confirm: int = 3, until: float | None = None) -> FollowUp:
    session: Any = SimpleNamespace(store=SimpleNamespace(finding=lambda id: id))
    session.on = lambda kernel: session
    return FollowUp(session, confirm, until, progress=None, note=notes.append)  # type: ignore[arg-type]


def test_a_known_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = [(Verdict.VIOLATED, "it broke"), (Verdict.HOLDS, ""), (Verdict.UNDECIDED, "lost")]
    asked: list[object] = []

    def replay(session: object, finding: object, times: int, until: float) -> list[tuple[Verdict, str]]:
        asked.append((finding, times, until))
        return verdicts

    monkeypatch.setattr(module, "replay", replay)
    notes: list[str] = []
    until = time.monotonic() + 3600
    again = following(notes, until=until).retry_known(PLANNED, KNOWN)
    assert again == KNOWN.model_copy(update={"states": Share(failed=1, runs=2)})
    assert not again.is_new and again.varies == "the check varies: the crash state fails 1 of 2 times"
    undecided = "1 of 3 times, it could not be decided whether the crash state fails again"
    assert (asked, notes) == ([(FINDING, 3, until)], [f"{KNOWN.cause}: {undecided}"])


def test_what_could_never_be_decided_does_not_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "replay", lambda *_: [(Verdict.UNDECIDED, "lost")] * 3)
    again = following([]).retry_known(PLANNED, KNOWN)
    assert (again.states, again.varies) == (None, "")


@pytest.mark.parametrize("how", [{"confirm": 0}, {"until": time.monotonic() - 1}])
def test_without_time_or_confirmation_it_is_left_as_it_is(how: dict[str, Any]) -> None:
    assert following([], **how).retry_known(PLANNED, KNOWN) == KNOWN


def test_a_known_failure_that_cannot_be_tried_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def replay(*_: object) -> None:
        raise InfrastructureError("no guest")

    monkeypatch.setattr(module, "replay", replay)
    notes: list[str] = []
    assert following(notes).retry_known(PLANNED, KNOWN) == KNOWN
    assert notes == [f"{KNOWN.cause}: no guest"]


@pytest.mark.parametrize("failed", [NotInStoreError("recording r"), InfrastructureError("no guest")])
def test_a_new_failure_that_cannot_be_followed_up_stays_as_it_is(
    failed: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was copied may lack recordings, or the finding."""

    def fails(*_: object, **__: object) -> None:
        raise failed

    for name in ("replay", "Spare"):
        monkeypatch.setattr(module, name, fails)
    monkeypatch.setattr(module, "provenance", lambda *_: SimpleNamespace(recorder="crash-disk"))
    monkeypatch.setattr(module, "settings_for_recorders", lambda *_: None)
    planned: Any = SimpleNamespace(kernel="a kernel", application=None, how=SimpleNamespace(budget=None))
    notes: list[str] = []
    follow_up = following(notes)
    follow_up.session.settings = None  # type: ignore[assignment,misc]
    assert follow_up(planned, failure()) == failure()
    assert follow_up.retry_known(PLANNED, KNOWN) == KNOWN
    assert notes == [f"{KNOWN.cause}: {failed}"] * 2


def test_only_so_many_failures_of_one_sort_are_tried() -> None:
    undecided = failure(verdict="undecided", known="slow", finding="")
    given = part(failure(), undecided, *[KNOWN] * (KNOWN_RETRIES_MAX + 2))

    def follow(each: Failure) -> Failure:
        return each.model_copy(update={"states": Share(failed=1, runs=1)})

    known = _with_followed(given, follow, KNOWN_RETRIES_MAX, is_new=False).failures
    assert [each.states is not None for each in known] == [False, False, *[True] * KNOWN_RETRIES_MAX, False, False]
    new = _with_followed(given, follow, 20, is_new=True).failures
    assert [each.states is not None for each in new] == [True, *[False] * (len(new) - 1)]
