"""Needs times gives: whether the properties that a target has are enough for an application, and what it does there."""

from postcrash.apps.needs import ASSUMPTIONS, EnoughSet, SearchLimits, in_order, is_enough
from postcrash.apps.needs.assumptions import implications_of, links
from postcrash.apps.protocol import Protocol
from postcrash.harness.auditing.audit import Audit
from postcrash.harness.auditing.needs import ApplicationNeeds
from postcrash.harness.examination.campaign import Progress
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.harness.tables.characterize import Question
from postcrash.harness.tables.matrix import questions_by_kernel, run_column
from postcrash.model import Verdict
from postcrash.properties import property_named
from postcrash.store.table_rows import NeedsCell
from postcrash.targets import Target


def promised_to(protocol: Protocol) -> tuple[str, ...]:
    """The properties that the program relies on and the model takes for granted, because documents promise them."""
    directories = {inode for inode, what in protocol.inodes.items() if what.type == "dir"} | {protocol.root}
    makes_holes = any(step.call == "fallocate" for step in protocol.steps)
    of_files = ("data", "size", *["hole"] * makes_holes)
    of_names = ("name", "rename", *["link"] * any(map(links, protocol.steps)))
    names: dict[str, None] = {}
    for step in protocol.steps:
        if step.everything:
            call = "syncfs" if step.call == "syncfs" else "sync"
            names |= dict.fromkeys(f"D-{call}-{what}" for what in (*of_files, *of_names))
        elif any(each.inode in directories for each in step.durable):
            of_entries = ("D-dir-name", "D-dir-rename", "D-dir-link") if step.covers_names else ()
            names |= dict.fromkeys(of_entries)
        elif step.call in ("fsync", "fdatasync"):
            names |= dict.fromkeys(f"D-{step.call}-{what}" for what in of_files)
        elif step.durable:
            names["D-msync-data" if step.call == "msync" else "D-odsync-data"] = None
    return tuple(names)


def question_of(protocol: Protocol, how: Exploration) -> Question:
    """The properties to measure on a target: those about the application's calls, and those that are promised."""
    implications = implications_of(protocol)
    names = [*promised_to(protocol), *(each.name for each in ASSUMPTIONS if implications[each.name])]
    return Question(tuple(map(property_named, dict.fromkeys(names))), how)


def plans_of(session: Session, target: Target, question: Question) -> int:
    """How many workloads tell what a target gives."""
    return questions_by_kernel(session, session.kernel_name, [target], question).plans


def gives(
    session: Session,
    target: Target,
    question: Question,
    guests: int | None,
    progress: Progress,
    *,
    fresh: bool = False,
) -> frozenset[str]:
    """The properties that hold on both disks on which a target is audited. If `fresh`, they are all measured now."""
    needs = questions_by_kernel(session, session.kernel_name, [target], question)
    column, _ = run_column(session, needs, question, guests, progress, fresh=fresh)
    return frozenset(cell.property for cell in column.cells if cell.verdict is Verdict.HOLDS)


def compare(needs: ApplicationNeeds, given: frozenset[str], real: Audit, limits: SearchLimits) -> NeedsCell:
    """The cell of an application and a target."""
    modelled, because, lacking, folders = _modelled(needs, given, limits)
    cell = real.cell
    if real.verdict is Verdict.VIOLATED and modelled is not Verdict.VIOLATED:
        because = f"{cell.message} ({because or 'its properties do not show it'})"
    elif real.verdict is not Verdict.HOLDS:
        because = cell.message
    return NeedsCell(
        application=needs.application.name,
        target=real.target.name,
        real=real.verdict,
        modelled=modelled,
        because=because,
        lacking=lacking,
        states=cell.states,
        recoveries=cell.recoveries,
        folders=folders,
        finding=cell.finding,
    )


def lacking_of(protocol: Protocol, given: frozenset[str]) -> str:
    """Which properties that the model takes for granted a target was not shown to have. Empty if it has all."""
    broken = [name for name in promised_to(protocol) if name not in given]
    return f"it was not shown to have {', '.join(broken)}, which documents promise" if broken else ""


def _modelled(
    needs: ApplicationNeeds, given: frozenset[str], limits: SearchLimits
) -> tuple[Verdict, str, tuple[str, ...], int]:
    """The verdict under the properties, what goes wrong, what would prevent it, and the number of folders judged."""
    if lacking := lacking_of(needs.protocol, given):
        return Verdict.UNDECIDED, lacking, (), 0
    before = needs.folders
    known = given & {each.name for each in ASSUMPTIONS}
    found = is_enough(needs.protocol, needs.judge, limits, known)
    if isinstance(found, EnoughSet):
        return (Verdict.HOLDS if found.is_complete else Verdict.UNDECIDED), "", (), found.folders
    return Verdict.VIOLATED, found.message, tuple(in_order(found.broken)), needs.folders - before
