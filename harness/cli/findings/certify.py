"""`postcrash certify`: check the predictions of certificates."""

import random
from collections.abc import Mapping

import click
from rich.console import Console

from postcrash.harness.cli.options import json_option, kernel_options
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.examination.certified_run import CertifiedRun, certified_runs
from postcrash.harness.examination.certify import Trial
from postcrash.harness.examination.certify import certify as certify_run
from postcrash.harness.examination.recording_metadata import target_of_recording
from postcrash.harness.examination.session import Session
from postcrash.harness.files.output import say, write_json
from postcrash.harness.guests.machine import Machine, Source
from postcrash.model import ExitCode
from postcrash.store.records import state_id


@click.command()
@click.argument("id", required=False)
@click.option(
    "--samples", metavar="N", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="States to run."
)
@click.option(
    "--seed", metavar="SEED", type=int, default=1, show_default=True, help="The same seed draws the same states."
)
@kernel_options
@json_option
@click.pass_obj
def certify(session: Session, id: str | None, samples: int, seed: int, json_file: str | None) -> int:
    """Recover random crash states of recording ID for real, and compare each with what its certificate predicts.

    ID is a recording, such as r-0123456789abcdef, as `check --json` shows it. Without ID, the samples are spread over
    all recordings in the store. Each state is recovered in a guest like the one of its recording: with the same kernel,
    modules and programs. Recordings whose guests cannot be made here any more are left out, and told. With --kernel,
    only those of that kernel count. Exit code 0 if every prediction was right, 3 otherwise.

    \b
    Example:
      postcrash certify --samples 200 --seed 7
    """
    runs = [run for run in certified_runs(session.store) if id in (None, run.recording)]
    if not runs:
        if id is None:
            raise NothingSelectedError("the store has no certificates yet: run `check` or `characterize`")
        raise UsageError(f"the store has no certificate of a recording {id!r}")
    sessions = _sessions(session, runs)
    made_here = [run for run in runs if run.guest in sessions]
    missing_kernels = sorted({run.kernel for run in runs if run.guest not in sessions})
    if not made_here:
        raise UsageError(_made_elsewhere(missing_kernels, session))
    if missing_kernels and session.kernel_name is None:
        omitted = f"{len(runs) - len(made_here)} of {len(runs)} recordings are left out"
        say(f"{omitted}: {_made_elsewhere(missing_kernels, session)}")
    trials = list(_trials(sessions, made_here, samples, seed))
    wrong = [(recording, trial) for recording, trial in trials if not trial.confirmed]
    shown = [state_id(recording, trial.interval, trial.choices) for recording, trial in wrong]
    write_json(json_file, {"samples": len(trials), "confirmed": len(trials) - len(wrong), "wrong": shown})
    if json_file != "-":
        console = Console(soft_wrap=True)
        recordings = len({recording for recording, _ in trials})
        count = f"{len(trials) - len(wrong)} of {len(trials)}"
        console.print(f"{count} predicted crash states confirmed, from {recordings} recordings", highlight=False)
        for (_, trial), state in zip(wrong, shown, strict=True):
            console.print(f"{state}: predicted {trial.predicted}, observed {trial.observed}", markup=False)
    return ExitCode.INFRASTRUCTURE if wrong else ExitCode.HOLDS


def _sessions(session: Session, runs: list[CertifiedRun]) -> dict[str, Session]:
    """Returns a session for each guest that can be made here, on its kernel; with --kernel, on that one only."""
    found: dict[str, Session] = {}
    for guest, guest_runs in _by_guest(runs).items():
        recordings = dict.fromkeys(run.recording for run in guest_runs)
        same = session.with_targets(target_of_recording(session.store, recording) for recording in recordings)
        if session.kernel_name is not None:
            kernel = same.kernel if same.guest() == guest else None
        else:
            kernel = same.same_kernel(guest_runs[0].kernel, guest, None)
        if kernel is not None:
            found[guest] = same.on(kernel)
    return found


def _by_guest(runs: list[CertifiedRun]) -> dict[str, list[CertifiedRun]]:
    """Groups the runs whose guest is known, oldest first."""
    found: dict[str, list[CertifiedRun]] = {}
    for run in runs:
        if run.guest:
            found.setdefault(run.guest, []).append(run)
    return found


def _made_elsewhere(kernels: list[str], session: Session) -> str:
    origin = f"the certificates were made on {', '.join(kernels)}"
    if session.kernel_name is None:
        return f"{origin}: this kernel, or the modules or programs of its guests, are not here any more"
    label = session.kernel.label
    if label in kernels:
        return f"the certificates were made on another build of {label}, or with other modules or programs in the guest"
    return f"{origin}, not on {label}"


def _trials(
    sessions: Mapping[str, Session], runs: list[CertifiedRun], samples: int, seed: int
) -> list[tuple[str, Trial]]:
    chance = random.Random(seed)
    shares = [0] * len(runs)
    for _ in range(samples):
        shares[chance.randrange(len(runs))] += 1
    trials: list[tuple[str, Trial]] = []
    drawn = [(known, share, chance.randrange(2**32)) for known, share in zip(runs, shares, strict=True)]
    for guest, session in sessions.items():
        with Machine(session.settings) as machine:
            for known, share, draw in (draw for draw in drawn if draw[0].guest == guest):
                store = session.store
                source = Source(store.recording_path(known.recording), store.base_path(known.base), known.model)
                found = certify_run(machine, source, known.read_certificates(), share, draw, is_whole=known.is_whole)
                trials.extend((known.recording, trial) for trial in found)
    return trials
