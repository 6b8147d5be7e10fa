"""A contract keeps what held and what that rests on. A file that is none is refused with the place of the error."""

from pathlib import Path

import pytest

from postcrash.harness.errors import UsageError
from postcrash.harness.expectations.contract import Contract, HeldProperty
from postcrash.model import Verdict
from postcrash.properties.promises import Statements
from postcrash.store.records import Cell

CONTRACT = """{"format": "postcrash contract 1", "kernel": "UML 6.1.176", "model": "cache", "held":
{"ext4-current": {"D-fsync-name": {"states": "77", "workloads": 5, "recoveries": 30}, "P5": {"states": "1",
"workloads": 1, "recoveries": 0}}, "ext2": {}}}"""


def load(folder: Path, text: str = CONTRACT) -> Contract:
    (folder / "c.json").write_text(text, errors="surrogateescape")
    return Contract.load(f"{folder}/c.json")


def cell(property: str, verdict: Verdict, target: str = "ext2", states: int = 9) -> Cell:
    return Cell(
        target=target,
        property=property,
        verdict=verdict,
        states=states,
        recoveries=8,
        outcomes=7,
        workloads=6,
        relevant=5,
        witness=None,
        reason="",
        kernel="k",
        model="cache",
        statements=Statements(None, None),
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    about = HeldProperty(states="77", workloads=5, recoveries=30)
    found = load(tmp_path)
    assert (found.kernel, found.model) == ("UML 6.1.176", "cache")
    assert found.of_target("ext4-current", "cache", "c.json")["D-fsync-name"] == about
    assert load(tmp_path, found.to_text()) == found


def test_a_table_s_contract_has_what_holds(tmp_path: Path) -> None:
    verdicts = {"P1": Verdict.HOLDS, "P2": Verdict.VIOLATED, "P3": Verdict.UNDECIDED}
    made = Contract.of([cell(name, verdict) for name, verdict in verdicts.items()], "k", "cache")
    assert load(tmp_path, made.to_text()) == made
    assert {target: list(held) for target, held in made.held.items()} == {"ext2": ["P1"]}
    assert made.held["ext2"]["P1"] == HeldProperty(states="9", workloads=6, recoveries=8)


def test_numbers_of_crash_states_are_exact_however_large(tmp_path: Path) -> None:
    cells = [cell("P1", Verdict.HOLDS, states=2**200), cell("P2", Verdict.HOLDS), cell("P1", Verdict.HOLDS, "xfs")]
    found = load(tmp_path, Contract.of(cells, "k", "cache").to_text())
    assert found.held["ext2"]["P1"].states == str(2**200)
    assert {target: list(held) for target, held in found.held.items()} == {"ext2": ["P1", "P2"], "xfs": ["P1"]}


@pytest.mark.parametrize(
    ("target", "model", "said"),
    [
        ("ext4-current", "torn", r"^c\.json is about device model cache, not torn$"),
        ("ext2", "cache", r"^c\.json says nothing about ext2; it has ext4-current, ext2$"),
        ("xfs", "cache", r"^c\.json says nothing about xfs; it has ext4-current, ext2$"),
    ],
)
def test_a_contract_says_nothing_about_what_it_did_not_measure(
    tmp_path: Path, target: str, model: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        load(tmp_path).of_target(target, model, "c.json")


def test_names_of_targets_in_a_message_are_one_short_line(tmp_path: Path) -> None:
    """They come from the file, and may be anything."""
    odd = Contract(format="postcrash contract 1", kernel="k", model="cache", held={"a\nb\x1b" + "c" * 10**5: {}})
    empty = Contract.of([], "k", "cache")
    with pytest.raises(UsageError, match=r"it has a b\\x1bccc") as caught:
        odd.of_target("xfs", "cache", "c.json")
    assert len(str(caught.value)) < 300
    with pytest.raises(UsageError, match=r"it has no target$"):
        empty.of_target("xfs", "cache", "c.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no contract of .*: its text: Invalid JSON"),
        (CONTRACT.replace("contract 1", "contract 2"), "is no contract of .*: format: "),
        (CONTRACT.replace('"77"', "77"), "held.ext4-current.D-fsync-name.states: "),
        (CONTRACT.replace('"77"', '"many"'), "held.ext4-current.D-fsync-name.states: "),
        (CONTRACT.replace('"77"', '"0"'), "held.ext4-current.D-fsync-name.states: "),
        (CONTRACT.replace('"workloads": 5', '"workloads": 0'), "held.ext4-current.D-fsync-name.workloads: "),
        (CONTRACT.replace('"format": "postcrash contract 1", ', ""), "is no contract of .*: format: "),
        (CONTRACT.replace("UML 6.1.176", r"UML\n HOLDS"), "is no contract of .*: kernel: "),
        (CONTRACT.replace('"recoveries": 30', '"recoveries": -1'), "held.ext4-current.D-fsync-name.recoveries: "),
        (CONTRACT.replace('"77"', r'"77\\n"'), "held.ext4-current.D-fsync-name.states: "),
        (CONTRACT.replace('"workloads": 5', '"workloads": 5, "more": 1'), "held.ext4-current.D-fsync-name.more: "),
        (CONTRACT.replace('"kernel"', '"core"'), "is no contract of .*: kernel: "),
        ("[]", "is no contract of .*: its text: "),
        ("\udcff", "is no contract of .*: its text: Invalid JSON"),
        ("[" * 10**5, "is no contract of .*: its text: Invalid JSON"),
        (CONTRACT.replace('"P5"', '"P9"'), r"c\.json: no property is called 'P9'"),
        (CONTRACT.replace('"P5"', '"p5"'), r"c\.json: no property is called 'p5', but P5 is"),
        (CONTRACT.replace('"P5"', '"D-fsync-name"'), r"c\.json: 'D-fsync-name' stands 2 times in one object"),
        (CONTRACT.replace('"ext2"', '"ext4-current"'), r"c\.json: 'ext4-current' stands 2 times in one object"),
    ],
)
def test_what_is_no_contract_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load(tmp_path, text)


def test_an_endless_contract_is_refused() -> None:
    with pytest.raises(UsageError, match=r"/dev/zero: more than [0-9]+ bytes"):
        Contract.load("/dev/zero")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for place in (tmp_path / "absent", tmp_path):
        with pytest.raises(UsageError, match=f"^{place}: (No such file or directory|Is a directory)$"):
            Contract.load(str(place))
