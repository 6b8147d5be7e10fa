"""Which witnesses are confirmed, and what becomes of those that do not show again. No state is recovered."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import GuestLostError
from postcrash.harness.examination.confirmation import Confirmation
from postcrash.harness.examination.result import Examination, Ruling, Witness
from postcrash.model import Verdict
from postcrash.model.judge import Opinion

from .conftest import RECOVER

NOT_AGAIN = "a violation did not show again when its state was recovered once more: NEW"
WITNESS = Witness(
    interval=1,
    choices=((1, 1),),
    started=1,
    returned=0,
    lost=(1,),
    torn=0,
    recover=RECOVER,
    observation={},
    casualty=None,
)
FIRST_CRASH: Any = SimpleNamespace()
WITHIN = replace(WITNESS, crashed=FIRST_CRASH)


class Pretence(Confirmation):
    """Each witness shows its violation again, except that of NEW, which does not or loses its guest."""

    def __init__(self, result: Examination, findings_max: int, *, loses_guest: bool = False) -> None:
        plan: Any = SimpleNamespace(findings_max=findings_max)
        nothing: Any = None
        super().__init__(nothing, plan, source=nothing, place=nothing, result=result, opinions=nothing)
        self._loses_guest = loses_guest
        self.tried = list[str]()

    def _confirm_state(self, name: str, message: str, witness: Witness) -> bool:
        self.tried.append(message)
        if message != "NEW":
            found: Any = message
            self._result.findings.append(found)
        elif self._loses_guest:
            lost: Any = SimpleNamespace(what="the guest died", console=None)
            raise GuestLostError(lost)
        return message != "NEW"

    _confirm_within = _confirm_state


def violated(*witnesses: tuple[str, Witness]) -> Examination:
    """An examination with the judge `durability`, which objects in these words."""
    ruling = Ruling()
    for message, witness in witnesses:
        ruling.take(Opinion(Verdict.VIOLATED, True, message))
        ruling.violated(message, witness)
    return Examination(rulings={"durability": ruling})


@pytest.mark.parametrize("loses_guest", [True, False])
def test_what_does_not_show_again_stays_open_beside_what_does(loses_guest: bool) -> None:
    result = violated(("KNOWN", WITNESS), ("NEW", replace(WITNESS, lost=(1, 2))))
    Pretence(result, 1000, loses_guest=loses_guest).confirm("durability")
    ruling = result.rulings["durability"]
    assert (ruling.verdict, ruling.open_questions) == (Verdict.VIOLATED, (NOT_AGAIN,))
    assert list(map(str, result.findings)) == ["KNOWN"]


def test_a_violation_that_does_not_show_again_is_an_open_question_beside_others() -> None:
    result = violated(("NEW", WITNESS))
    ruling = result.rulings["durability"]
    ruling.leave_open("the budget is spent")
    Pretence(result, 1).confirm("durability")
    assert (ruling.verdict, ruling.open_questions) == (Verdict.UNDECIDED, ("the budget is spent", NOT_AGAIN))


def test_a_later_examination_of_the_plan_is_not_sure_either() -> None:
    first, later = violated(("NEW", WITNESS)), Examination(rulings={"durability": Ruling()})
    Pretence(first, 1).confirm("durability")
    later.follows(first)
    assert later.rulings["durability"].verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(("findings_max", "tried"), [(1, ["KNOWN"]), (1000, ["KNOWN", "WITHIN"])])
def test_what_only_a_crash_within_recovery_shows_is_tried_unless_one_finding_is_enough(
    findings_max: int, tried: list[str], tmp_path: Path
) -> None:
    confirmation = Pretence(violated(("KNOWN", WITNESS), ("WITHIN", WITHIN)), findings_max)
    confirmation.confirm("durability")
    assert confirmation.tried == tried
