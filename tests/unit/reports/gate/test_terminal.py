"""The result on a terminal."""

import io

from rich.console import Console

from postcrash.reports.gate.terminal import print_gate
from postcrash.store.gate_run import GateRun


def printed(run: GateRun) -> list[str]:
    out = io.StringIO()
    print_gate(run, Console(file=out, width=80))
    return out.getvalue().splitlines()


def test_findings_then_parts_then_the_verdict_then_what_comes_next(mixed: GateRun) -> None:
    lines = printed(mixed)
    verdict = next(number for number, line in enumerate(lines) if line.startswith("VIOLATED"))
    assert lines[verdict + 1 :] == [
        "next, to see how the first failure comes about, and to report it:",
        "    postcrash explain f-0000000000000001",
        "    postcrash report f-0000000000000001",
        "to accept all that fails now:",
        '    postcrash gate --accept "not looked into yet"',
    ]
    lines = lines[: verdict + 1]
    assert not [line for line in lines if line.startswith("next")]
    assert lines[0].strip("─ ") == "1 · P5 · 15 workloads"
    assert "in 3 workloads of hunt-small on ext4-current, QEMU/TCG 6.12.1: f-0000000000000001" in lines
    assert "    rename B A" in lines and "postcrash explain f-0000000000000001" in lines
    assert "undecided: N recoveries were not enough (durability, mounts)" in lines
    assert "    known: see bug 7" in lines
    assert lines[-6] == "fixed: line 7 (c-00000000000000ff): was mended"
    assert lines[-5:] == [
        "✗ hunt-small on ext4-current, UML 6.1.176: "
        "40 workloads, about 10^21 crash states, 120 recoveries, 1 new, 1 undecided, 1 known",
        "✗ hunt-small on ext4-current, QEMU/TCG 6.12.1: 40 workloads, about 10^21 crash states, 120 recoveries, 1 new",
        "✓ corpus on ext4-current, UML 6.1.176: 40 workloads, about 10^21 crash states, 120 recoveries, 1 known",
        "✓ corpus on btrfs, UML 6.1.176, device model torn:512: 40 workloads, about 10^21 crash states, 120 recoveries",
        "VIOLATED: 2 new, 1 undecided, 2 known, 1 fixed: 160 workloads, about 10^22 crash states, 480 recoveries, 62 s",
    ]


def test_a_green_run_is_a_line_for_each_part_the_verdict_and_what_is_not_there(green: GateRun) -> None:
    assert printed(green) == [
        "✓ hunt-small on ext4-current, UML 6.1.176: 40 workloads, about 10^21 crash states, 120 recoveries",
        "HOLDS: 0 new, 0 undecided, 0 known, 0 fixed: 40 workloads, about 10^21 crash states, 120 recoveries, 62 s",
        "not in this gate: workloads of 5 to 20 operations (random = 1000) (docs/gate.md)",
    ]


def test_texts_stay_texts(hostile: GateRun) -> None:
    """No control character is printed, no markup is read, and no line is a command of GitHub's runner."""
    lines = printed(hostile)
    assert all(line.isprintable() for line in lines)
    assert any("[2J" in line for line in lines)
    assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line]
    marked = hostile.model_copy(update={"file": "[red]x[/]", "shards": ("1/2",)})
    assert any("(only shard 1/2)" in line for line in printed(marked))
