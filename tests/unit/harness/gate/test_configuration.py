"""The gate's file: what it may say, and where it is wrong."""

import json
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator as validator

from postcrash.harness.errors import UsageError
from postcrash.harness.expectations.contract import Contract
from postcrash.harness.gate.configuration import (
    ApplicationPart,
    CorpusPart,
    GateFile,
    HuntPart,
    PropertiesPart,
    RandomPart,
    load,
)
from postcrash.harness.gate.schema import schema
from postcrash.workloads import GRAMMARS

SMALL = 'targets = ["btrfs"]\n[parts.small]\nhunt = 1\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "postcrash.toml"
    file.write_text(text)
    return file


def test_parts_inherit_what_they_do_not_say(tmp_path: Path) -> None:
    gate = load(written(tmp_path, f'{SMALL}models = ["torn"]\n[parts.p]\nproperties = ["P5"]\nexpect = "documents"\n'))
    small, table = gate.parts["small"], gate.parts["p"]
    assert (gate.setting(small, "models"), gate.setting(table, "models")) == (("torn",), ("cache",))
    assert (gate.setting(small, "expect"), gate.setting(table, "expect")) == ("practice", "documents")
    assert gate.setting(small, "targets") == ("btrfs",)


def test_paths_are_seen_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "held.json").write_text(Contract.of([], "k", "cache").to_text())
    monkeypatch.chdir(tmp_path)
    gate = load(written(tmp_path / "sub", f'expect = "contract:held.json"\n{SMALL}'))
    assert gate.expect == "contract:sub/held.json"
    for written_so, seen in (("./linux", "sub/linux"), ("7.2", "7.2")):
        gate = load(written(tmp_path / "sub", f'expect = "kernel:{written_so}"\n{SMALL}'))
        assert gate.expect == f"kernel:{seen}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SMALL.replace("1", "7"), ":3: parts.small.hunt: .*3, found 7"),
        (f"{SMALL}properties = ['P1']\n", ":2: parts.small: a part has exactly one of properties, hunt"),
        ('targets = ["x"]\nparts = {a = 5}\n', ":2: parts.a: a part has exactly one"),
        ('targets = ["x"]\n\n[parts.none]\n', ":3: parts.none: a part has exactly one"),
        (f"speed = 3\n{SMALL}", ":1: speed: there is no such setting, found 3"),
        (f"{SMALL}speed = 3\n", ":4: parts.small.speed: there is no such setting"),
        (f'{SMALL}budget = "5x"\n', ":4: parts.small.budget: '5x' is no budget"),
        (f'time = "-5m"\n{SMALL}', ":1: time: '-5m' is no time such as 90s, 10m or 1h$"),
        ("targets = [1]\n[parts.a]\nhunt = 1\n", ":1: targets.0: Input should be a valid string, found 1$"),
        (SMALL.replace("hunt = 1", "properties = ['P77']"), ":3: parts.small.properties: no property is called 'P77'"),
        (f'{SMALL}hold = ["P77"]\n', ":4: parts.small.hold: no property is called"),
        (f'{SMALL}expect = "much"\n', ":4: parts.small.expect: 'much' is no expectation"),
        (f'{SMALL}expect = "contract:absent"\n', ":4: parts.small.expect: .*absent: No such file"),
        (f'{SMALL}models = ["cach"]\n', ":4: parts.small.models.0: unknown device model 'cach'"),
        ("[parts.small]\nhunt = 1\n", ":1: targets: this must be set"),
        ('targets = "x"\n[parts.a]\nhunt = 1\n', ":1: targets: this must be a list, found 'x'"),
        ('targets = ["x"]\n[parts."a b"]\nhunt = 1\n', ":2: parts.a b: "),
        ("targets = [\n", r": not TOML: .* \(at the end, line 1\)"),
    ],
)
def test_errors_have_the_line_and_the_value(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"postcrash.toml{said}") as caught:
        load(written(tmp_path, text))
    assert caught.value.others == ()


def test_each_thing_that_is_wrong_has_a_line_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = 'speed = 3\ntargets = "x"\n[parts.a]\nhunt = 9\n[parts.b]\nrandom = 0\n'
    with pytest.raises(UsageError) as caught:
        load(written(tmp_path, text))
    lines = [str(caught.value), *caught.value.others]
    assert [line.removeprefix(f"{tmp_path}/postcrash.toml:").split(": ")[:2] for line in lines] == [
        ["1", "speed"],
        ["2", "targets"],
        ["4", "parts.a.hunt"],
        ["6", "parts.b.random"],
    ]


def test_of_many_things_that_are_wrong_the_first_are_told(tmp_path: Path) -> None:
    text = SMALL + "".join(f'no{number} = "{"x" * 1000}"\n' for number in range(50))
    with pytest.raises(UsageError) as caught:
        load(written(tmp_path, text))
    lines = [str(caught.value), *caught.value.others]
    assert len(lines) == 11
    assert lines[-1].endswith("postcrash.toml: 40 other things wrong, too")
    assert max(map(len, lines)) < 1000


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="absent"):
        load(tmp_path / "absent.toml")


def test_grammars_are_those_of_the_catalogue() -> None:
    (grammar, _) = get_args(HuntPart.model_fields["grammar"].annotation)
    assert get_args(grammar) == tuple(GRAMMARS)


PART = "[parts.a]\n"
TOP = 'targets = ["xfs"]\n'
HUNT = f"{TOP}{PART}hunt = 1\n"
GOOD = [
    SMALL,
    f'kernels = []\nmodels = ["cache", "torn"]\nhold = []\n{SMALL}',
    f'time = "1h"\nconfirm = 0\nbaseline = "sub/known.txt"\nguests = 256\n{SMALL}',
    f'{HUNT}kernels = ["6.1", "./linux"]\nexpect = "documents"\nhold = ["P5"]\ndisks = "one"\n',
    f'{HUNT}recovery = "both"\nfsck = true\nuse = false\ndepth = 2\nbudget = "5000,10m"\n',
    f'{TOP}{PART}hunt = "default"\nlimit = 7\n',
    f'{HUNT}grammar = "full"\nsetups = ["new", "synced"]\nlimit = 7\nseed = {2**64 - 1}\n',
    f'{TOP}{PART}properties = ["hotdep13", "P5"]\n[parts."b.c"]\nrandom = 3\nseed = 0\n',
    f'{TOP}{PART}corpus = "Fehler/mit Lücke"\n',
    f'{TOP}{PART}application = "sqlite-3.40[journal=wal]"\nevery = true\nset = {{n = "a\\nb"}}\n',
]
"""Files that the loader and the schema accept."""
BAD = [
    *[
        TOP,
        PART,
        f"{TOP}[parts]\n",
        f"{TOP}{PART}",
        f'{HUNT}corpus = "x"\n',
        f"speed = 1\n{HUNT}",
        f"{HUNT}speed = 1\n",
    ],
    *[
        f"targets = {wrong}\n{PART}hunt = 1\n"
        for wrong in ('"xfs"', "[]", "[1]", "[true]", '["xfs", "xfs"]', "{x = 1}")
    ],
    *[f"{HUNT}kernels = {wrong}\n" for wrong in ('"6.1"', "[6.1]", '["6.1", "6.1"]')],
    *[f"{HUNT}models = {wrong}\n" for wrong in ("[]", '"cache"', '["cache", "cache"]')],
    *[f"{TOP}{PART}hunt = {wrong}\n" for wrong in ('"1"', "true", "0", "4", "1.5", "[1]", "1979-05-27")],
    *[f"{TOP}{PART}random = {wrong}\n" for wrong in ('"1"', "true", "0", "inf", "nan", str(2**63))],
    *[f"{HUNT}{switch} = {wrong}\n" for switch in ("fsck", "use") for wrong in ('"yes"', "1", "0.0", '"true"')],
    *[f"{HUNT}depth = {wrong}\n" for wrong in ('"1"', "true", "3")],
    *[f"{HUNT}{number} = {wrong}\n" for number in ("limit", "seed") for wrong in ('"1"', "true", "-1")],
    *[f"{HUNT}seed = {2**64}\n", f'{HUNT}grammar = "b3"\n', f"{HUNT}setups = []\n", f'{HUNT}setups = "new"\n'],
    *[f"{HUNT}{text} = {wrong}\n" for text in ("expect", "budget", "disks", "recovery") for wrong in ("1", '["x"]')],
    *[f"{wrong}\n{HUNT}" for wrong in ("guests = true", "guests = 0", "guests = 257", 'guests = "2"')],
    *[
        f"{wrong}\n{HUNT}"
        for wrong in ("confirm = true", "confirm = -1", "confirm = 1001", "time = 60", "baseline = 1")
    ],
    *[
        f"{TOP}{PART}{wrong}\n"
        for wrong in ("properties = []", 'properties = "P5"', "corpus = 1", "application = true")
    ],
    *[f'{TOP}{PART}application = "x"\n{wrong}\n' for wrong in ("every = 1", "set = []", "set = {n = 1}")],
    *[f'{TOP}[parts."{wrong}"]\nhunt = 1\n' for wrong in ("", "a b", "-a", "a" * 65)],
]
"""Files that neither accepts."""
CONTROL = r"x\u0000\u001b[31m"
HOLDS_CONTROL = {
    "targets": f'targets = ["{CONTROL}"]\n{PART}hunt = 1\n',
    "kernels": f'{TOP}kernels = ["{CONTROL}"]\n{PART}hunt = 1\n',
    "models": f'{TOP}models = ["{CONTROL}"]\n{PART}hunt = 1\n',
    "expect": f'{TOP}expect = "kernel:./{CONTROL}"\n{PART}hunt = 1\n',
    "baseline": f'{TOP}baseline = "{CONTROL}"\n{PART}hunt = 1\n',
    "hold": f'{TOP}hold = ["{CONTROL}"]\n{PART}hunt = 1\n',
    "parts.a.properties": f'{TOP}{PART}properties = ["{CONTROL}"]\n',
    "parts.a.corpus": f'{TOP}{PART}corpus = "{CONTROL}"\n',
    "parts.a.application": f'{TOP}{PART}application = "{CONTROL}.toml"\n',
    "parts.a.set": f'{TOP}{PART}application = "x"\nset = {{"{CONTROL}" = "1"}}\n',
}
"""Files with a control character, by the setting that holds it."""


def is_loaded(folder: Path, text: str) -> bool:
    try:
        load(written(folder, text))
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("text", GOOD)
def test_what_the_schema_and_the_loader_accept(tmp_path: Path, text: str) -> None:
    validator(json.loads(schema())).validate(tomllib.loads(text))
    load(written(tmp_path, text))


@pytest.mark.parametrize("text", [*BAD, *HOLDS_CONTROL.values()])
def test_what_the_schema_and_the_loader_refuse(tmp_path: Path, text: str) -> None:
    is_valid = validator(json.loads(schema())).is_valid(tomllib.loads(text))
    assert (is_valid, is_loaded(tmp_path, text)) == (False, False)


def test_a_number_with_a_point_is_a_whole_one_only_for_the_schema(tmp_path: Path) -> None:
    """In JSON, 2.0 and 2 are the same number."""
    text = f"confirm = 2.0\n{HUNT}"
    is_valid = validator(json.loads(schema())).is_valid(tomllib.loads(text))
    assert (is_valid, is_loaded(tmp_path, text)) == (True, False)


@pytest.mark.parametrize(("place", "text"), HOLDS_CONTROL.items())
def test_a_control_character_is_refused_and_not_printed(tmp_path: Path, place: str, text: str) -> None:
    line = text[: text.index(CONTROL)].count("\n") + 1
    with pytest.raises(UsageError, match="has a control character") as caught:
        load(written(tmp_path, text))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/postcrash.toml:{line}: ")
    assert place in said
    assert said.isprintable()
    assert caught.value.others == ()


def test_each_setting_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "gate.md").read_text()
    sections = (GateFile, PropertiesPart, HuntPart, RandomPart, CorpusPart, ApplicationPart)
    names = {name for section in sections for name in section.model_fields}
    assert [name for name in sorted(names) if f"`{name}" not in page] == []


def test_a_name_that_is_given_twice_and_a_list_without_names_are_refused(tmp_path: Path) -> None:
    for targets, said in (('["xfs", "btrfs", "xfs"]', "'xfs' is named twice"), ("[]", "this needs at least one name")):
        with pytest.raises(UsageError, match=f":1: targets: {said}"):
            load(written(tmp_path, f"targets = {targets}\n{SMALL.partition(chr(10))[2]}"))
