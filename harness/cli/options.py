"""Options that several commands share."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from typing import Any

import click

from postcrash._core import DeviceModel, device_models
from postcrash.harness.budget import Budget, BudgetError
from postcrash.harness.cli.completion import complete_kernels, complete_targets
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import FSCK, USE, WALK
from postcrash.harness.examination.recording import AUTO, RECORDERS
from postcrash.harness.examination.repair import RECOVERIES
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import LEVELS, Expectation
from postcrash.harness.guests.kernels.stock import ENGINES
from postcrash.harness.hunting.space_hunt import Shard

_Command = Callable[..., Any]
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def json_option(command: _Command) -> _Command:
    """`--json FILE`."""
    help_text = "Write the result as JSON; - is standard output."
    return click.option("--json", "json_file", metavar="FILE", help=help_text)(command)


def target_option(command: _Command) -> _Command:
    """`--target`, as the argument `target_name`."""
    help_text = "The file system, as in the table."
    option = click.option(
        "--target", "target_name", required=True, metavar="NAME", shell_complete=complete_targets, help=help_text
    )
    return option(command)


def targets_option(
    *names: str,
    help_text: str = "Names with commas between them, or all for the whole catalogue; can be repeated.",
    **settings: Any,
) -> Callable[[_Command], _Command]:
    """`--target`, which can be repeated, as the argument `targets`. `names` are further names of the option."""
    return click.option(
        "--target",
        *names,
        "targets",
        shell_complete=complete_targets,
        multiple=True,
        metavar="NAME,…",
        help=help_text,
        **settings,
    )


def promised_option(command: _Command) -> _Command:
    """`--promised`."""
    help_text = "Exit code 1 only for broken promises; what nobody promised does not count (docs/promises.md)."
    return click.option("--promised", is_flag=True, help=help_text)(command)


def fresh_option(command: _Command) -> _Command:
    """`--fresh`."""
    help_text = "Run workloads again that have a result in the store."
    return click.option("--fresh", is_flag=True, help=help_text)(command)


def one_disk_option(command: _Command) -> _Command:
    """`--one-disk`."""
    help_text = (
        "Use only a disk that completes writes at once. By default a disk that holds them back is used too, like that "
        "of --held."
    )
    return click.option("--one-disk", is_flag=True, help=help_text)(command)


def expect_option(default: str) -> Callable[[_Command], _Command]:
    """`--expect`, as the argument `expected`."""
    levels = "; ".join(f"{level}: {text}" for level, text in LEVELS.items())
    return click.option(
        "--expect",
        "expected",
        callback=lambda _context, _parameter, name: Expectation.named(name),
        metavar="LEVEL",
        default=default,
        show_default=True,
        help=f"What the file system is expected to do. {levels} (docs/expectations.md).",
    )


def kinds_options(command: _Command) -> _Command:
    """`--fsck` and `--use`, as the argument `kinds`: the kinds of recovery that are wanted. `walk` is always one."""

    @wraps(command)
    def with_kinds(*args: object, fsck: bool, use: bool, **options: Any) -> Any:
        kinds = frozenset([WALK, *[FSCK] * fsck, *[USE] * use])
        return command(*args, kinds=kinds, **options)

    use_help = "Also change, delete and write files after every recovery. This takes some four times as long."
    fsck_help = "Also run the file system's checker on every crash state. This takes far longer."
    with_use = click.option("--use", is_flag=True, help=use_help)(with_kinds)
    return click.option("--fsck", is_flag=True, help=fsck_help)(with_use)


def kernel_options(command: _Command) -> _Command:
    """`--kernel`, `--engine` and `--virtual-time`, which the session keeps."""
    options = (
        click.option(
            "--virtual-time",
            "virtual_time",
            is_flag=True,
            expose_value=False,
            callback=_keep,
            help="Use QEMU without KVM. The guest's clock jumps ahead while it is idle, so sleeping costs nothing.",
        ),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="auto",
            show_default=True,
            expose_value=False,
            callback=_keep,
            help="What runs the kernel: auto is QEMU for a kernel image and user-mode Linux otherwise.",
        ),
    )
    for option in options:
        command = option(command)
    return kernel_option(command)


def kernel_option(command: _Command) -> _Command:
    """`--kernel`, which the session keeps."""
    option = click.option(
        "--kernel",
        "kernel_name",
        shell_complete=complete_kernels,
        metavar="NAME|PATH",
        expose_value=False,
        callback=_keep,
        help="The guest's kernel: a name of `postcrash kernels list`, a bzImage or a user-mode Linux.",
    )
    return option(command)


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    session = context.find_object(Session)
    assert session is not None and parameter.name is not None
    setattr(session, parameter.name, value)


def _device_model(_context: click.Context, _parameter: click.Parameter, name: str) -> str:
    try:
        return DeviceModel(name).name
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _budget(_context: click.Context, _parameter: click.Parameter, text: str) -> Budget:
    try:
        return Budget.parse(text)
    except BudgetError as error:
        raise click.BadParameter(str(error)) from error


def _gathered(command: _Command) -> _Command:
    @wraps(command)
    def with_how(*args: object, budget: Budget, bound: int | None, samples: int | None, **options: Any) -> Any:
        mine = {field.name: options.pop(field.name) for field in fields(Exploration) if field.name in options}
        how = Exploration(**mine, budget=replace(budget, bound=bound, samples=samples))
        return command(*args, how=how, **options)

    return with_how


def _recovery_option(command: _Command) -> _Command:
    descriptions = "; ".join(f"{name}: {text}" for name, text in RECOVERIES.items())
    help_text = f"How each crash state is recovered. {descriptions} (docs/repair.md)."
    kinds = click.Choice(list(RECOVERIES))
    return click.option("--recovery", type=kinds, default="mount", show_default=True, help=help_text)(command)


def shard_option(help_text: str) -> Callable[[_Command], _Command]:
    """`--shard`, as the argument `shard`."""
    return click.option("--shard", callback=_shard, default="1/1", show_default=True, metavar="I/N", help=help_text)


def _shard(_context: click.Context, _parameter: click.Parameter, text: str) -> Shard:
    match = _SHARD.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{text!r} is no shard such as 1/4, which is the first of four")
    return int(match[1]), int(match[2])


def time_option(command: _Command, *, minimizes: bool = True) -> _Command:
    """`--time`, as the argument `seconds_max`. `minimizes` says whether the command also minimizes findings."""
    included = ", minimizing included" if minimizes else ""
    help_text = f"End within this time{included}: 90s, 10m, 1h. The same command then goes on."
    return click.option("--time", "seconds_max", callback=_seconds, metavar="TIME", help=help_text)(command)


def _seconds(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        budget = Budget.parse(text)
    except BudgetError:
        budget = Budget()
    if budget.recoveries is not None:
        raise click.BadParameter(f"{text!r} is no time such as 90s, 10m or 1h")
    return budget.seconds


def exploration_options(command: _Command) -> _Command:
    """The options that make up an `Exploration`, as the argument `how`; also `--guests`."""
    options = (
        click.option(
            "--held",
            type=click.IntRange(0),
            metavar="SEED",
            help="Complete writes only when the kernel stands still, in an order drawn from SEED.",
        ),
        click.option(
            "--recorder",
            type=click.Choice(RECORDERS),
            default=AUTO,
            show_default=True,
            help="What sees the requests: auto is dm-log-writes if the kernel has it (docs/recorders.md).",
        ),
        click.option(
            "--depth",
            type=click.IntRange(1, 2),
            metavar="N",
            default=1,
            show_default=True,
            help="2 also explores every crash within the recovery of each crash state (docs/crash-in-recovery.md).",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**64 - 1),
            metavar="SEED",
            default=1,
            show_default=True,
            help="The same seed draws the same random states.",
        ),
        click.option(
            "--samples",
            type=click.IntRange(0, 1_000_000),
            metavar="N",
            help="Explore only N random states of each crash interval; with --bound, N besides those within it.",
        ),
        click.option(
            "--bound",
            type=click.IntRange(0, 1_000_000),
            metavar="K",
            help="Explore only states within K deviations of everything kept or of nothing kept.",
        ),
        click.option(
            "--budget",
            callback=_budget,
            metavar="TIME|RECOVERIES",
            default="20000,10m",
            show_default=True,
            help="The most for a workload on a target: 30s, 10m, 1h, 5000 or 5000,10m. What is left out is UNDECIDED.",
        ),
        click.option(
            "--guests", metavar="N", type=click.IntRange(1, 256), help="Guests at a time; by default one per CPU."
        ),
        click.option(
            "--model",
            metavar="MODEL",
            callback=_device_model,
            default="cache",
            show_default=True,
            help=f"Device model: {', '.join(device_models())}; cache:16384 is cache with an atomic unit of 16 KiB.",
        ),
    )
    command = _recovery_option(_gathered(command))
    for option in options:
        command = option(command)
    return command
