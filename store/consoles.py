"""Lost guests and their consoles. Consoles are files of the store, which every report of a loss names."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

CONSOLES = "consoles"
"""The store's folder of consoles."""


@dataclass(frozen=True, slots=True)
class Casualty:
    """How a guest was lost.

    what     in words: it hangs, or its kernel died
    console  the end of its console
    stacks   what its kernel was doing, or why this is not known
    """

    what: str
    console: str = ""
    stacks: str = ""


def console_text(lost: Casualty) -> str:
    """Returns everything about a lost guest as one text."""
    parts = [lost.what, lost.console, lost.stacks]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def console_file(lost: Casualty) -> str:
    """Returns the name of the console's file, relative to the store's folder. Equal texts share a file."""
    digest = hashlib.sha256(console_text(lost).encode(errors="replace")).hexdigest()
    return f"{CONSOLES}/c-{digest[:16]}.txt"


def keep_console(store: Path, lost: Casualty) -> Path:
    """Writes the console's file to the folder `store` atomically. Raises OSError."""
    place = store / console_file(lost)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", errors="replace") as file:
            file.write(console_text(lost))
        os.rename(name, place)
    return place
