"""The property table: every property's workload family on every target."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from postcrash._core import DeviceModel
from postcrash.harness.examination.campaign import Crew, Progress, run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import why_never
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import Examination
from postcrash.model import Verdict, Workload, worst
from postcrash.properties import Property
from postcrash.properties.adversary import BY_WORKLOAD, CHOICES, Adversary, adversary_in, adversary_of_run, within
from postcrash.properties.promises import statements_of
from postcrash.store.records import Cell, Finding, Simplicity, simplicity
from postcrash.store.store import Store
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class Question:
    """The properties that a table asks about.

    adversary  the strongest one in the workloads and in the disks on which they are run
    outlines   one kernel's plan for each target, without workload and judges
    label      the kernel's name in the table, which no other kernel of the table has; empty: the name in the plans
    """

    properties: Sequence[Property]
    how: Exploration
    adversary: Adversary = CHOICES[-1]
    outlines: Sequence[Plan] = ()
    label: str = ""

    @property
    def disks(self) -> tuple[int | None, ...]:
        """The disks on which each workload is run, as `Exploration.held` says them."""
        return self.how.disks(one=self.adversary < Adversary.HELD)


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """The cells, target by target, the findings behind VIOLATED cells, and the counts of all cells together."""

    cells: Sequence[Cell]
    findings: Sequence[Finding]
    workloads: int
    states: int
    recoveries: int


def characterize(
    question: Question, crew: Crew, store: Store, progress: Progress, *, fresh: bool = False
) -> TableAnswer:
    """Fill the cells of one kernel. Violated cells are run in weaker ways, too, to find the weakest adversary."""
    found = _answer(question, crew, store, progress, fresh=fresh)
    weaker = [_answer(each, crew, store, progress, fresh=fresh) for each in weaker_questions(question)]
    known = {(cell.target, cell.property): cell for each in reversed(weaker) for cell in each.cells if _is_broken(cell)}
    cells = [_with_weakest(cell, known.get((cell.target, cell.property))) for cell in found.cells]
    store.put_cells(cells)
    return replace(
        found,
        cells=cells,
        workloads=found.workloads + sum(each.workloads for each in weaker),
        recoveries=found.recoveries + sum(each.recoveries for each in weaker),
    )


def weaker_questions(question: Question) -> list[Question]:
    """The same question for all ways of running (disk, model, depth) that take less, the weakest first."""
    how = question.how
    model = DeviceModel(how.model)
    whole = model.untorn if model.tears_blocks else how.model
    ways = {
        replace(how, held=held, model=model, depth=depth)
        for held, model, depth in product((None, how.held), (whole, how.model), (1, how.depth))
    }
    ordered = sorted(ways - {how}, key=lambda way: adversary_of_run(way.model, way.held, way.depth))
    return [replace(question, how=way, adversary=min(question.adversary, _strongest(how, way.held))) for way in ordered]


def _strongest(how: Exploration, held: int | None) -> Adversary:
    """The strongest adversary on the disk `held`, if not both disks are asked for."""
    return BY_WORKLOAD[-1] if how.held is not None and held is None else CHOICES[-1]


def _is_broken(cell: Cell) -> bool:
    return cell.verdict is Verdict.VIOLATED


def _with_weakest(cell: Cell, weaker: Cell | None) -> Cell:
    """The cell with the weaker adversary, if that one breaks the property too."""
    if weaker is None or not _is_broken(cell):
        return cell
    return replace(cell, adversary=min(cell.adversary, weaker.adversary))


def _answer(question: Question, crew: Crew, store: Store, progress: Progress, *, fresh: bool) -> TableAnswer:
    plans = make_plans(question)
    examined = list(zip(plans, run_campaign(plans, crew, store, progress, fresh=fresh), strict=True))
    cells, findings = [], []
    for outline in question.outlines:
        for prop in question.properties:
            mine = [
                (plan, result)
                for plan, result in examined
                if plan.target == outline.target and prop.name in result.rulings
            ]
            cell, witness = _cell(prop, mine, question, outline)
            cells.append(cell)
            findings.extend([witness] if witness else [])
    results = [result for _, result in examined]
    return TableAnswer(
        cells,
        findings,
        workloads=len(results),
        states=sum(result.covered for result in results),
        recoveries=sum(result.recoveries for result in results),
    )


def absent_cells(targets: Mapping[Target, str], properties: Sequence[Property], kernel: str, model: str) -> list[Cell]:
    """The cells of targets that `kernel` cannot run, each with the reason."""
    return [
        Cell.without_runs(
            target.name,
            prop.name,
            reason=why,
            kernel=kernel,
            model=model,
            statements=statements_of(target, model, prop.name),
        )
        for target, why in targets.items()
        for prop in properties
    ]


def make_plans(question: Question) -> list[Plan]:
    """One plan for each target, workload and disk. Every property with the workload in its family judges it."""
    families: dict[Workload, list[Property]] = {}
    for prop in question.properties:
        for workload in _workloads(prop, question.adversary):
            families.setdefault(workload.with_tail(checkpoint=False), []).append(prop)
    return [
        replace(outline, workload=workload, judges=tuple(judges), how=replace(question.how, held=held))
        for outline in question.outlines
        for workload, judges in families.items()
        for held in question.disks
    ]


def _workloads(prop: Property, strongest: Adversary) -> list[Workload]:
    """The workloads of the property's family, each cut off before an adversary that is stronger than `strongest`."""
    family = prop.workloads()
    shorter = (within(workload, family, strongest) for workload in family)
    return list(dict.fromkeys(workload for workload in shorter if workload is not None))


def _cell(
    prop: Property, examined: list[tuple[Plan, Examination]], question: Question, outline: Plan
) -> tuple[Cell, Finding | None]:
    name, target, kernel = prop.name, outline.target, question.label or outline.kernel
    ran, model = [(plan, result) for plan, result in examined if not result.unsupported], question.how.model
    lacking = sorted({result.unsupported for _, result in examined} - {""})
    if not ran:
        absent = absent_cells({target: _not_supported(lacking)}, [prop], kernel, model)
        return absent[0], None
    results = [result for _, result in ran]
    rulings = [result.rulings[name] for result in results]
    verdict = worst(ruling.verdict for ruling in rulings)
    tested = [plan for plan, result in ran if result.rulings[name].relevant]
    relevant, disks_tested = len({plan.workload for plan in tested}), {plan.how.held for plan in tested}
    reason = next((ruling.reason for ruling in rulings if ruling.verdict is verdict and ruling.reason), "")
    if verdict is Verdict.HOLDS and not relevant:
        verdict, reason = Verdict.UNDECIDED, "no crash state put the question"
    elif verdict is Verdict.HOLDS and disks_tested != {plan.how.held for plan, _ in examined}:
        verdict, reason = Verdict.UNDECIDED, "no crash state of one of the disks put the question"
    elif verdict is Verdict.HOLDS and (never := why_never(name, model)):
        verdict, reason = Verdict.UNDECIDED, never
    witnesses = [
        (_adversary(prop, plan, finding), finding)
        for plan, result in examined
        for finding in result.findings
        if finding.checker == name
    ]
    adversary, witness = min(witnesses, key=_order, default=(_tried(question), None))
    cell = Cell(
        target=target.name,
        property=name,
        verdict=verdict,
        states=sum(result.covered for result in results),
        recoveries=sum(result.recoveries for result in results),
        outcomes=sum(result.outcomes for result in results),
        workloads=len({plan.workload for plan, _ in ran}),
        relevant=relevant,
        witness=witness.id if witness else None,
        reason="; ".join(filter(None, (witness.message if witness else reason, _not_supported(lacking)))),
        kernel=kernel,
        model=model,
        statements=statements_of(target, model, name),
        adversary=adversary,
        guest=outline.guest,
    )
    return cell, witness


def _tried(question: Question) -> Adversary:
    """The strongest adversary that was tried. If workloads were left out, it does not matter what else a run adds."""
    if question.adversary < BY_WORKLOAD[-1]:
        return question.adversary
    of_runs = (adversary_of_run(question.how.model, held, question.how.depth) for held in question.disks)
    return max(BY_WORKLOAD[-1], *of_runs)


def _adversary(prop: Property, plan: Plan, finding: Finding) -> Adversary:
    """The adversary in what had started when the power failed, and in how the workload was run."""
    family = [workload.with_tail(checkpoint=False) for workload in prop.workloads()]
    of_run = adversary_of_run(plan.how.model, plan.how.held, plan.how.depth)
    return max(adversary_in(plan.workload, family, finding.started), of_run)


def _not_supported(operations: list[str]) -> str:
    return f"not supported: {', '.join(operations)}" if operations else ""


def _order(witness: tuple[Adversary, Finding]) -> tuple[Adversary, Simplicity, int, str]:
    """The order of witnesses: the weakest adversary first, then the simplest crash state and the fewest operations."""
    adversary, finding = witness
    return adversary, simplicity(finding), finding.workload_text.count("\n"), finding.workload_name
