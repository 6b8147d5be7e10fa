"""Prints an explanation on the terminal."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from postcrash.model.text import visible
from postcrash.store.explanation_data import Epoch, ExplainedWrite, Explanation, PathComparison

STATUS_STYLES = {
    "set-up": "dim",
    "returned": "green",
    "in progress": "yellow",
    "not started": "dim",
    "stable": "dim",
    "kept": "green",
    "lost": "bold red",
}
ALL_THERE = "All that had been sent to the disk is there."
PASSES_WITH_IT = "with this write kept, it passes"
Places = Sequence[tuple[int, int]]
"""Sector and number of sectors of each."""
UNSENT = "never sent to the disk, its bytes were still in the kernel's memory"


def render_text(explanation: Explanation, console: Console, needed: Places | None = None) -> None:
    """Print `explanation`: the workload, the requests flush by flush, and what was found next to what was allowed.

    `needed` are the places of lost writes that matter, as `Finding.needed`.
    """
    _print_operations(explanation, console)
    _print_calls(explanation, console)
    _print_epochs(explanation, console)
    _print_lost(explanation, console, needed or ())
    _print_result(explanation, console)
    for evidence in explanation.evidence:
        _print_title(evidence.title, console)
        console.print(Text(visible(evidence.text)), soft_wrap=True)


def place(write: ExplainedWrite) -> str:
    """The place, for example `sectors 2048 to 2056` or `disk 1, sectors 8 to 16`. The last sector is not included."""
    first = write.sector - write.begins
    disk = "" if write.disk is None else f"disk {write.disk}, "
    return f"{disk}sectors {first} to {first + write.sectors}"


def when(write: ExplainedWrite) -> str:
    """Says during which operation the write was submitted."""
    return f"operation {write.during}" if write.during else "between operations"


def names_note(explanation: Explanation) -> str:
    """Says in a sentence which tool named the writes."""
    if explanation.unnamed:
        return f"Writes are named by their bytes and magic numbers alone: {explanation.unnamed}"
    return f"Structures and files are as told by {explanation.named_by}, the rest by its bytes and magic numbers."


def _print_title(title: str, console: Console) -> None:
    console.print()
    console.print(Text(visible(title), style="bold"))


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _print_operations(explanation: Explanation, console: Console) -> None:
    _print_title("Workload, and how far it was at the crash", console)
    table = _table("", "operation", "status")
    for operation in explanation.operations:
        style = STATUS_STYLES[operation.status]
        cells = (str(operation.number), visible(operation.text), operation.status)
        table.add_row(*(Text(cell, style=style) for cell in cells))
    console.print(table)


def _print_calls(explanation: Explanation, console: Console) -> None:
    if not explanation.calls:
        return
    _print_title("The last system calls on the target", console)
    table = _table("", "thread", "call", "result")
    for call in explanation.calls:
        style = STATUS_STYLES[call.status]
        thread = f"{call.thread} ({call.program})"
        cells = (str(call.number), thread, call.text, call.result or call.status)
        table.add_row(*(Text(visible(cell), style=style) for cell in cells))
    console.print(table)


def _print_epochs(explanation: Explanation, console: Console) -> None:
    if not explanation.epochs_omitted and not any(epoch.writes or epoch.omitted for epoch in explanation.epochs):
        return  # nothing was sent to the disk; the lost writes say so
    _print_title("Requests up to the crash, flush by flush", console)
    if explanation.epochs_omitted:
        console.print(Text(f"({explanation.epochs_omitted} earlier epochs)", style="dim"))
    table = _table("status", "what", "where", "during")
    for epoch in explanation.epochs:
        for write in epoch.writes:
            table.add_row(*_write_cells(write))
        if epoch.omitted:
            table.add_row("", Text(f"{epoch.omitted} more writes", style="dim"))
        table.add_row("", Text(epoch_end(epoch), style="bold"), end_section=True)
    console.print(table)


def epoch_end(epoch: Epoch) -> str:
    """For example `epoch 3 ends: flush`."""
    return f"epoch {epoch.number} ends: {epoch.ended}"


def _write_cells(write: ExplainedWrite) -> Iterable[Text]:
    style = STATUS_STYLES[write.status]
    words = f"{visible(write.words)} {write.flags}".rstrip()
    yield Text(f"✗ {write.status}" if write.status == "lost" else f"  {write.status}", style=style)
    yield Text(words, style="red" if write.status == "lost" else "")
    yield Text(place(write))
    yield Text(when(write))


def is_needed(write: ExplainedWrite, needed: Places) -> bool:
    """Whether a piece of the write is among the places of lost writes that matter."""
    end = write.sector + write.sectors
    return any(sector < end and write.sector < sector + sectors for sector, sectors in needed)


def _print_lost(explanation: Explanation, console: Console, needed: Places) -> None:
    count = len(explanation.lost) + explanation.lost_omitted
    _print_title(f"Lost: {count} writes" if count != 1 else "Lost: 1 write", console)
    if not count:
        console.print(Text(ALL_THERE), soft_wrap=True)
    for write in explanation.lost:
        text = f"✗ {visible(write.words)}, {place(write)}, {when(write)}"
        text += f"; {PASSES_WITH_IT}" if is_needed(write, needed) else ""
        console.print(Text(text, style="red"), soft_wrap=True)
    if explanation.lost_omitted:
        console.print(Text(f"{explanation.lost_omitted} more", style="dim"))
    if explanation.named_by:
        console.print(Text(names_note(explanation), style="dim"), soft_wrap=True)
    for operation in explanation.unsent:
        console.print(Text(f"✗ {visible(operation)}: {UNSENT}", style="red"), soft_wrap=True)


def _print_result(explanation: Explanation, console: Console) -> None:
    if explanation.failure:
        _print_title("After recovery", console)
        console.print(Text(f"✗ {visible(explanation.failure)}", style="bold red"), soft_wrap=True)
    if explanation.comparison:
        _print_comparison(explanation, console)
    if explanation.reference:
        console.print(Text(visible(reference_note(explanation))), soft_wrap=True)
    for objection in explanation.objections:
        console.print(Text(f"✗ {visible(objection)}", style="red"), soft_wrap=True)


def reference_note(explanation: Explanation) -> str:
    """Says in a sentence what the reference of a comparison shows."""
    name = explanation.reference
    if explanation.reference_said:
        return f"{name} never shows this. The nearest that it shows at this instant: {explanation.reference_said}."
    if not has_reference_tree(explanation):
        return f"{name} never shows what was found. What it shows at this instant is not known."
    return f"{name} never shows what was found. Of all that it shows at this instant, what stands here is the nearest."


def has_reference_tree(explanation: Explanation) -> bool:
    """Whether the comparison has the reference's tree."""
    return any(comparison.reference for comparison in explanation.comparison)


def _print_comparison(explanation: Explanation, console: Console) -> None:
    reference = [f"on {explanation.reference}"] * has_reference_tree(explanation)
    beside = "".join(f"what was shown {heading} and " for heading in reference)
    _print_title(f"After recovery, beside {beside}what all operations that had returned leave", console)
    table = _table("", "path", "found", *reference, "without a crash")
    for comparison in explanation.comparison:
        table.add_row(*_comparison_cells(comparison, is_compared=bool(reference)))
    console.print(table)
    if explanation.comparison_omitted:
        console.print(Text(f"{explanation.comparison_omitted} more paths", style="dim"))


def _comparison_cells(comparison: PathComparison, *, is_compared: bool) -> Iterable[Text]:
    yield Text("✗" if comparison.differs else "", style="bold red")
    yield Text(visible(comparison.path))
    yield Text(visible("\n".join(comparison.found)), style="red" if comparison.differs else "")
    if is_compared:
        yield Text(visible("\n".join(comparison.reference)))
    in_progress = ["or, once the operation in progress is done:", *comparison.in_progress]
    yield Text(visible("\n".join([*comparison.allowed, *(in_progress if comparison.in_progress else [])])))
