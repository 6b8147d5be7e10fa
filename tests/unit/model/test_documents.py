"""docs/workloads.md and examples/ are in the language that the parser reads."""

import re
from pathlib import Path

import pytest

from postcrash.model import FORMS, load_workload, parse_workload, simulate
from postcrash.model.argument import MODES

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = (ROOT / "docs/workloads.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```ops\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*.ops"))


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_can_be_run(block: str) -> None:
    simulate(parse_workload(block, "block"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_can_be_run(example: Path) -> None:
    workload = load_workload(example).with_tail()
    assert len(simulate(workload)) == len(workload.operations) + 1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_say_what_they_are_about(example: Path) -> None:
    assert example.read_text(encoding="utf-8").startswith("# ")


def test_the_blocks_use_every_operation() -> None:
    operations = [operation for block in BLOCKS for operation in parse_workload(block, "block").operations]
    unused = {"rmdir"}
    assert {operation.word for operation in operations} == set(FORMS) - unused


@pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.word)
def test_the_reference_has_every_operation(form: object) -> None:
    usage = getattr(form, "usage", None)
    assert f"| `{usage}` |" in REFERENCE


@pytest.mark.parametrize("mode", MODES)
def test_the_reference_has_every_mode(mode: str) -> None:
    assert f"| `{mode}` |" in REFERENCE


def test_the_builder_s_example_is_the_first_block() -> None:
    code = re.search(r"^```python\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)
    assert code is not None
    names: dict[str, object] = {"print": lambda _: None}
    exec(code[1], names)
    assert names["workload"] == parse_workload(BLOCKS[0], "rename-replace")
