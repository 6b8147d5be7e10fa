"""Formats the needs of an application for the terminal and as JSON."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from postcrash.apps.needs import Advice, BadFolder, EnoughSet, Needs, in_order
from postcrash.apps.needs.advice import FlushAdvice, MissingFlush
from postcrash.apps.protocol import Protocol, Step
from postcrash.apps.protocol.trace import BlockSlot, Change, CutSlot, NameSlot
from postcrash.harness.auditing.needs import ApplicationNeeds

_FAILURES_SHOWN = 8
_LOST_SHOWN = 4


def print_needs(console: Console, analysis: ApplicationNeeds, needs: Needs) -> None:
    """Print the needs of an application."""
    protocol, shown = analysis.protocol, worth_showing(needs.failures)
    for failure in shown[:_FAILURES_SHOWN]:
        console.rule(f"[red]{escape(failure.message)}[/]", align="left")
        for line in failure_lines(protocol, failure):
            console.print(line, highlight=False, markup=False)
    if len(shown) > _FAILURES_SHOWN:
        console.print(f"… and {len(shown) - _FAILURES_SHOWN} more", highlight=False)
    console.rule()
    console.print(f"[bold]{escape(analysis.application.name)}[/] needs", highlight=False)
    for number, each in enumerate(needs.sets):
        names = ", ".join(in_order(each.names)) or "nothing beyond what documents promise of fsync and its relatives"
        how = f"all {each.folders} folders" if each.is_complete else f"the first {each.folders} folders"
        console.print(f"  {'or ' if number else ''}{names}  ({how} are fine)", highlight=False, markup=False)
    if needs.hopeless:
        console.print("  what no property gives: see the first failure", highlight=False)
    if analysis.unknown:
        console.print(f"  the check could not tell of some folders: {analysis.unknown}", highlight=False, markup=False)
    whole = "all others have stronger or equal properties" if needs.is_complete else "there may be other sets"
    console.print(
        f"{len(protocol.steps)} calls, {len(protocol.changes)} changes, {analysis.folders} folders judged; {whole}",
        highlight=False,
    )


def failure_lines(protocol: Protocol, failure: BadFolder) -> list[str]:
    """A failure in words: what is lost, what is there, and which properties would have prevented it."""
    lost = failure.state.lost
    lines = [f"  lost: {change_text(protocol, change)}" for change in lost[:_LOST_SHOWN]]
    lines += [f"  … and {len(lost) - _LOST_SHOWN} more"] if len(lost) > _LOST_SHOWN else []
    there = there_in(protocol, failure)
    lines += [f"  there: {change_text(protocol, there)}"] if there else []
    outputs = ", ".join(failure.moment.outputs[-3:])
    lines += [f"  it had said: {outputs}"] if outputs else []
    names = ", ".join(in_order(failure.broken)) or "no property"
    return [*lines, f"  prevented by: {names}"]


def there_in(protocol: Protocol, failure: BadFolder) -> Change | None:
    """The last change that is there, if something that was made before it is lost."""
    lost = failure.state.lost
    there = next((each for each in reversed(protocol.changes[: failure.moment.end]) if each not in lost), None)
    return there if there is not None and lost and there.index > lost[0].index else None


def change_text(protocol: Protocol, change: Change) -> str:
    """A change in words, with its call."""
    step = protocol.steps[change.step]
    if isinstance(change.slot, NameSlot):
        what = f"the name {change.slot.name}" if change.value else f"that the name {change.slot.name} is gone"
    elif isinstance(change.slot, CutSlot):
        what = f"that it was cut off to {change.value!r} bytes"
    elif isinstance(change.slot, BlockSlot):
        what = f"block {change.slot.block}"
    else:
        what = f"the size {change.value!r}"
    return f"{what} ({step_text(step)})"


def worth_showing(failures: Sequence[BadFolder]) -> list[BadFolder]:
    """Failures, without those that lost all that another one with the same message lost."""
    found: list[BadFolder] = []
    for failure in sorted(failures, key=lambda each: len(each.state.lost)):
        lost = set(failure.state.lost)
        if not any(each.message == failure.message and set(each.state.lost) <= lost for each in found):
            found.append(failure)
    return found


def to_json(analysis: ApplicationNeeds, needs: Needs) -> dict[str, object]:
    """The needs of an application as JSON."""
    protocol = analysis.protocol
    return {
        "application": analysis.application.name,
        "calls": len(protocol.steps),
        "changes": len(protocol.changes),
        "folders": analysis.folders,
        "sets": [
            {"properties": in_order(each.names), "folders": each.folders, "complete": each.is_complete}
            for each in needs.sets
        ],
        "complete": needs.is_complete,
        "unknown": analysis.unknown,
        "failures": [
            {
                "message": failure.message,
                "said": list(failure.moment.outputs),
                "lost": [change_text(protocol, change) for change in failure.state.lost],
                "there": change_text(protocol, there) if (there := there_in(protocol, failure)) else None,
                "prevented_by": in_order(failure.broken),
            }
            for failure in worth_showing(needs.failures)
        ],
    }


def print_advice(console: Console, protocol: Protocol, advice: Advice) -> None:
    """Print advice."""
    given = f"file systems with {', '.join(in_order(advice.names))}" if advice.names else "any file system"
    console.print(f"on {given}:", highlight=False)
    for each in advice.missing:
        console.print(f"  missing: {missing_text(each)}", highlight=False, markup=False)
        console.print(f"    without it: {each.failure.message}", highlight=False, markup=False)
    if isinstance(advice.result, BadFolder):
        why = f"still fails with {len(advice.missing)} more flushes" if advice.is_cut else "no flush mends"
        console.print(f"  {why}: {advice.result.message}", highlight=False, markup=False)
        for line in failure_lines(protocol, advice.result):
            console.print(f"  {line}", highlight=False, markup=False)
        return
    if advice.missing:
        console.print(f"  with {'it' if len(advice.missing) == 1 else 'them'}, {fine(advice.result)}", highlight=False)
        return
    for flush in advice.flushes:
        console.print(f"  {flush_text(flush)}", highlight=False, markup=False)
    known = [flush for flush in advice.flushes if flush.is_known]
    unknown = len(advice.flushes) - len(known)
    more = f"; of {unknown} more this is not known" if unknown else ""
    console.print(f"the check notices the loss of {advice.noticed} of {len(known)} flushes{more}", highlight=False)


def flush_text(flush: FlushAdvice) -> str:
    """In words: whether a flush is needed, and what happens without it."""
    if isinstance(flush.without, EnoughSet):
        what = "can go" if flush.can_go else "not known"
        return f"{what}: {step_text(flush.step)}; without it and others that can go, {fine(flush.without)}"
    what = "can go in the place of another one" if flush.is_instead else "needed"
    return f"{what}: {step_text(flush.step)}; without it: {flush.without.message}"


def fine(found: EnoughSet) -> str:
    """A text that says that no folder failed."""
    return f"{'all' if found.is_complete else 'the first'} {found.folders} folders are fine"


def step_text(step: Step) -> str:
    """A step in words, with its place in the source where that is known."""
    places = f", {' from '.join(step.places)}" if step.places else ""
    return f"{step.call}{f' of {step.about}' if step.about else ''}, call {step.number}{places}"


def missing_text(flush: MissingFlush) -> str:
    """A missing flush in words."""
    what = "the folder in which it is" if flush.is_folder else "the file"
    return f"fsync of {what}, after {step_text(flush.after)}"


def advice_to_json(advice: Advice) -> dict[str, object]:
    """Advice as JSON."""
    return {
        "properties": in_order(advice.names),
        "flushes": [
            {
                "call": flush.step.number,
                "name": flush.step.call,
                "about": flush.step.about,
                "needed": isinstance(flush.without, BadFolder) if flush.is_known else None,
                "instead": flush.is_instead,
                "without": flush.without.message if isinstance(flush.without, BadFolder) else fine(flush.without),
            }
            for flush in advice.flushes
        ],
        "missing": [{"flush": missing_text(each), "without": each.failure.message} for each in advice.missing],
        "is_cut": advice.is_cut,
        "result": advice.result.message if isinstance(advice.result, BadFolder) else fine(advice.result),
    }
