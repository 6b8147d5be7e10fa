"""The crash disk knows exactly the words of the language, because its messages are the agent's."""

import json
import re
import subprocess

import pytest

from postcrash.harness.guests.binaries import find_binary
from postcrash.model.operation import FORMS, PROGRAMS

NOT_BOOTED = "the first request must be boot"


def answer(word: str) -> str:
    """The crash disk's answer to a workload with one operation, before it has a guest."""
    run = {"mount": {"fstype": "ext4"}, "setup": [], "ops": [{"op": word}]}
    request = {"request": "record", "base": "", "out": "", "run": run, "metadata": ""}
    program = subprocess.run(
        [find_binary("crashdisk")], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True
    )
    return str(json.loads(program.stdout)["message"])


@pytest.mark.parametrize("word", [*FORMS, *PROGRAMS])
def test_a_word_of_the_language_is_known(word: str) -> None:
    assert answer(word) == NOT_BOOTED


def test_any_other_word_is_refused() -> None:
    refused, *known = re.findall(r"`([a-z-]+)`", answer("erase"))
    assert (refused, sorted(known)) == ("erase", sorted([*FORMS, *PROGRAMS]))
