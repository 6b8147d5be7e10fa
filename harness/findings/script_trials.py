"""Run the scripts of a finding in guests, to see whether they show it: on its own kernel, and on others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from postcrash.harness.errors import HarnessError
from postcrash.harness.files.digest import content_digest
from postcrash.harness.files.output import say
from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.reproduce import Reproducer
from postcrash.harness.guests.kernels.kernel import Kernel
from postcrash.harness.guests.kernels.stock import Stock
from postcrash.harness.guests.kernels.suitability import why_unsuitable
from postcrash.harness.guests.script_guest import ScriptResult, run_script, script_root
from postcrash.model import parse_workload
from postcrash.store.records import Finding
from postcrash.targets import Target


@dataclass(frozen=True, slots=True)
class ScriptTrial:
    """How the forms of a finding's script ended on one kernel.

    kernel      its label, and its name in the stock
    reproducer  the first form that shows the violation, with how its runs ended; if none does, the first form
    codes       how the first run of each form ended that was run, as `Reproducer.codes`
    """

    kernel: str
    reproducer: Reproducer
    codes: tuple[int | None, ...]

    @property
    def is_without(self) -> bool:
        """Whether each form came to its end, and none shows the violation."""
        return all(code == 0 for code in self.codes)

    @property
    def failed(self) -> int:
        """How many forms did not come to an answer: something failed in them, or the guest was lost."""
        return sum(code not in (0, 1) for code in self.codes)


_LINES_TOLD = 3
"""How many of the last lines that a script printed are told: which line of it failed, and the error before that."""


def told_of_script(trial: ScriptTrial) -> str:
    """What came of the script on the finding's kernel, in a sentence."""
    tried, forms = trial.reproducer, len(trial.codes)
    if tried.shown:
        return f"This script was run on {trial.kernel} and shows it: {tried.shown} of {len(tried.codes)} times."
    code = tried.codes[0]
    ended = {0: "it shows another state", None: "the guest did not get to its end"}.get(code, f"exit code {code}")
    others = (
        "" if forms == 1 else ", and so was another form" if forms == 2 else f", and so were {forms - 1} other forms"
    )
    last = [line.strip() for line in tried.printed.splitlines() if line.strip()][-_LINES_TOLD:]
    return f"This script was tried on {trial.kernel}{others}, and did not show it: {'; '.join([ended, *last])}."


def told_of_others(own: ScriptTrial, others: Sequence[ScriptTrial]) -> Iterator[str]:
    """What came of the script on other kernels, newest first: a line each, and which one is the last without it.

    If the script does not show the violation on the finding's `own` kernel, no kernel can be said to be without it.
    """
    for trial in others:
        forms = f"{len(trial.codes)} forms of the script, once each"
        if trial.reproducer.shown:
            yield f"{trial.kernel}: the script shows it"
        elif trial.is_without:
            yield f"{trial.kernel}: not shown by {forms}"
        else:
            yield f"{trial.kernel}: not known. {trial.failed} of {forms}, failed"
    last = next((trial for trial in others if trial.is_without and own.reproducer.shown), None)
    if last is not None:
        yield f"the last of these kernels on which no script shows it: {last.kernel}"


@dataclass(frozen=True, slots=True)
class ScriptForms:
    """The forms of the script of `finding` on `target`, simplest first. Each run is told on standard error."""

    finding: Finding
    target: Target
    scripts: tuple[Reproducer, ...]

    def tried_on(self, kernel: Kernel, name: str, times: int = 1) -> ScriptTrial:
        """Run each form once until one shows the violation, and this one until it was run `times` times.

        `name` is what people call the kernel. Raises InfrastructureError if no guest can be started here.
        """
        run = self._runner(kernel)
        codes: list[int | None] = []
        first: Reproducer | None = None
        for number, form in enumerate(self.scripts, 1):
            say(f"{name}: form {number} of {len(self.scripts)} of the script: {form.cut.said}")
            tried = _with(form, run(form.text))
            codes += tried.codes
            if tried.shown:
                return ScriptTrial(name, _again(tried, name, run, times), tuple(codes))
            first = first or tried
        assert first is not None, "there is at least one form"
        return ScriptTrial(name, first, tuple(codes))

    def tried_on_others(self, own: Kernel) -> Iterator[ScriptTrial]:
        """Trials on the other kernels of the stock, newest first. The user is told why one is left out."""
        own_content = content_digest(own.path)
        for stocked in reversed(Stock(cache_folder()).all()):
            if content_digest(stocked.path) == own_content:
                continue
            try:
                kernel = stocked.kernel(cache_folder())
                if why := why_unsuitable(kernel, self.target):
                    say(f"{stocked.name} is left out: {why}")
                else:
                    yield self.tried_on(kernel, f"{kernel.label} ({stocked.name})")
            except HarnessError as error:
                say(f"{stocked.name} is left out: {error}")

    def _runner(self, kernel: Kernel) -> Callable[[str], ScriptResult]:
        workload = parse_workload(self.finding.workload_text, self.finding.workload_name)
        sleeps_s = sum(operation.seconds or 0 for operation in workload.operations)
        root = script_root(kernel, self.target, cache_folder())
        return lambda text: run_script(kernel, root, self.target, text, sleeps_s)


def _with(form: Reproducer, ran: ScriptResult) -> Reproducer:
    return replace(form, codes=(*form.codes, ran.code), printed=ran.printed)


def _again(shown: Reproducer, name: str, run: Callable[[str], ScriptResult], times: int) -> Reproducer:
    for number in range(2, times + 1):
        say(f"{name}: this form shows it; run {number} of {times}")
        shown = _with(shown, run(shown.text))
    return shown
