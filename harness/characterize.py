"""The property table: every property's workload family on every target."""

from collections.abc import Sequence
from dataclasses import dataclass

from postcrash.harness.budget import Budget
from postcrash.harness.campaign import Crew, Progress, run_campaign
from postcrash.harness.examination import Examination
from postcrash.harness.examine import Plan
from postcrash.harness.judges import PropertyJudge
from postcrash.model import Verdict, Workload, worst
from postcrash.properties import TORN_BLOCKS, Property
from postcrash.properties.selection import BLOCK_BYTES
from postcrash.reports.records import Cell, Finding, Simplicity, simplicity
from postcrash.reports.store import Store
from postcrash.targets import BaseImage, Target


@dataclass(frozen=True, slots=True)
class Question:
    """What a table is about."""

    targets: Sequence[tuple[Target, BaseImage]]
    properties: Sequence[Property]
    kernel: str
    model: str
    budget: Budget
    seed: int = 1
    depth: int = 1
    held: int | None = None


def characterize(
    question: Question, crew: Crew, store: Store, progress: Progress, *, fresh: bool = False
) -> tuple[list[Cell], list[Finding]]:
    """The cells, target by target, and the findings behind those that are VIOLATED."""
    plans = make_plans(question)
    examined = list(zip(plans, run_campaign(plans, crew, store, progress, fresh=fresh), strict=True))
    cells, findings = [], []
    for target, _ in question.targets:
        for prop in question.properties:
            mine = [
                (plan, result) for plan, result in examined if plan.target == target and prop.name in result.rulings
            ]
            cell, witness = _cell(prop.name, mine, question, target)
            cells.append(cell)
            findings.extend([witness] if witness else [])
    store.put_cells(cells)
    return cells, findings


def make_plans(question: Question) -> list[Plan]:
    """One plan for each target and workload, judged by every property that has the workload in its family."""
    families: dict[Workload, list[PropertyJudge]] = {}
    for prop in question.properties:
        for workload in prop.workloads():
            families.setdefault(workload.with_tail(), []).append(PropertyJudge(prop))
    return [
        Plan(
            target=target,
            base=base,
            kernel=question.kernel,
            model=question.model,
            workload=workload,
            judges=tuple(judges),
            recoveries=(target.recover_wire(walk=True, fsck=False),),
            budget=question.budget,
            seed=question.seed,
            depth=question.depth,
            held=question.held,
            may_be_refused=True,
        )
        for target, base in question.targets
        for workload, judges in families.items()
    ]


def _cell(
    name: str, examined: list[tuple[Plan, Examination]], question: Question, target: Target
) -> tuple[Cell, Finding | None]:
    results = [result for _, result in examined]
    rulings = [result.rulings[name] for result in results]
    verdict = worst(ruling.verdict for ruling in rulings)
    relevant = sum(ruling.relevant for ruling in rulings)
    reason = next((ruling.reason for ruling in rulings if ruling.verdict is verdict and ruling.reason), "")
    if verdict is Verdict.HOLDS and not relevant:
        verdict, reason = Verdict.UNDECIDED, "no crash state put the question"
    elif verdict is Verdict.HOLDS and name in TORN_BLOCKS and not _tears_blocks(question.model):
        verdict, reason = Verdict.UNDECIDED, f"the device model {question.model} never tears a block: see --model torn"
    witnesses = [finding for result in results for finding in result.findings if finding.checker == name]
    witness = min(witnesses, key=_order, default=None)
    cell = Cell(
        target=target.name,
        property=name,
        verdict=verdict,
        states=sum(result.covered for result in results),
        recoveries=sum(result.recoveries for result in results),
        outcomes=sum(result.outcomes for result in results),
        workloads=len(results),
        relevant=relevant,
        witness=witness.id if witness else None,
        reason=witness.message if witness else reason,
        kernel=question.kernel,
        model=question.model,
    )
    return cell, witness


def _tears_blocks(model: str) -> bool:
    """Whether the device's atomic unit is smaller than a block; `model` is the shortest name of a device model."""
    name, _, unit_bytes = model.partition(":")
    return name == "torn" or (unit_bytes != "" and int(unit_bytes) < BLOCK_BYTES)


def _order(finding: Finding) -> tuple[Simplicity, int, str]:
    """The simplest crash state, then fewest operations."""
    return simplicity(finding), finding.workload_text.count("\n"), finding.workload_name
