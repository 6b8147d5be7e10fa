"""The library for user-mode Linux sets a part of the extended registers. The host's kernel refuses to do this.

The part is smaller than the XSAVE area of any host, so the test means the same on hosts with AMX and without.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from postcrash.harness.guests.engine import uml_library

PROGRAM = Path(__file__).with_name("xstate_program.py")
PART_BYTES = 576
"""x87, SSE and the header. The high halves of the AVX registers lie behind this part."""


def run(preload: Path | None) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    command = [sys.executable, str(PROGRAM), str(PART_BYTES)]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


def test_the_host_refuses_a_part_of_the_area() -> None:
    told = run(None)
    assert told["bytes"] > PART_BYTES
    assert told["part"] == "EFAULT" and told["kept"]


def test_with_the_library_a_part_is_set_and_the_rest_kept() -> None:
    told = run(uml_library())
    assert told["part"] is None
    assert told["set"] and told["beyond"]


def test_all_other_calls_are_as_without_the_library() -> None:
    same = ("bytes", "whole", "more", "odd", "truncated", "peeked", "no process")
    told, plain = run(uml_library()), run(None)
    assert {name: told[name] for name in same} == {name: plain[name] for name in same}
    assert plain["truncated"] and plain["peeked"] and plain["no process"]
    assert (plain["whole"], plain["more"], plain["odd"]) == (None, None, "EINVAL")
