"""`postcrash import-xfstests`: make targets of the sections of an xfstests configuration."""

from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console

from postcrash.harness.cli.options import json_option
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.files.output import write_json, write_text
from postcrash.model import ExitCode
from postcrash.model.text import visible
from postcrash.model.validation import unknown_name
from postcrash.targets.xfstests import NotImportedError, target_of_section
from postcrash.targets.xfstests_config import ConfigError, ConfigSection, read_sections


@dataclass(frozen=True, slots=True)
class ImportedSection:
    """A section that is a target now."""

    section: str
    target: str
    file: str
    like: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A section that cannot be a target, with the line that says so."""

    section: str
    line: int
    reason: str


@click.command("import-xfstests")
@click.argument("file", metavar="CONFIG", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--section", "names", multiple=True, metavar="NAME", help="Only this section; can be repeated.")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    metavar="DIR",
    help="Write the targets' files into DIR.",
)
@json_option
def import_xfstests(file: Path, names: tuple[str, ...], output: Path, json_file: str | None) -> int:
    """Make a target of each section of CONFIG, a configuration of xfstests such as local.config.

    FSTYP, MKFS_OPTIONS and MOUNT_OPTIONS say what the target is. Nothing of CONFIG is run: what only a shell could tell
    is left out, in one line with its line number (docs/targets.md). Sections carry settings over as xfstests does it.

    \b
    Example:
      postcrash import-xfstests local.config --section ext4_1k
      postcrash check examples/rename-replace.ops --target ./xfstests-ext4-1k.toml
    """
    written: dict[str, ImportedSection] = {}
    left_out: list[LeftOut] = []
    for section in _chosen(file, names):
        try:
            imported = target_of_section(section, visible(file.name))
            if imported.target.name in written:
                raise NotImportedError(section.line, f"the name {imported.target.name} is taken by another section")
        except NotImportedError as error:
            left_out.append(LeftOut(section.name, error.line, str(error)))
            continue
        name = imported.target.name
        place = str(output / f"{name}.toml")
        write_text(place, imported.to_toml())
        written[name] = ImportedSection(section.name, name, place, imported.like)
    _tell(file, list(written.values()), left_out, json_file)
    if not written:
        raise NothingSelectedError(f"{file}: no section of it can be a target")
    return ExitCode.HOLDS


def _chosen(file: Path, names: tuple[str, ...]) -> list[ConfigSection]:
    try:
        sections = read_sections(file)
    except ConfigError as error:
        raise UsageError(visible(str(error))) from error
    known = {section.name for section in sections}
    for name in names:
        if name not in known:
            raise UsageError(f"{file}: {unknown_name('section', name, sorted(filter(None, known)))}")
    return [section for section in sections if not names or section.name in names]


def _tell(file: Path, written: list[ImportedSection], left_out: list[LeftOut], json_file: str | None) -> None:
    write_json(json_file, {"targets": list(map(asdict, written)), "left_out": list(map(asdict, left_out))})
    if json_file == "-":
        return
    console = Console(soft_wrap=True, highlight=False)
    for each in written:
        console.print(f"{each.file}: like {each.like}", markup=False)
    for missing in left_out:
        section = f" [{missing.section}]" if missing.section else ""
        console.print(visible(f"left out: {file}:{missing.line}:{section} {missing.reason}"), markup=False)
