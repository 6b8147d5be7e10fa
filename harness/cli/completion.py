"""What a shell completes: names of targets, kernels, properties, applications, and parts of a gate; `last`."""

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from postcrash.apps import application_lists
from postcrash.harness.files.places import GATE_FILE, cache_folder
from postcrash.harness.findings.last_finding import LAST
from postcrash.harness.gate.names import application_names, property_names, target_names
from postcrash.harness.guests.kernels.stock import Stock

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(names: Callable[[], Iterable[str]], *, files: bool = False) -> Completer:
    """Completes the last of several names with commas between them. With `files`, a file where no name fits."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        found = [CompletionItem(before + comma + name) for name in names() if name.startswith(last)]
        return found or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


def _kernels() -> Iterable[str]:
    return sorted(kernel.name for kernel in Stock(cache_folder()).all())


def _parts() -> Iterable[str]:
    """The parts of the current folder's gate. There are none if its file cannot be read; the command will say why."""
    try:
        parts = tomllib.loads(Path(GATE_FILE).read_text(encoding="utf-8")).get("parts")
    except (OSError, ValueError):
        return ()
    return parts if isinstance(parts, dict) else ()


complete_targets = _completer(target_names, files=True)
complete_kernels = _completer(_kernels, files=True)
complete_properties = _completer(property_names)
complete_applications = _completer(lambda: (*application_names(), *application_lists()), files=True)
complete_parts = _completer(_parts)
complete_findings = _completer(lambda: (LAST,), files=True)
