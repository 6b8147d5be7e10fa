"""Consoles of guests that were lost: files of the store, which are called by their names wherever a loss is told of."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONSOLES = "consoles"
"""The store's folder of consoles."""


def console_text(lost: Mapping[str, Any]) -> str:
    """What is kept of a guest that was lost (`what`, `console`, `stacks`), as one text."""
    parts = [lost["what"], lost.get("console", ""), lost.get("stacks", "")]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def console_file(lost: Mapping[str, Any]) -> str:
    """The name of its file, from the store's folder on: equal texts have one file."""
    digest = hashlib.sha256(console_text(lost).encode(errors="replace")).hexdigest()
    return f"{CONSOLES}/c-{digest[:16]}.txt"


def keep_console(store: Path, lost: Mapping[str, Any]) -> Path:
    """Write its file in the store's folder `store`: whole or not at all. Raises OSError."""
    place = store / console_file(lost)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", errors="replace") as file:
            file.write(console_text(lost))
        os.rename(name, place)
    return place
