"""Runs the scripts of a finding in guests, on its own kernel and on others, to see whether they show it."""

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
    """The results of the forms of a finding's script on one kernel.

    kernel      its label, and its name in the stock
    reproducer  the first form that shows the violation, with the results of its runs; the first form if none does
    codes       exit codes of the first run of each form that was run, as `Reproducer.codes`
    """

    kernel: str
    reproducer: Reproducer
    codes: tuple[int | None, ...]

    @property
    def is_without(self) -> bool:
        """Whether every form ended, and none shows the violation."""
        return all(code == 0 for code in self.codes)

    @property
    def failed(self) -> int:
        """Number of forms without an answer, because something failed in them or the guest was lost."""
        return sum(code not in (0, 1) for code in self.codes)


_LAST_LINES_MAX = 3
"""The most last lines of a script's output in a summary: which line of it failed, and the error before that."""


def script_summary(trial: ScriptTrial) -> str:
    """Says in a sentence whether the script shows the finding on its kernel."""
    script, forms = trial.reproducer, len(trial.codes)
    if script.shown:
        return f"This script was run on {trial.kernel} and shows it: {script.shown} of {len(script.codes)} times."
    code = script.codes[0]
    ended = {0: "it shows another state", None: "the guest did not get to its end"}.get(code, f"exit code {code}")
    others = (
        "" if forms == 1 else ", and so was another form" if forms == 2 else f", and so were {forms - 1} other forms"
    )
    last = [line.strip() for line in script.printed.splitlines() if line.strip()][-_LAST_LINES_MAX:]
    return f"This script was tried on {trial.kernel}{others}, and did not show it: {'; '.join([ended, *last])}."


def other_kernel_lines(own: ScriptTrial, others: Sequence[ScriptTrial]) -> Iterator[str]:
    """Yields a line for each of the other kernels, newest first, and one for the last kernel without the violation.

    No kernel counts as being without it if the script does not show it on the finding's `own` kernel.
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
    """The forms of the script of `finding` on `target`, simplest first. Each run prints a line on standard error."""

    finding: Finding
    target: Target
    scripts: tuple[Reproducer, ...]

    def run_on_kernel(self, kernel: Kernel, name: str, times: int = 1) -> ScriptTrial:
        """Runs each form once until one shows the violation, and that one `times` times.

        `name` is the kernel's name for messages. Raises InfrastructureError if no guest can be started here.
        """
        run = self._runner(kernel)
        codes: list[int | None] = []
        simplest: Reproducer | None = None
        for number, form in enumerate(self.scripts, 1):
            say(f"{name}: form {number} of {len(self.scripts)} of the script: {form.cut.description}")
            script = _with_result(form, run(form.text))
            codes += script.codes
            if script.shown:
                return ScriptTrial(name, _repeated(script, name, run, times), tuple(codes))
            simplest = simplest or script
        assert simplest is not None, "there is at least one form"
        return ScriptTrial(name, simplest, tuple(codes))

    def run_on_other_kernels(self, own: Kernel) -> Iterator[ScriptTrial]:
        """Yields trials on the other kernels of the stock, newest first. Prints why a kernel is left out."""
        own_content = content_digest(own.path)
        for stocked in reversed(Stock(cache_folder()).all()):
            if content_digest(stocked.path) == own_content:
                continue
            try:
                kernel = stocked.kernel(cache_folder())
                if why := why_unsuitable(kernel, self.target):
                    say(f"{stocked.name} is left out: {why}")
                else:
                    yield self.run_on_kernel(kernel, f"{kernel.label} ({stocked.name})")
            except HarnessError as error:
                say(f"{stocked.name} is left out: {error}")

    def _runner(self, kernel: Kernel) -> Callable[[str], ScriptResult]:
        workload = parse_workload(self.finding.workload_text, self.finding.workload_name)
        sleeps_s = sum(operation.seconds or 0 for operation in workload.operations)
        root = script_root(kernel, self.target, cache_folder())
        return lambda text: run_script(kernel, root, self.target, text, sleeps_s)


def _with_result(form: Reproducer, result: ScriptResult) -> Reproducer:
    return replace(form, codes=(*form.codes, result.code), printed=result.printed)


def _repeated(script: Reproducer, name: str, run: Callable[[str], ScriptResult], times: int) -> Reproducer:
    for number in range(2, times + 1):
        say(f"{name}: this form shows it; run {number} of {times}")
        script = _with_result(script, run(script.text))
    return script
