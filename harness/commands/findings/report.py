"""`postcrash report ID`: write a finding as a mail to the file system's developers, with a script that shows it."""

from pathlib import Path

import click

from postcrash._core import Recording, intervals
from postcrash.checkers import CHECKERS, PRACTICE
from postcrash.harness.budget import Budget
from postcrash.harness.bundles.taking import finding_named
from postcrash.harness.commands.findings.minimize import minimized
from postcrash.harness.commands.options import kernel_options
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.certified_run import certified_runs
from postcrash.harness.examination.crash_in_recovery import source_of, state_below
from postcrash.harness.examination.judges import judges_named
from postcrash.harness.examination.tally import violating
from postcrash.harness.files.output import count_text, write_text
from postcrash.harness.files.places import cache_folder
from postcrash.harness.findings.fstests import fstests_test
from postcrash.harness.findings.naming import named
from postcrash.harness.findings.own_kernel import on_its_kernel, unlike_found
from postcrash.harness.findings.reproduce import Reproducer, attempted, reproducers_of
from postcrash.harness.guests.script_guest import run_script, script_root
from postcrash.harness.session import Session
from postcrash.model import ExitCode, parse_workload
from postcrash.properties import PROPERTIES
from postcrash.reports.script.fstests import NAME
from postcrash.reports.script.mail import Mail, mail
from postcrash.reports.script.shell_operations import NoCommandError
from postcrash.reports.store.records import Finding
from postcrash.targets import Target


@click.command()
@click.argument("id", metavar="ID|BUNDLE")
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
) -> int:
    """Write finding ID as a plain text for a mailing list, with a shell script that needs no postcrash.

    BUNDLE is a finding as a file (`postcrash bundle`). It is put into the store first.
    If `minimize` was run, the report is about the smallest workload. The script cuts the power with dm-flakey or
    dm-log-writes. With --try, every form of the script is run in a guest with the kernel that the finding was found on
    (or --kernel), simplest first, until one shows the violation. Without --try, the report says that the script has not
    been run.

    \b
    Examples:
      postcrash report f-1a2b3c4d5e6f7a8b --minimize --try -o report.txt
      postcrash report f-1a2b3c4d5e6f7a8b --try -o report.txt --fstests tests/generic/999
    """
    name = None if fstests_file is None else _name_of_test(fstests_file)
    finding = finding_named(session, id)
    if finding.is_of_run:
        raise UsageError(
            f"{finding.id}: guests were lost while they ran the workload, so that there is no crash state to report: "
            f"see  postcrash explain {finding.id}  for the operations and the kernel's stacks"
        )
    if minimize or is_tried:
        session = on_its_kernel(session, finding)
    if minimize:
        finding = minimized(session, finding, Budget().recoveries, fresh=False).finding
    elif finding.minimal is not None:
        finding = session.store.finding(finding.minimal)
    (finding,) = named([finding], session.store)
    if finding.explanation is None:
        raise UsageError(f"{finding.id} was never explained")
    target = session.target_of(finding)
    found, told = _reproducer(session, finding, target, times if is_tried else 0)
    text = found.text if found else ""
    if script_file is not None:
        if not text:
            raise UsageError(told)
        write_text(script_file, text)
    if fstests_file is not None and name is not None:
        _write_fstests(session, finding, target, fstests_file, name, found)
    said = Mail(_statement(finding), _states(session, finding), told, text)
    write_text(output, mail(finding, finding.explanation, target, said))
    return ExitCode.HOLDS


def _name_of_test(file: str) -> str:
    name = Path(file).name
    if not NAME.fullmatch(name):
        raise UsageError(f"--fstests {file}: a test of fstests is called by a number of three digits, such as 999")
    return name


def _write_fstests(
    session: Session, finding: Finding, target: Target, file: str, name: str, tried: Reproducer | None
) -> None:
    kernel = session.kernel.label if tried is not None and tried.codes else finding.kernel
    try:
        test = fstests_test(
            session.store, finding, target=target, name=name, statement=_statement(finding), tried=tried, kernel=kernel
        )
    except NoCommandError as error:
        raise UsageError(f"{finding.id}: there is no test of fstests: {error}") from error
    write_text(file, test.text)
    write_text(f"{file}.out", test.golden)
    Path(file).chmod(0o755)


def _reproducer(session: Session, finding: Finding, target: Target, times: int) -> tuple[Reproducer | None, str]:
    """The script, if there can be one, and what is known of it. With `times` 0 it is not run."""
    try:
        scripts = reproducers_of(finding, target, session.store)
    except NoCommandError as error:
        return None, f"There is no shell script: {error}."
    if not times:
        return scripts[0], "The script below has not been run."
    workload = parse_workload(finding.workload_text, finding.workload_name)
    sleeps = sum(operation.seconds or 0 for operation in workload.operations)
    root = script_root(session.kernel, target, cache_folder())
    found = attempted(scripts, lambda text: run_script(session.kernel, root, target, text, sleeps), times)
    unlike = unlike_found(finding, session)
    told = _told(found, session.kernel.label, len(scripts))
    return found, f"{told} This was {unlike}." if unlike else told


def _told(found: Reproducer, kernel: str, forms: int) -> str:
    if found.shown:
        return f"This script was run on {kernel} and shows it: {found.shown} of {len(found.codes)} times."
    code = found.codes[0]
    ended = {0: "it shows another state", None: "the guest did not get to its end"}.get(code, f"exit code {code}")
    others = f", and so were {forms - 1} others" if forms > 1 else ""
    last = found.printed.strip().splitlines()[-1:]
    return f"This script was tried on {kernel}{others}, and did not show it: {'; '.join([ended, *last])}."


def _statement(finding: Finding) -> str:
    statements = {checker.name: checker.statement for checker in (*CHECKERS, *PRACTICE)}
    statements |= {prop.name: prop.statement for prop in PROPERTIES}
    return statements.get(finding.checker, "Recovery comes to an end, and to the same one after a crash within it.")


def _states(session: Session, finding: Finding) -> str:
    """How many crash states of the workload break the judge."""
    runs = [run for run in certified_runs(session.store) if finding.id in run.findings]
    try:
        (judge,) = judges_named([finding.checker])
    except LookupError:
        runs = []
    if not runs or state_below(finding) is not None:
        return "Crash states that show it were not counted."
    with source_of(session.store, finding) as (source, _):
        known = intervals(Recording(source.recording), source.base, finding.model)
    workload = parse_workload(finding.workload_text, finding.workload_name)
    try:
        counted = violating(runs[-1].read_certificates(), known, workload, judge)
    except (ValueError, LookupError) as error:
        raise UsageError(f"a certificate of {finding.recording} does not fit it: {error}") from error
    if counted is None:
        return "There are too many crash states to count those that show it."
    broken, covered = map(count_text, counted)
    return (
        f"{broken} of the {covered} crash states of this workload that were recovered, each by the kernel named above, "
        f"break the expectation."
    )
