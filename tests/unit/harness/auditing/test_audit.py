"""How often an application is recorded: until each recording is like another one, or a promise is broken."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from postcrash.apps import Application
from postcrash.harness.auditing import audit as module
from postcrash.harness.auditing import folder_plan
from postcrash.harness.auditing.coverage_estimate import unseen_share
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.result import Examination, Ruling
from postcrash.model import Verdict
from postcrash.targets import target_named


@dataclass(frozen=True)
class FakePlan:
    how: Exploration
    recording: int = 1


class FakeJudge:
    """Nothing is judged here."""

    folders = 0
    kept = ()

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> "FakeJudge":
        return self

    def __exit__(self, *_: object) -> None:
        pass


class FakeStore:
    def recording_path(self, id: str) -> str:
        return id


class FakeSession:
    store = FakeStore()

    class kernel:
        label = "UML"

    def crew(self, guests: int | None) -> None:
        assert guests is None


def recorded(
    monkeypatch: pytest.MonkeyPatch, shapes: str, violated: str = "", **asked: Any
) -> tuple[str, module.Audit]:
    """The letters that were taken of `shapes`, the shapes of all recordings in turn; `.` is one that was not made."""
    left = list(shapes)

    def run_campaign(plans: list[FakePlan], *_: Any, **__: Any) -> list[Examination]:
        results = []
        for plan in plans:
            shape = left.pop(0)
            result = Examination(recording="" if shape == "." else shape, base="b", model="cache", kernel="UML")
            found = Verdict.VIOLATED if shape in violated else Verdict.HOLDS
            result.rulings = {"application": Ruling(found, relevant=True, reason=f"{plan.recording} {plan.how.held}")}
            results.append(result)
        return results

    monkeypatch.setattr(folder_plan, "run_campaign", run_campaign)
    monkeypatch.setattr(module, "shape_of", lambda path: path)
    monkeypatch.setattr(module, "ApplicationJudge", FakeJudge)
    monkeypatch.setattr(module, "plan_of", lambda session, application, target, how, judge: FakePlan(how))
    session: Any = FakeSession()
    progress: Any = None
    application = Application(name="a", run="r", check="c")
    setup = folder_plan.AuditSetup(session, Exploration(), None, progress)
    done = module.audit(setup, application, target_named("xfs"), **asked)
    return shapes[: len(shapes) - len(left)], done


@pytest.mark.parametrize(
    ("shapes", "asked", "taken", "ways"),
    [
        ("aaaaaaaa", {}, "aaaaaa", 1),
        ("abacbaaa", {}, "abacba", 3),
        ("abcdefgh", {}, "abcdef", 6),
        ("aaaaaaaa", {"one_disk": True}, "aaa", 1),
        ("abbbbbbb", {"one_disk": True}, "abb", 2),
        ("a.a.....", {}, "a.a...", 1),
    ],
)
def test_as_often_as_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, shapes: str, asked: dict[str, Any], taken: str, ways: int
) -> None:
    """Of what could not be recorded nobody knows what it is like."""
    found, done = recorded(monkeypatch, shapes, recordings=3, **asked)
    assert (found, done.ways) == (taken, ways)
    assert done.recordings == len(taken.replace(".", ""))
    assert done.unseen == unseen_share(taken.replace(".", ""))
    assert done.verdict is Verdict.HOLDS


def test_what_a_later_run_does_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runs before it were alike."""
    found, done = recorded(monkeypatch, "a" * 29 + "b", violated="b", recordings=30, one_disk=True)
    assert (len(found), done.verdict) == (30, Verdict.VIOLATED)


def test_a_broken_promise_ends_it_whichever_recording_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    found, done = recorded(monkeypatch, "abcdef", violated="c", recordings=3)
    assert (found, done.verdict) == ("abcd", Verdict.VIOLATED)


def test_each_recording_has_its_number_and_its_order_of_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    _, done = recorded(monkeypatch, "abcdef", recordings=3)
    told = [result.rulings["application"].reason for result in done.results]
    assert told == ["1 None", "1 1", "2 None", "2 2", "3 None", "3 3"]
    assert [how.held for how in done.how] == [None, 1, None, 2, None, 3]
    assert done.how[0] == replace(done.how[1], held=None)
