"""`postcrash needs`: the smallest sets of properties that an application needs of a file system."""

from collections.abc import Sequence

import click
from rich.console import Console
from rich.markup import escape

from postcrash.apps.protocol import Budget, Failure, Needs, Protocol, in_order
from postcrash.apps.protocol.trace import BlockSlot, Change, NameSlot
from postcrash.harness.auditing.needs import ApplicationNeeds
from postcrash.harness.commands.applications import application_options, chosen_applications
from postcrash.harness.commands.options import json_option
from postcrash.harness.output import write_json
from postcrash.model import ExitCode

_FAILURES_SHOWN = 8
_LOST_SHOWN = 4


@click.command("needs")
@application_options
@click.option(
    "--folders", type=click.IntRange(1, 10**7), default=2000, show_default=True, help="Judge at most so many for a set."
)
@click.option("--sets", type=click.IntRange(1, 100), default=6, show_default=True, help="The most that are looked for.")
@json_option
def needs_command(
    name: str | None,
    run: str | None,
    check: str | None,
    set_up: str,
    chosen: Sequence[str],
    every: bool,
    folders: int,
    sets: int,
    json_file: str | None,
) -> int:
    """Find the weakest properties of a file system under which an application keeps its promises.

    NAME is an application of the catalogue, or a TOML file that describes one (docs/audit.md). Or give --run and
    --check, as for `audit`. The application runs once, on this machine, and each change that its system calls make is
    noted. A crash may lose every change that nothing protects. What fsync and its relatives promise protects changes,
    and so do the properties that a file system has. Each folder that can be left is given to the check (docs/needs.md).

    \b
    Examples:
      postcrash needs leveldb-1.23 --set rotation=yes
      postcrash needs --run 'echo new >f.new; mv f.new f' --set-up 'echo old >f' --check 'grep -q . f'
    """
    console = Console()
    answers = []
    for application in chosen_applications(name, run, check, set_up, chosen, every=every):
        with ApplicationNeeds(application) as asked, Console(stderr=True).status("running it") as status:
            needs = asked.needs(Budget(folders, sets), lambda text: status.update(f"judging folders {text}"))
        answers.append(to_json(asked, needs))
        if json_file != "-":
            status.stop()
            print_needs(console, asked, needs)
    write_json(json_file, {"needs": answers})
    return ExitCode.HOLDS


def print_needs(console: Console, asked: ApplicationNeeds, needs: Needs) -> None:
    """What was found out, for people."""
    protocol, shown = asked.protocol, _worth_showing(needs.failures)
    for failure in shown[:_FAILURES_SHOWN]:
        console.rule(f"[red]{escape(failure.message)}[/]", align="left")
        for line in told(protocol, failure):
            console.print(line, highlight=False, markup=False)
    if len(shown) > _FAILURES_SHOWN:
        console.print(f"… and {len(shown) - _FAILURES_SHOWN} more", highlight=False)
    console.rule()
    console.print(f"[bold]{escape(asked.application.name)}[/] needs", highlight=False)
    for number, each in enumerate(needs.sets):
        names = ", ".join(in_order(each.names)) or "nothing beyond what documents promise of fsync and its relatives"
        how = f"all {each.folders} folders" if each.is_complete else f"the first {each.folders} folders"
        console.print(f"  {'or ' if number else ''}{names}  ({how} are fine)", highlight=False, markup=False)
    if needs.hopeless:
        console.print("  what no property gives: see the first failure", highlight=False)
    if asked.unknown:
        console.print(f"  the check could not tell of some folders: {asked.unknown}", highlight=False, markup=False)
    whole = "there are no other sets" if needs.is_complete else "there may be other sets"
    console.print(
        f"{len(protocol.steps)} calls, {len(protocol.changes)} changes, {asked.folders} folders judged; {whole}",
        highlight=False,
    )


def told(protocol: Protocol, failure: Failure) -> list[str]:
    """A failure in words: what is lost, what is there, and which properties would have prevented it."""
    lost = failure.state.lost
    lines = [f"  lost: {change_text(protocol, change)}" for change in lost[:_LOST_SHOWN]]
    lines += [f"  … and {len(lost) - _LOST_SHOWN} more"] if len(lost) > _LOST_SHOWN else []
    later = next((each for each in reversed(protocol.changes[: failure.moment.end]) if each not in lost), None)
    if later is not None and lost and later.index > lost[0].index:
        lines.append(f"  there: {change_text(protocol, later)}")
    said = ", ".join(failure.moment.said[-3:])
    lines += [f"  it had said: {said}"] if said else []
    names = ", ".join(in_order(failure.broken)) or "no property"
    return [*lines, f"  prevented by: {names}"]


def change_text(protocol: Protocol, change: Change) -> str:
    """A change in words, with its call."""
    step = protocol.steps[change.step]
    if isinstance(change.slot, NameSlot):
        what = f"the name {change.slot.name}" if change.value else f"that the name {change.slot.name} is gone"
    elif isinstance(change.slot, BlockSlot):
        what = f"block {change.slot.block}"
    else:
        what = f"the size {change.value!r}"
    return f"{what} ({step.call} of {step.about}, call {step.number})"


def _worth_showing(failures: Sequence[Failure]) -> list[Failure]:
    """Failures of which no other one with the same message lost only a part."""
    found: list[Failure] = []
    for failure in sorted(failures, key=lambda each: len(each.state.lost)):
        lost = set(failure.state.lost)
        if not any(each.message == failure.message and set(each.state.lost) <= lost for each in found):
            found.append(failure)
    return found


def to_json(asked: ApplicationNeeds, needs: Needs) -> dict[str, object]:
    """What was found out, as JSON."""
    protocol = asked.protocol
    return {
        "application": asked.application.name,
        **{"calls": len(protocol.steps), "changes": len(protocol.changes), "folders": asked.folders},
        "sets": [
            {"properties": in_order(each.names), "folders": each.folders, "complete": each.is_complete}
            for each in needs.sets
        ],
        "complete": needs.is_complete,
        "unknown": asked.unknown,
        "failures": [
            {
                "message": failure.message,
                "said": list(failure.moment.said),
                "lost": [change_text(protocol, change) for change in failure.state.lost],
                "prevented_by": in_order(failure.broken),
            }
            for failure in _worth_showing(needs.failures)
        ],
    }
