"""`postcrash kernels`: list, fetch, add and remove the kernels that guests can run."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from postcrash.harness.cli.completion import complete_kernels
from postcrash.harness.cli.options import json_option
from postcrash.harness.files.digest import content_digest
from postcrash.harness.files.output import write_json
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.kernels.build import build_of
from postcrash.harness.guests.kernels.debian import IMAGE, Suite
from postcrash.harness.guests.kernels.programs import fetch_e2fsck
from postcrash.harness.guests.kernels.stock import KernelParts, Stock, StockedKernel, missing_in, version_of
from postcrash.model import ExitCode
from postcrash.model.text import INVOCATION, visible

COLUMNS = ("name", "version", "engine", "build", "origin")
_replace_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--replace", "replaces", is_flag=True, help="Put it in the place of the kernel that has its name, without asking."
)


@click.group()
def kernels() -> None:
    """List, fetch, add and remove kernels for guests; other commands take one with --kernel NAME.

    \b
    Examples:
      postcrash kernels list --suite trixie-backports          what Debian has there
      postcrash kernels fetch --suite trixie                   its current kernel, for QEMU
      postcrash kernels fetch user-mode-linux --suite trixie   the same as user-mode Linux
      postcrash kernels e2fsck --suite sid                     its e2fsck, for a target of your own
      postcrash kernels add arch/x86/boot/bzImage --modules out/lib/modules/6.16.0 --name mine
      postcrash kernels remove mine
    """


@kernels.command("list")
@click.option(
    "--suite", metavar="SUITE", help="List instead what a suite of Debian has (stable, trixie-backports, sid)."
)
@json_option
def list_kernels(suite: str | None, json_file: str | None) -> int:
    """List the kernels that were fetched or added.

    Several builds can have one version. The digits of the SHA-256 of a kernel's file tell them apart; --json also has
    its build id, the commit that its version names, and the SHA-256 of its configuration.

    \b
    Examples:
      postcrash kernels list
      postcrash kernels list --suite trixie --json -
    """
    cache = cache_folder()
    found = [_described(kernel) for kernel in Stock(cache).all()] if suite is None else Suite(suite, cache).packages()
    write_json(json_file, {"kernels": found})
    if json_file != "-":
        for line in _aligned([[str(kernel[column]) for column in COLUMNS if column in kernel] for kernel in found]):
            click.echo(visible(line))
        if not found:
            click.echo("none: see  postcrash kernels --help")
    return ExitCode.HOLDS


def _aligned(rows: list[list[str]]) -> list[str]:
    """The rows as lines. They may be longer than the terminal is wide, because a name that is cut is no name."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


@kernels.command()
@click.argument("package", default=IMAGE)
@click.option("--suite", metavar="SUITE", default="stable", show_default=True, help="The suite of Debian to look in.")
@click.option("--name", metavar="NAME", help="Its name; by default its version, or uml-VERSION for user-mode Linux.")
@_replace_option
@json_option
def fetch(package: str, suite: str, name: str | None, replaces: bool, json_file: str | None) -> int:
    """Fetch the kernel of Debian's PACKAGE (linux-image-amd64). It is unpacked into the cache, not installed.

    apt downloads the package from the mirror that this machine uses, and verifies its signature. A kernel of the same
    package and version that is here already stays.

    \b
    Examples:
      postcrash kernels fetch --suite trixie
      postcrash kernels fetch user-mode-linux --suite trixie --name uml-new
    """
    chosen = Suite(suite, cache_folder())
    known = _fetched(chosen.origin(package), name)
    if known is not None:
        return _tell(known, json_file, is_new=False)
    with chosen.unpacked(package) as parts:
        return _add(parts, name, replaces, json_file)


def _fetched(origin: str, name: str | None) -> StockedKernel | None:
    """The kernel of the stock that was fetched from this package and version, by this name if one is given.

    Suites have several names, such as stable and trixie.
    """
    alike = (kernel for kernel in Stock(cache_folder()).all() if kernel.origin.rpartition(" (")[0] == origin)
    return next((kernel for kernel in alike if name in (None, kernel.name)), None)


@kernels.command("e2fsck")
@click.option("--suite", metavar="SUITE", default="stable", show_default=True, help="The suite of Debian to look in.")
def fetch_program(suite: str) -> int:
    """Fetch e2fsck of a suite of Debian with its libraries, and print the line that names it in a target's file.

    The program is unpacked into the cache, not installed (docs/repair.md).

    \b
    Example:
      postcrash kernels e2fsck --suite sid
    """
    program = fetch_e2fsck(suite, cache_folder())
    click.echo(f'repair = ["{program}", "-p"]')
    return ExitCode.HOLDS


@kernels.command()
@click.argument("kernel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--modules",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Its folder lib/modules/VERSION, with depmod's lists.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its .config, to see whether something is missing.",
)
@click.option("--name", metavar="NAME", help="Its name; by default its version, or uml-VERSION for user-mode Linux.")
@_replace_option
@json_option
def add(
    kernel: Path, modules: Path | None, config: Path | None, name: str | None, replaces: bool, json_file: str | None
) -> int:
    """Add your own KERNEL: a bzImage, or a user-mode Linux.

    If another kernel has its name, you are asked whether the new one takes its place. Without a terminal that is an
    error unless --replace is given.

    \b
    Examples:
      postcrash kernels add ./linux --name mine
      postcrash kernels add ./linux --name mine --replace
      postcrash kernels add arch/x86/boot/bzImage --modules out/lib/modules/6.16.0 --name mine-for-qemu
    """
    return _add(KernelParts(kernel, modules, config, str(kernel.resolve())), name, replaces, json_file)


@kernels.command()
@click.argument("name", shell_complete=complete_kernels)
def remove(name: str) -> int:
    """Remove the kernel called NAME.

    Findings that were made on it stay, and commands on them say that their kernel is gone.

    \b
    Example:
      postcrash kernels remove mine
    """
    Stock(cache_folder()).remove(name)
    click.echo(f"{name} is removed")
    return ExitCode.HOLDS


def _add(parts: KernelParts, name: str | None, replaces: bool, json_file: str | None) -> int:
    stock, name = Stock(cache_folder()), name or _default_name(parts)
    known = stock.named(name)
    if known is not None and _is_same(known, parts):
        return _tell(known, json_file, is_new=False)
    return _tell(stock.add(name, parts, replaces=replaces or _may_replace(known)), json_file, is_new=True)


def _is_same(known: StockedKernel, parts: KernelParts) -> bool:
    """Whether the stock has just this kernel. Modules are not compared: a kernel with modules is another one."""
    pairs = [(known.path, parts.kernel), *([(known.folder / "config", parts.config)] if parts.config else [])]
    has_modules = parts.modules is not None or known.modules is not None
    is_file = all(place.is_file() for place, _ in pairs)
    return is_file and not has_modules and all(content_digest(place) == content_digest(file) for place, file in pairs)


def _may_replace(known: StockedKernel | None) -> bool:
    """Ask whether the kernel may be replaced. False if nobody can answer."""
    if known is None or not sys.stdin.isatty():
        return False
    sentence = f"{known.name} is {known.version} ({known.origin}). Findings made on it will need it."
    return click.confirm(f"{sentence} Replace it?", err=True)


def _tell(stocked: StockedKernel, json_file: str | None, *, is_new: bool) -> int:
    missing = missing_in(stocked)
    write_json(json_file, _described(stocked))
    if json_file != "-":
        console = Console(soft_wrap=True)
        already = "" if is_new else " is here already"
        console.print(f"{stocked.name}{already}: {stocked.origin}", markup=False, highlight=False)
        if missing is None:
            tries = shlex.join([INVOCATION, "doctor", "--kernel", stocked.name])
            console.print(f"its configuration is not known: {tries} tries it", markup=False, highlight=False)
        elif missing:
            console.print(f"its configuration lacks {', '.join(missing)}", highlight=False)
    return ExitCode.HOLDS


def _default_name(parts: KernelParts) -> str:
    version = version_of(parts.kernel)
    return version if parts.is_image else f"uml-{version}"


def _described(kernel: StockedKernel) -> dict[str, object]:
    about = {"name": kernel.name, "version": kernel.version, "engine": kernel.engine, "origin": kernel.origin}
    build = build_of(kernel, cache_folder())
    return {**about, "build": build.short, **asdict(build), "missing_options": missing_in(kernel)}
