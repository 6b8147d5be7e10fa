"""`postcrash repro ID`: recover one crash state again."""

import click
from rich.console import Console

from postcrash.harness.cli.completion import complete_findings
from postcrash.harness.cli.options import json_option, kernel_options
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import write_json
from postcrash.harness.findings.bundles.import_bundle import finding_named
from postcrash.harness.findings.flips import Flip, flips, with_needed
from postcrash.harness.findings.own_kernel import guest_difference, on_its_kernel
from postcrash.harness.findings.replay import replay
from postcrash.harness.guests.machine import Machine
from postcrash.model import ExitCode, Verdict, worst
from postcrash.store.json_codec import to_plain


@click.command()
@click.argument("id", metavar="ID|last|BUNDLE", shell_complete=complete_findings)
@click.option(
    "--times",
    metavar="N",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    help="Run it this many times.",
)
@click.option(
    "--flip", is_flag=True, help="Also keep each lost write, one at a time: which of them matter? `explain` shows it."
)
@kernel_options
@json_option
@click.pass_obj
def repro(session: Session, id: str, times: int, flip: bool, json_file: str | None) -> int:
    """Recover the crash state of finding ID again, on the kernel that it was found on, and say whether it still fails.

    `last` in place of ID is the first finding that the last command named.
    BUNDLE is a finding as a file (`postcrash bundle`). It is put into the store first.

    If guests were lost while they ran the workload, the finding has no crash state. Then its workload is run again.

    `check` and `characterize` print the ID, such as f-1a2b3c4d5e6f7a8b. Exit code 1 if it fails every time, 0 if it
    never does, 3 if it sometimes does: then something is not deterministic. 6 if it does not fail, but could not be
    judged.

    \b
    Examples:
      postcrash repro f-1a2b3c4d5e6f7a8b --times 20
      postcrash repro f-1a2b3c4d5e6f7a8b --flip
    """
    finding = finding_named(session, id)
    session = on_its_kernel(session, finding)
    answers = replay(session, finding, times)
    failures = sum(verdict is Verdict.VIOLATED for verdict, _ in answers)
    message = answers[-1][1]
    difference = guest_difference(finding, session)
    tried_flips: list[Flip] = []
    if flip:
        with Machine(session.settings) as machine:
            tried_flips = flips(session, machine, finding)
        if not difference:  # the result of another guest says nothing about the finding
            session.store.put_finding(with_needed(finding, tried_flips))
    write_json(
        json_file,
        {
            "id": finding.id,
            "state": finding.state,
            "kernel": session.kernel.label,
            "unlike_found": difference,
            "runs": times,
            "failures": failures,
            "message": message,
        }
        | ({"flips": to_plain(tuple(tried_flips))} if flip else {}),
    )
    if json_file != "-":
        console = Console(soft_wrap=True)
        place = f"{finding.checker} on {finding.target}, {session.kernel.label}"
        if difference:
            console.print(f"{finding.id}: {difference}", markup=False, highlight=False)
        console.print(f"{finding.id}: fails {failures} of {times} times ({place})", markup=False, highlight=False)
        console.print(message, markup=False, highlight=False)
        for tried in tried_flips:
            place = f"sectors {tried.sector} to {tried.sector + tried.sectors}"
            console.print(f"with {place} kept: {_WORDS[tried.verdict]}", highlight=False)
    if 0 < failures < times:
        return ExitCode.INFRASTRUCTURE
    return worst(verdict for verdict, _ in answers).exit_code


_WORDS = {
    Verdict.HOLDS: "it passes",
    Verdict.VIOLATED: "it fails all the same",
    Verdict.UNDECIDED: "it cannot be judged",
}
