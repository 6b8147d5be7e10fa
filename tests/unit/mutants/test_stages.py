"""A finding counts only if the stock kernel, recovered and judged in the same way, does not show it."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.mutants import stages
from tests.mutants.stages import DEFAULT, STAGES, StockKernel, recoveries_of

FINDING = cast(
    Any,
    SimpleNamespace(
        checker="same-recovery",
        message="bar is gone",
        workload_text="creat bar\nfsync bar\n",
        workload_name="w",
    ),
)


def test_each_stage_says_how_its_states_are_recovered() -> None:
    asked = {stage.name: stage.recoveries for stage in STAGES if stage.recoveries}
    assert asked == {"ace, 100 with crash in recovery": ("--depth", "2")}


@pytest.mark.parametrize(("base", "asked"), [("b-0123456789abcdef", ()), ("r-0123456789abcdef/0/-", ("--depth", "2"))])
def test_the_default_hunt_s_findings_are_recovered_as_they_were_found(base: str, asked: tuple[str, ...]) -> None:
    assert recoveries_of(DEFAULT, cast(Any, SimpleNamespace(base=base))) == asked


@pytest.mark.parametrize(("recoveries", "shows"), [((), False), (("--depth", "2"), True)])
def test_the_stock_kernel_is_recovered_as_the_stage_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recoveries: tuple[str, ...], shows: bool
) -> None:
    """It shows the same only if it is crashed in its recovery, too."""

    def json_of(command: Sequence[str | Path], folder: Path) -> dict[str, Any]:
        found = [{"checker": FINDING.checker, "message": "bar is gone"}] if "--depth" in command else []
        return {"findings": found}

    monkeypatch.setattr(stages, "json_of", json_of)
    assert StockKernel(tmp_path / "stock", tmp_path).shows(FINDING, "f2fs", recoveries) is shows
