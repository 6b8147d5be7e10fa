"""The plugin's options, on the command line and in pytest's configuration file."""

from dataclasses import dataclass
from pathlib import Path

import pytest

SWITCH = "--postcrash"
_DEFAULT_TARGET = "ext4-current"
_STORE = ".postcrash"
_BUDGET = "20000,10m"
_HELP = {
    "target": f"file systems: names of targets, or TOML files, with commas between them (default: {_DEFAULT_TARGET})",
    "kernel": "the guest's kernel, as of `postcrash check --kernel`",
    "expect": "what file systems are expected to do: documents (the default), practice and more (docs/expectations.md)",
    "store": f"folder with results (default: {_STORE} in the root folder of the tests)",
    "properties": "judge workload files by these properties instead, each in a test: names with commas between them",
    "budget": f"the most for a workload on a target: 30s, 10m, 5000; the rest is UNDECIDED (default: {_BUDGET})",
}


@dataclass(frozen=True)
class Options:
    """The options of a run. Names are not checked. Paths are absolute; those of markers are relative to `folder`."""

    targets: tuple[str, ...]
    kernel: str | None
    expect: str
    store: Path
    properties: str
    budget: str
    folder: Path

    @classmethod
    def of(cls, config: pytest.Config) -> "Options":
        """Reads the options of this run from the command line, or else from the configuration file."""
        kernel, expect, properties, budget = (
            _value(config, name)[0] for name in ("kernel", "expect", "properties", "budget")
        )
        targets, targets_folder = _value(config, "target")
        store, store_folder = _value(config, "store")
        return cls(
            targets=split_targets(targets or _DEFAULT_TARGET, targets_folder),
            kernel=kernel or None,
            expect=expect or "documents",
            store=store_folder / (store or _STORE),
            properties=properties,
            budget=budget or _BUDGET,
            folder=config.rootpath,
        )


def split_targets(names: str, folder: Path) -> tuple[str, ...]:
    """Splits names at commas, without duplicates. Paths of TOML files are relative to `folder`."""
    unique = dict.fromkeys(name.strip() for name in names.split(","))
    return tuple(str(folder / name) if name.endswith(".toml") else name for name in unique)


def add_options(parser: pytest.Parser) -> None:
    """Make the options known to pytest."""
    group = parser.getgroup("postcrash", "crash states of file systems (postcrash)")
    group.addoption(SWITCH, action="store_true", help="collect workload files (*.ops), and run tests with crash_fs")
    for name, text in _HELP.items():
        group.addoption(f"{SWITCH}-{name}", dest=_key(name), metavar=name.upper(), help=text)
        parser.addini(_key(name), text)


def _key(name: str) -> str:
    return f"postcrash_{name}"


def _value(config: pytest.Config, name: str) -> tuple[str, Path]:
    """Returns an option's value, or an empty text, and the folder to which a path in it is relative."""
    if value := config.getoption(_key(name)):
        return str(value), config.invocation_params.dir
    return str(config.getini(_key(name))), config.rootpath
