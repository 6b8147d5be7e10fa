"""Scripts of findings are tried form by form, the user is told, and what did not come to its end shows nothing."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postcrash.harness.errors import InfrastructureError
from postcrash.harness.findings import script_trials as trying
from postcrash.harness.findings.reproduce import Reproducer
from postcrash.harness.findings.script_trials import ScriptForms, ScriptTrial, other_kernel_lines, script_summary
from postcrash.harness.guests.engine import Uml
from postcrash.harness.guests.kernels import stock
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.script_guest import ScriptResult
from postcrash.reports.script.shell_script import FlakeyCut, LogCut
from postcrash.targets import target_named

KERNEL: Any = SimpleNamespace(label="UML 6.1", path=Path("/nowhere"))
SCRIPTS = (Reproducer("first", FlakeyCut(1)), Reproducer("second", LogCut(2, 0)), Reproducer("third", LogCut(2, 1)))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int | None]]:
    """How the runs of each form end, one after the other. No guest runs."""
    codes: dict[str, list[int | None]] = {"first": [0], "second": [0], "third": [0]}
    monkeypatch.setattr(trying, "script_root", lambda *_: Path("/nowhere"))
    monkeypatch.setattr(trying, "run_script", lambda _kernel, _root, _target, text, _s: result(codes[text].pop(0)))
    return codes


def result(code: int | None) -> ScriptResult:
    return ScriptResult(code, "line 7 failed\n")


def forms() -> ScriptForms:
    finding: Any = SimpleNamespace(workload_text="creat a\nsync\n", workload_name="w")
    return ScriptForms(finding, target_named("ext4-current"), SCRIPTS)


def test_the_first_form_that_shows_it_is_run_again(ran: dict[str, list[int | None]], capsys: Any) -> None:
    ran["second"] = [1, 0, 1]
    trial = forms().run_on_kernel(KERNEL, "UML 6.1", 3)
    assert (trial.reproducer.text, trial.reproducer.codes, trial.codes) == ("second", (1, 0, 1), (0, 1))
    assert script_summary(trial) == "This script was run on UML 6.1 and shows it: 2 of 3 times."
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "postcrash: UML 6.1: form 1 of 3 of the script: dm-flakey drops all writes from then on"
    assert told[2:] == [f"postcrash: UML 6.1: this form shows it; run {number} of 3" for number in (2, 3)]


@pytest.mark.parametrize(
    ("code", "said"),
    [(0, "it shows another state"), (None, "the guest did not get to its end"), (2, "exit code 2")],
)
def test_if_none_shows_it_the_first_one_is_told_of(
    ran: dict[str, list[int | None]], code: int | None, said: str
) -> None:
    ran["first"] = [code]
    tried = "This script was tried on UML 6.1, and so were 2 other forms, and did not show it"
    assert script_summary(forms().run_on_kernel(KERNEL, "UML 6.1", 3)) == f"{tried}: {said}; line 7 failed."


def trial(name: str, *codes: int | None) -> ScriptTrial:
    shown = Reproducer("", FlakeyCut(1), (1,) if 1 in codes else (0,))
    return ScriptTrial(name, shown, codes)


SHOWN = trial("own", 1)


def test_a_kernel_is_without_it_only_if_each_form_came_to_its_end() -> None:
    told = list(other_kernel_lines(SHOWN, [trial("D", 0, 1), trial("C", 0, None), trial("B", 0, 0), trial("A", 0, 0)]))
    assert told == [
        "D: the script shows it",
        "C: not known. 1 of 2 forms of the script, once each, failed",
        "B: not shown by 2 forms of the script, once each",
        "A: not shown by 2 forms of the script, once each",
        "the last of these kernels on which no script shows it: B",
    ]
    assert list(other_kernel_lines(SHOWN, [trial("C", None)])) == [
        "C: not known. 1 of 1 forms of the script, once each, failed"
    ]


def test_no_kernel_is_without_what_the_script_does_not_show_on_the_findings_own_kernel() -> None:
    told = list(other_kernel_lines(trial("own", 0, 0), [trial("B", 0, 0)]))
    assert told == ["B: not shown by 2 forms of the script, once each"]


def test_other_kernels_are_those_of_the_stock_newest_first(
    ran: dict[str, list[int | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """But not the same build under another name, and not those that cannot run the target here."""
    for version in ("5.10", "6.1", "6.12", "7.2"):
        folder = tmp_path / "kernels" / f"k-{version}"
        folder.mkdir(parents=True)
        (folder / "kernel").write_text(version)
        (folder / "kernel.json").write_text(json.dumps({"version": version, "origin": "here"}))
    own = tmp_path / "own"
    own.write_text("6.1")
    monkeypatch.setattr(trying, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(stock, "kernel_at", kernel_at)
    monkeypatch.setattr(trying, "why_unsuitable", lambda kernel, _: "no ext4" if "5.10" in kernel.label else None)
    (tried,) = forms().run_on_other_kernels(SimpleNamespace(path=own))  # type: ignore[arg-type]
    assert (tried.kernel, tried.is_without) == ("UML 6.12 (k-6.12)", True)
    left_out = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert left_out == ["postcrash: k-7.2 is left out: it needs a CPU", "postcrash: k-5.10 is left out: no ext4"]


def kernel_at(path: Path, _modules: object, _cache: object) -> Kernel:
    version = path.read_text()
    if version == "7.2":
        raise InfrastructureError("it needs a CPU")
    return Kernel(path, version, None, Uml())
