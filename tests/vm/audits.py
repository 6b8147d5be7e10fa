"""What tests of applications share: an audit of one of them on one target, and its result."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

from postcrash.apps import Building, application_named
from postcrash.harness.files.places import cache_folder

Audit = Callable[..., subprocess.CompletedProcess[str]]


def told(audit: Audit, *arguments: str, target: str = "ext4-current") -> dict[str, Any]:
    """What it came to on one target and a disk that completes at once."""
    ran = audit(*arguments, "--target", target, "--one-disk", "--recordings", "1", "--json", "-")
    assert ran.stderr == ""
    (only,) = json.loads(ran.stdout)["audits"]
    verdict: dict[str, Any] = only
    assert ran.returncode == {"holds": 0, "violated": 1, "undecided": 6}[verdict["verdict"]]
    return verdict


def made(name: str) -> str:
    """The application, built now if it has a build that was not made yet, so that the audit says nothing of it."""
    application = application_named(name)
    if application.build:
        Building(application, cache_folder()).make(lambda line: None)
    return name


REFUSED = "ends with status 126 in the guest: it makes or changes"
"""How an audit ends if the program changes what is left out of its folder."""
