"""One table for several kernels. A kernel's name can stand for several: each target runs on the first that has it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from postcrash.harness.examination.campaign import Progress
from postcrash.harness.examination.judges import tree_recoveries
from postcrash.harness.examination.planner import make_plan
from postcrash.harness.examination.session import Session
from postcrash.harness.guests.kernels.kernel import INSTALLED, Kernel, labels_of
from postcrash.harness.guests.kernels.suitability import why_unsuitable
from postcrash.harness.tables.characterize import Question, absent_cells, characterize, make_plans, weaker_questions
from postcrash.store.records import Finding
from postcrash.store.table_rows import Column
from postcrash.targets import Target


@dataclass(frozen=True)
class KernelQuestions:
    """The kernels that stand for `name`, each with the question that it answers. `preferred` is the best of them."""

    name: str | None
    targets: tuple[Target, ...]
    questions: dict[Kernel, Question]
    preferred: Kernel

    @property
    def plans(self) -> int:
        """The number of workloads that will be run, in all ways together."""
        each = [(question, 1 + len(weaker_questions(question))) for question in self.questions.values()]
        return sum(ways * len(make_plans(question)) for question, ways in each)


def questions_by_kernel(
    session: Session, name: str | None, targets: Sequence[Target], question: Question
) -> KernelQuestions:
    """Find a kernel for each target, and make the outlines of the question for it. Raises HarnessError."""
    kernels = kernels_for(session, name, targets)
    questions = {
        kernel: replace(
            question,
            outlines=[
                make_plan(session, target, (), tree_recoveries(target, question.how.recovery), question.how, kernel)
                for target in targets
                if kernels[target] == kernel
            ],
        )
        for kernel in dict.fromkeys(filter(None, kernels.values()))
    }
    for kernel, each in questions.items():
        for outline in each.outlines:
            session.require_programs(outline.target, kernel, outline.recoveries)
    return KernelQuestions(name, tuple(targets), questions, next(session.kernels_called(name)))


def labels_in(questions: Iterable[KernelQuestions]) -> dict[Kernel, str]:
    """The names of the kernels in a table."""
    return labels_of({kernel: each.name or INSTALLED for each in questions for kernel in each.questions})


def kernels_for(session: Session, name: str | None, targets: Sequence[Target]) -> dict[Target, Kernel | None]:
    """The kernel that `name` stands for, for each of `targets`. None if no such kernel can run the target."""
    return {target: session.kernel_for(name, target) for target in targets}


def run_column(
    session: Session,
    by_kernel: KernelQuestions,
    question: Question,
    guests: int | None,
    progress: Progress,
    *,
    fresh: bool,
    labels: Mapping[Kernel, str] | None = None,
    finish: Callable[[Session, Sequence[Finding]], list[Finding]] = lambda _, findings: [*findings],
) -> tuple[Column, list[Finding]]:
    """The column of the table, and its findings. `finish` completes them, with a session on their kernel.

    `labels` are those of `labels_in`, if the table has other columns, too.
    """
    labels = labels_in([by_kernel]) if labels is None else labels
    answers = [
        characterize(
            replace(each, label=labels[kernel]), session.crew(guests, kernel), session.store, progress, fresh=fresh
        )
        for kernel, each in by_kernel.questions.items()
    ]
    run = {outline.target for each in by_kernel.questions.values() for outline in each.outlines}
    absent = {
        target: why_unsuitable(by_kernel.preferred, target) or "" for target in by_kernel.targets if target not in run
    }
    cells = [cell for each in answers for cell in each.cells]
    cells += absent_cells(absent, question.properties, by_kernel.preferred.label, question.how.model)
    order = [target.name for target in by_kernel.targets]
    column = Column(
        by_kernel.name or by_kernel.preferred.label,
        cells=tuple(sorted(cells, key=lambda cell: order.index(cell.target))),
        workloads=sum(each.workloads for each in answers),
        states=sum(each.states for each in answers),
        recoveries=sum(each.recoveries for each in answers),
    )
    found = zip(by_kernel.questions, answers, strict=True)
    return column, [finding for kernel, each in found for finding in finish(session.on(kernel), each.findings)]
