"""Measure how the findings of docs/findings show in a gate, for harness/findings/known_findings.toml.

    python -m tests.known_findings FOLDER > shows.toml

Each page's workload is a part of one gate on the installed kernel. The gate's store goes into FOLDER. What fails is
printed as tables of the file. Somebody has to read them: a page's workload can show another finding too.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from postcrash.harness.hunting.causes import cause_of
from postcrash.properties import PROPERTIES
from postcrash.store.store import Store

from .finding_page import FindingPage, finding_pages


def main(folder: Path) -> None:
    """Run the gate, and print what fails."""
    text = ['targets = ["all"]', "confirm = 0", ""]
    for page in finding_pages():
        text += _part(page, folder)
    (folder / "gate.toml").write_text("\n".join(text) + "\n")
    command = (Path(sys.executable).with_name("postcrash"), "gate", "gate.toml", "--json", "gate.json")
    subprocess.run(command, cwd=folder, stdout=sys.stderr)
    told = json.loads((folder / "gate.json").read_text())
    store = Store(folder / ".postcrash")
    for part in told["parts"]:
        print(f"# {part['name']} on {part['target']}, {part['kernel']}: {part['verdict']}")
        for failure in part["failures"]:
            if failure["verdict"] == "violated":
                cause = cause_of(store.finding(failure["finding"]))
                print(f"[[{part['name']}.shows]]")
                print(f"judge = {json.dumps(cause.checker)}")
                print(f"message = {json.dumps(cause.message, ensure_ascii=False)}")
                if cause.lost:
                    print(f"lost = {json.dumps(cause.lost)}")
                print(f"workloads = [{json.dumps(failure['operations'])}]\n")


def _part(page: FindingPage, folder: Path) -> Iterator[str]:
    place = folder / page.name
    place.mkdir(parents=True, exist_ok=True)
    page.put_workload(place)
    yield f"[parts.{page.name}]"
    yield f'corpus = "{page.name}"'
    yield f'targets = ["{page.target}"]'
    if page.judge in {each.name for each in PROPERTIES}:
        yield f'hold = ["{page.judge}"]'
    if page.judge == "fsck":
        yield "fsck = true"
    if "--recovery" in page.arguments:
        yield f'recovery = "{page.arguments[page.arguments.index("--recovery") + 1]}"'
    yield ""


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
