"""How many of the folders that a crash can leave are checked in a second, on all CPUs.

SQLite is audited once on ext4. Then each distinct folder that its check accepted, with what had been acknowledged, is
given to the check several times more, as an audit does it: made in memory, in a sandbox of its own.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from postcrash.apps import Application, application_named
from postcrash.harness.auditing.audit import plan_of
from postcrash.harness.auditing.folder_judge import FolderState
from postcrash.harness.auditing.judge import CHECKS_AT_ONCE, ApplicationJudge, sandbox_of
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.examination.campaign import run_campaign
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.session import Session
from postcrash.reports.explanation import explanation
from postcrash.targets import target_named

TIMES = 5
"""How often each folder is checked in a round, so that a round takes more than a moment."""


def folders(session: Session, application: Application, target: str) -> list[FolderState]:
    """What a crash can leave, as one recording shows it."""
    with ApplicationJudge(application, keeps=True) as judge, TerminalProgress(1) as progress:
        plan = plan_of(session, application, target_named(target), Exploration(), judge)
        run_campaign([plan], session.crew(1), session.store, progress)
        return judge.kept


def checks_a_second(application: Application, states: Sequence[FolderState], threads: int) -> float:
    """Each of `states`, so many at a time. What is started once for a sandbox is there before."""
    sandbox = sandbox_of(application)

    def passes(state: FolderState) -> bool:
        return sandbox.run(state.folder, application.check, state.acknowledged).status == 0

    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(passes, states[: 2 * threads]))
            started = time.monotonic()
            results = list(pool.map(passes, states))
            seconds = time.monotonic() - started
    finally:
        sandbox.close()
    assert all(results), "a check that accepted a folder accepts it again"
    return len(states) / seconds


def main() -> None:
    """Print the median of several rounds: one check at a time, one for each CPU, and as many as `needs` runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--application", default="sqlite-3.40")
    parser.add_argument("--target", default="ext4-current")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    application = application_named(options.application).with_parameters({})
    with tempfile.TemporaryDirectory() as store:
        states = folders(Session(Path(store), explainer=explanation), application, options.target)
    print(f"{application.name} on {options.target}: {len(states)} folders")
    for threads in sorted({1, os.cpu_count() or 1, CHECKS_AT_ONCE}):
        rates = [checks_a_second(application, states * TIMES, threads) for _ in range(options.rounds)]
        median = statistics.median(rates)
        print(f"{threads} at a time: {median:.0f} checks a second ({min(rates):.0f} to {max(rates):.0f})")


if __name__ == "__main__":
    main()
