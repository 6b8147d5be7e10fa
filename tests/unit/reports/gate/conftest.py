"""A run of a gate, made by hand: two targets, two kernels, and each sort of failure."""

from collections.abc import Callable
from typing import Any

import pytest

from postcrash.store.gate_run import Failure, FixedLine, GateRun, Part, Share

NEW, UNDECIDED, KNOWN, KNOWN_UNDECIDED, HOSTILE = (f"c-{number:016x}" for number in range(1, 6))
MakeFailure = Callable[..., Failure]
MakePart = Callable[..., Part]
MakeRun = Callable[..., GateRun]

HOSTILE_TEXT = (
    "a|b `c` <script>x</script> # SKIP\r\n::error::x%0A ]]> & \x00\x1b[2J \uffff\u202e\nok 1 - fine # SKIP ##[error]y"
)
"""What a message, a name or operations could hold to be taken for something else in one of the forms."""


def failure(cause: str = NEW, **changes: Any) -> Failure:
    told = {
        "verdict": "violated",
        "judge": "P5",
        "message": "PATH is N bytes long; of its bytes, N to N are zero",
        "lost": ("data of a file", "inode table"),
        "standing": "broken: auto-da-alloc (ext4(5))",
        "finding": f"f-{cause[2:]}",
        "name": "rename-replace",
        "operations": "creat A\n---\ncreat B\nrename B A\n",
        "workloads": 12,
    }
    return Failure.model_validate({"cause": cause, **told, **changes})


def undecided(cause: str = UNDECIDED, **changes: Any) -> Failure:
    told = {
        "verdict": "undecided",
        "judge": "durability, mounts",
        "message": "N recoveries were not enough",
        "lost": (),
        "standing": "",
        "finding": "",
        "workloads": 2,
    }
    return failure(cause, **{**told, **changes})


def part(**changes: Any) -> Part:
    told = {
        "name": "hunt-small",
        "kind": "hunt",
        "target": "ext4-current",
        "kernel": "UML 6.1.176",
        "model": "cache",
        "expect": "practice",
        "verdict": "holds",
        "workloads": 40,
        "states": str(2**70),
        "states_total": str(2**70),
        "instants": 400,
        "recoveries": 120,
        "remembered": 30,
        "outcomes": 55,
        "seconds": 12.5,
        "tested": {"mounts": 40, "P5": 8, "durability": 33, "link-counts": 0},
    }
    return Part.model_validate({**told, **changes})


def run(*parts: Part, **changes: Any) -> GateRun:
    told = {
        "version": "0.1.0",
        "started": "2026-01-31T12:00:00Z",
        "seconds": 61.5,
        "file": "postcrash.toml",
        "baseline": "known.toml",
        "parts": parts,
    }
    return GateRun.model_validate({**told, **changes})


@pytest.fixture
def make_failure() -> MakeFailure:
    return failure


@pytest.fixture
def make_undecided() -> MakeFailure:
    return undecided


@pytest.fixture
def make_part() -> MakePart:
    return part


@pytest.fixture
def make_run() -> MakeRun:
    return run


@pytest.fixture
def green() -> GateRun:
    """A run in which all holds."""
    return run(part())


@pytest.fixture
def mixed() -> GateRun:
    """A run with all sorts of failures: the new cause is in two parts, and each other sort is in one of them."""
    varying: dict[str, Any] = {"states": Share(failed=3, runs=20), "recordings": Share(failed=1, runs=5)}
    return run(
        part(verdict="violated", failures=(failure(), undecided(), failure(KNOWN, judge="P1", known="see bug 7"))),
        part(
            kernel="QEMU/TCG 6.12.1", verdict="violated", failures=(failure(workloads=3, **varying),), notes=("slow",)
        ),
        part(
            name="corpus", kind="corpus", verdict="undecided", failures=(undecided(KNOWN_UNDECIDED, known="too large"),)
        ),
        part(name="corpus", kind="corpus", target="btrfs", model="torn:512"),
        fixed=(FixedLine(line=7, cause="c-00000000000000ff", why="was mended"),),
    )


@pytest.fixture
def hostile() -> GateRun:
    """A run in which every text holds what could be taken for something else."""
    odd = HOSTILE_TEXT
    bad = failure(HOSTILE, judge=odd, message=odd, lost=(odd,), standing=odd, name=odd, operations=odd, file=odd)
    accepted = failure(KNOWN, judge=odd, message=odd, known=odd)
    part_of = part(name=odd, target=odd, kernel=odd, model=odd, expect=odd, notes=(odd,), tested={odd: 1, f"{odd}0": 0})
    fixed = (FixedLine(line=1, cause=odd, why=odd),)
    parts = part_of.model_copy(update={"verdict": "violated", "failures": (bad, accepted, undecided(message=odd))})
    return run(parts, version=odd, started=odd, file=odd, baseline=odd, fixed=fixed)
