"""`postcrash kernels`: list, fetch and add the kernels that guests can run."""

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from postcrash.harness.commands.options import json_option
from postcrash.harness.files.output import write_json
from postcrash.harness.files.places import cache_folder
from postcrash.harness.guests.kernels.debian import IMAGE, Suite
from postcrash.harness.guests.kernels.programs import fetch_e2fsck
from postcrash.harness.guests.kernels.stock import KernelParts, Stock, StockedKernel, missing_in, version_of
from postcrash.model import ExitCode

COLUMNS = ("name", "version", "engine", "origin")


@click.group()
def kernels() -> None:
    """List, fetch and add kernels for guests; other commands take one with --kernel NAME.

    \b
    Examples:
      postcrash kernels list --suite trixie-backports          what Debian has there
      postcrash kernels fetch --suite trixie                   its current kernel, for QEMU
      postcrash kernels fetch user-mode-linux --suite trixie   the same as user-mode Linux
      postcrash kernels e2fsck --suite sid                     its e2fsck, for a target of your own
      postcrash kernels add arch/x86/boot/bzImage --modules out/lib/modules/6.16.0 --name mine
    """


@kernels.command("list")
@click.option(
    "--suite", metavar="SUITE", help="List instead what a suite of Debian has (stable, trixie-backports, sid)."
)
@json_option
def list_kernels(suite: str | None, json_file: str | None) -> int:
    """List the kernels that were fetched or added.

    \b
    Examples:
      postcrash kernels list
      postcrash kernels list --suite trixie --json -
    """
    cache = cache_folder()
    found = [_described(kernel) for kernel in Stock(cache).all()] if suite is None else Suite(suite, cache).packages()
    write_json(json_file, {"kernels": found})
    if json_file != "-":
        table = Table(box=None, show_header=False, pad_edge=False)
        for kernel in found:
            table.add_row(*(escape(str(kernel[column])) for column in COLUMNS if column in kernel))
        Console(soft_wrap=True).print(table if found else "none: see  postcrash kernels --help", highlight=False)
    return ExitCode.HOLDS


@kernels.command()
@click.argument("package", default=IMAGE)
@click.option("--suite", metavar="SUITE", default="stable", show_default=True, help="The suite of Debian to look in.")
@click.option("--name", metavar="NAME", help="Its name; by default its version, or uml-VERSION for user-mode Linux.")
@json_option
def fetch(package: str, suite: str, name: str | None, json_file: str | None) -> int:
    """Fetch the kernel of Debian's PACKAGE (linux-image-amd64). It is unpacked into the cache, not installed.

    apt downloads the package from the mirror that this machine uses, and verifies its signature.

    \b
    Examples:
      postcrash kernels fetch --suite trixie
      postcrash kernels fetch user-mode-linux --suite trixie --name uml-new
    """
    with Suite(suite, cache_folder()).unpacked(package) as parts:
        return _add(parts, name, json_file)


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
@json_option
def add(kernel: Path, modules: Path | None, config: Path | None, name: str | None, json_file: str | None) -> int:
    """Add your own KERNEL: a bzImage, or a user-mode Linux.

    \b
    Examples:
      postcrash kernels add ./linux --name mine
      postcrash kernels add arch/x86/boot/bzImage --modules out/lib/modules/6.16.0 --name mine-for-qemu
    """
    return _add(KernelParts(kernel, modules, config, str(kernel.resolve())), name, json_file)


def _add(parts: KernelParts, name: str | None, json_file: str | None) -> int:
    stocked = Stock(cache_folder()).add(name or _default_name(parts), parts)
    missing = missing_in(stocked)
    write_json(json_file, _described(stocked))
    if json_file != "-":
        console = Console(soft_wrap=True)
        console.print(f"{stocked.name}: {stocked.origin}", markup=False, highlight=False)
        if missing is None:
            console.print("its configuration is not known: postcrash doctor --kernel NAME tries it", highlight=False)
        elif missing:
            console.print(f"its configuration lacks {', '.join(missing)}", highlight=False)
    return ExitCode.HOLDS


def _default_name(parts: KernelParts) -> str:
    version = version_of(parts.kernel)
    return version if parts.is_image else f"uml-{version}"


def _described(kernel: StockedKernel) -> dict[str, object]:
    about = {"name": kernel.name, "version": kernel.version, "engine": kernel.engine, "origin": kernel.origin}
    return {**about, "missing_options": missing_in(kernel)}
