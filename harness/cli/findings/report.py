"""`postcrash report ID`: write a finding as a mail to the file system's developers, with a script that shows it."""

from dataclasses import dataclass
from pathlib import Path

import click

from postcrash.harness.budget import Budget
from postcrash.harness.cli.completion import complete_findings
from postcrash.harness.cli.findings.minimize import minimized
from postcrash.harness.cli.options import kernel_options
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_text
from postcrash.harness.findings.bundles.import_bundle import finding_named
from postcrash.harness.findings.finding_details import with_block_names
from postcrash.harness.findings.fstests import WrittenTest, fstests_test
from postcrash.harness.findings.own_kernel import guest_difference, on_its_kernel
from postcrash.harness.findings.recipients import recipients
from postcrash.harness.findings.reproduce import Reproducer, finding_to_report, finding_to_show, reproducers_of
from postcrash.harness.findings.script_trials import ScriptForms, other_kernel_lines, script_summary
from postcrash.harness.findings.statement import statement_of
from postcrash.harness.findings.violating_states import violating_states
from postcrash.model import ExitCode
from postcrash.reports.script.fstests import NAME
from postcrash.reports.script.mail import Mail, mail
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.store.records import Finding
from postcrash.targets import Target


@click.command()
@click.argument("id", metavar="ID|last|BUNDLE", shell_complete=complete_findings)
@click.option("-o", "--output", metavar="FILE", default="-", help="Write the text to FILE; - is standard output.")
@click.option("--script", "script_file", metavar="FILE", help="Write the shell script alone to FILE as well.")
@click.option(
    "--fstests",
    "fstests_file",
    metavar="FILE",
    help="Write a test of fstests to FILE, called by a number such as 999, and its golden output to FILE.out as well.",
)
@click.option("--minimize", is_flag=True, help="First look for the smallest workload, as `minimize` does.")
@click.option("--try", "is_tried", is_flag=True, help="Run the script in guests and say what it showed.")
@click.option(
    "--times",
    metavar="N",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="With --try: run it this many times.",
)
@click.option(
    "--other-kernels",
    "is_tried_on_others",
    is_flag=True,
    help="With --try: run it on the other kernels of `postcrash kernels list` too, newest first.",
)
@click.option(
    "--tree",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write to whom it goes, as scripts/get_maintainer.pl of the kernel's source in DIR says.",
)
@kernel_options
@click.pass_obj
def report(
    session: Session,
    id: str,
    output: str,
    script_file: str | None,
    fstests_file: str | None,
    minimize: bool,
    is_tried: bool,
    times: int,
    is_tried_on_others: bool,
    tree: Path | None,
) -> int:
    """Write finding ID as a plain text for a mailing list, with a shell script that needs no postcrash.

    `last` in place of ID is the first finding that the last command named.
    BUNDLE is a finding as a file (`postcrash bundle`). It is put into the store first.
    If `minimize` was run, the report is about the smallest workload; if that breaks no rule, and finding ID of a
    comparison does, it is about ID. The script cuts the power with dm-flakey or dm-log-writes. With --try, every form
    of the script is run in a guest with the kernel that the finding was found on (or --kernel), simplest first, until
    one shows the violation, and each run is told on standard error. Without --try, the report says that the script has
    not been run.

    \b
    Examples:
      postcrash report f-1a2b3c4d5e6f7a8b --minimize --try -o report.txt
      postcrash report f-1a2b3c4d5e6f7a8b --try -o report.txt --fstests tests/generic/999
    """
    name = None if fstests_file is None else _name_of_test(fstests_file)
    if is_tried_on_others and not is_tried:
        raise UsageError("--other-kernels runs the script, and needs --try")
    finding = finding_named(session, id)
    if finding.is_of_run:
        raise UsageError(
            f"{finding.id}: guests were lost while they ran the workload, so that there is no crash state to report: "
            f"see  {session.invocation} explain {finding.id}  for the operations and the kernel's stacks"
        )
    if minimize or is_tried:
        session = on_its_kernel(session, finding)
    if minimize:
        smallest = minimized(session, finding, Budget().recoveries, fresh=False).finding
    else:
        smallest = finding if finding.minimal is None else session.store.finding(finding.minimal)
    finding = finding_to_report(finding, smallest, session.target_of(finding))
    (finding,) = with_block_names([finding], session.store)
    if finding.explanation is None:
        raise UsageError(f"{finding.id} was never explained")
    target = session.target_of(finding)
    addresses = recipients(tree, target.fstype) if tree is not None else ()
    shown = finding_to_show(finding, target)
    if name is not None and is_tried:  # raises UsageError before anything is run
        _fstests(session, shown, target, name, None)
    reproduction = _reproduction(session, shown, target, times if is_tried else 0, is_tried_on_others)
    if script_file is not None:
        if reproduction.script is None:
            raise UsageError(reproduction.result)
        write_text(script_file, reproduction.script.text)
    if fstests_file is not None and name is not None:
        _write_fstests(fstests_file, _fstests(session, shown, target, name, reproduction.script))
    details = Mail(
        statement=statement_of(finding),
        states=violating_states(session.store, shown),
        script_result=reproduction.result,
        script=reproduction.script.text if reproduction.script else "",
        other_kernels=reproduction.other_kernels,
        recipients=addresses,
    )
    write_text(output, mail(finding, finding.explanation, target, details))
    return ExitCode.HOLDS


def _name_of_test(file: str) -> str:
    name = Path(file).name
    if not NAME.fullmatch(name):
        raise UsageError(f"--fstests {file}: a test of fstests is called by a number of three digits, such as 999")
    return name


def _fstests(session: Session, finding: Finding, target: Target, name: str, script: Reproducer | None) -> WrittenTest:
    """Returns the test, with the results of `script` if it was run. Raises UsageError if there can be none."""
    kernel = session.kernel.label if script is not None and script.codes else finding.kernel
    statement = statement_of(finding)
    try:
        return fstests_test(
            session.store, finding, target=target, name=name, statement=statement, script=script, kernel=kernel
        )
    except NoCommandError as error:
        raise UsageError(f"{finding.id}: there is no test of fstests: {error}") from error


def _write_fstests(file: str, test: WrittenTest) -> None:
    write_text(file, test.text)
    write_text(f"{file}.out", test.golden)
    Path(file).chmod(0o755)


@dataclass(frozen=True, slots=True)
class _Reproduction:
    """The script, if there can be one, and its results in words: on the finding's kernel and on each other one."""

    script: Reproducer | None
    result: str
    other_kernels: tuple[str, ...] = ()


def _reproduction(
    session: Session, shown: Finding, target: Target, times: int, is_tried_on_others: bool
) -> _Reproduction:
    """Runs the script on the session's kernel, unless `times` is 0."""
    try:
        scripts = reproducers_of(shown, target, session.store)
    except NoCommandError as error:
        return _Reproduction(None, f"There is no shell script: {error}.")
    if not times:
        return _Reproduction(scripts[0], "The script below has not been run.")
    forms = ScriptForms(shown, target, scripts)
    trial = forms.run_on_kernel(session.kernel, session.kernel.label, times)
    others = list(forms.run_on_other_kernels(session.kernel)) if is_tried_on_others else []
    difference, result = guest_difference(shown, session), script_summary(trial)
    result = f"{result} This was {difference}." if difference else result
    return _Reproduction(trial.reproducer, result, tuple(other_kernel_lines(trial, others)))
