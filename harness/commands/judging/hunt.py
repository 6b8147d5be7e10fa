"""`postcrash hunt`: judge every crash state of every bounded workload on one target."""

import time
from dataclasses import replace
from typing import Literal

import click
from click.core import ParameterSource

from postcrash.harness.commands.completion import complete_targets
from postcrash.harness.commands.judging.hunted import print_hunted, to_json, verdict_on_promises
from postcrash.harness.commands.options import (
    expect_option,
    exploration_options,
    fresh_option,
    json_option,
    kernel_options,
    kinds_options,
    one_disk_option,
    promised_option,
    shard_option,
    time_option,
)
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import WALK, recoveries_for
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.reference import opened
from postcrash.harness.files.output import write_json
from postcrash.harness.findings.minimize import (
    MINIMIZING_SECONDS,
    MinimalFinding,
    OutOfTimeError,
    minimized_on,
)
from postcrash.harness.guests.spare import Spare
from postcrash.harness.hunting.groups import GroupSummary, summaries
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.random_hunt import RandomSelection, random_hunt
from postcrash.harness.hunting.space_hunt import Selection, Shard
from postcrash.harness.hunting.space_hunt import hunt as run
from postcrash.harness.hunting.turns import Turns
from postcrash.harness.outline import outline
from postcrash.harness.progress import TerminalProgress
from postcrash.harness.session import Session
from postcrash.reports.store.records import Finding
from postcrash.targets import Target
from postcrash.workloads import GRAMMARS, SETUPS, Grammar, Setup, WorkloadSpace

RANDOM_RECOVERIES = 1000
"""The budget for one workload of a random hunt, unless --budget is given."""
ENOUGH = 200
"""If this many recoveries show that a workload is violated, the hunt goes on with the next workload."""
ALL_SETUPS: Literal["all"] = "all"


@click.command()
@click.option(
    "--ops",
    "length",
    metavar="N",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    help="Operations of each workload.",
)
@click.option(
    "--target",
    "target_name",
    required=True,
    metavar="NAME",
    shell_complete=complete_targets,
    help="The file system, as in the table.",
)
@click.option(
    "--grammar",
    type=click.Choice(list(GRAMMARS)),
    default="ace",
    show_default=True,
    help="Which operations and files: ace has ACE's bounds, full has more.",
)
@click.option(
    "--setup",
    "setup",
    type=click.Choice([*SETUPS, ALL_SETUPS]),
    help=f"The history of the files that operations need. {'; '.join(f'{n}: {t}' for n, t in SETUPS.items())}. "
    "The default is all for grammar full and new for grammar ace.",
)
@click.option(
    "--random",
    "is_random",
    is_flag=True,
    help="Run random workloads of 5 to 20 operations of grammar full, until --time or --workload-limit is reached. "
    "About half of them are made afresh, the others from workloads that brought something new.",
)
@shard_option("Every N-th workload, beginning with the I-th.")
@click.option(
    "--workload-limit", type=click.IntRange(1), metavar="N", help="Only N workloads, drawn at random with --seed."
)
@click.option(
    "--symmetry/--no-symmetry",
    default=True,
    show_default=True,
    help="Leave out workloads that differ from another one only in names that mean nothing.",
)
@kinds_options
@click.option(
    "--minimize/--no-minimize",
    default=True,
    show_default=True,
    help="Look for the smallest workload of each group of findings.",
)
@one_disk_option
@time_option
@expect_option("practice")
@fresh_option
@exploration_options
@kernel_options
@json_option
@promised_option
@click.pass_obj
def hunt(
    session: Session,
    length: int,
    target_name: str,
    grammar: str,
    setup: Setup | Literal["all"] | None,
    is_random: bool,
    shard: Shard,
    workload_limit: int | None,
    symmetry: bool,
    kinds: frozenset[str],
    minimize: bool,
    one_disk: bool,
    seconds_max: float | None,
    expected: Expectation,
    how: Exploration,
    guests: int | None,
    fresh: bool,
    json_file: str | None,
    promised: bool,
) -> int:
    """Run every workload of --ops operations and judge every crash state that each can leave.

    All checkers judge: what was promised durable is there, nothing appears that never was, and so on. Unless --expect
    documents is given, a state must also be as fstests expects of such a file system. Findings are grouped by their
    cause; each group is shown with its smallest workload (docs/hunting.md). The first finding of each group is shown at
    once. After an interruption, or when --time is over, the same command goes on where it was.

    \b
    Examples:
      postcrash hunt --ops 1 --target ext4-current
      postcrash hunt --ops 2 --target btrfs --shard 1/24 --time 1h
      postcrash hunt --ops 3 --target xfs --workload-limit 1000 --seed 7 --json -
      postcrash hunt --random --target f2fs --time 1h
    """
    started = time.monotonic()
    disks = how.disks(one=one_disk)
    selection: Selection | RandomSelection
    if is_random:
        how = _for_random(how)
        selection = _random(workload_limit, how.seed, setup, disks)
    else:
        space = WorkloadSpace(GRAMMARS[grammar], length, _setups(setup, GRAMMARS[grammar]))
        selection = _not_empty(Selection(space, shard, workload_limit, how.seed, symmetry, disks))
    if expected.compares and kinds != {WALK}:
        raise UsageError(f"--expect {expected.name} compares trees only: leave --fsck and --use out")
    target = session.target(target_name)
    with opened(session, expected, target, how) as expected:
        plan = replace(_plan(session, target, expected, how, kinds), enough=None if promised else ENOUGH)
        turns = Turns(None if seconds_max is None else started + seconds_max)
        hunted, told, seconds = _in_turns(
            session, selection, plan, turns, guests=guests, fresh=fresh, minimize=minimize
        )
        write_json(json_file, to_json(selection, plan, expected, hunted, told, seconds))
        if json_file != "-":
            print_hunted(selection, plan, expected, hunted, told, seconds)
        if hunted.interrupted:
            raise KeyboardInterrupt
        return (verdict_on_promises(plan, hunted) if promised else hunted.verdict).exit_code


def _in_turns(
    session: Session,
    selection: Selection | RandomSelection,
    plan: Plan,
    turns: Turns,
    *,
    guests: int | None,
    fresh: bool,
    minimize: bool,
) -> tuple[HuntResult, list[GroupSummary], float]:
    """What the hunt found, and for how many seconds it explored. If the hunt is `fresh`, it has one turn only."""
    seconds, is_first = 0.0, True
    while True:
        exploring = time.monotonic()
        until = turns.looking_ends(is_first=is_first) if minimize else turns.until
        hunted = _explored(session, selection, plan, guests, fresh, until)
        seconds += time.monotonic() - exploring
        if minimize or hunted.interrupted:
            told = _minimized(session, plan, hunted, fresh, turns.until or time.monotonic() + MINIMIZING_SECONDS)
        else:
            told = summaries(hunted.groups.values(), session.store, None)
        is_open = hunted.not_run > 0 or selection.count is None
        if hunted.interrupted or fresh or not (is_open and turns.has_another):
            return hunted, told, seconds
        is_first = False


def _explored(
    session: Session,
    selection: Selection | RandomSelection,
    plan: Plan,
    guests: int | None,
    fresh: bool,
    until: float | None,
) -> HuntResult:
    with TerminalProgress(selection.count) as progress:
        asked = (plan, session.crew(guests), session.store, progress)
        if isinstance(selection, RandomSelection):
            return random_hunt(selection, *asked, fresh=fresh, until=until)
        return run(selection, *asked, fresh=fresh, until=until)


def _not_empty(selection: Selection) -> Selection:
    if not selection.numbers():
        first, step = selection.shard
        raise NothingSelectedError(f"there are {len(selection.space)} workloads: shard {first} of {step} is empty")
    return selection


def _setups(asked: Setup | Literal["all"] | None, grammar: Grammar) -> tuple[Setup, ...]:
    if asked is None:
        return grammar.setups
    return tuple(SETUPS) if asked == ALL_SETUPS else (asked,)


_NOT_FOR_RANDOM = ("length", "grammar", "shard", "symmetry")


def _random(
    limit: int | None, seed: int, setup: Setup | Literal["all"] | None, disks: tuple[int | None, ...]
) -> RandomSelection:
    context = click.get_current_context()
    for parameter in context.command.params:
        is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if is_given and parameter.name in _NOT_FOR_RANDOM:
            raise UsageError(f"{parameter.opts[0]} is not for --random, whose workloads are drawn from grammar full")
    grammar = GRAMMARS["full"]
    return RandomSelection(replace(grammar, setups=_setups(setup, grammar)), seed, limit, disks)


def _for_random(how: Exploration) -> Exploration:
    """A smaller default budget. Long workloads have many crash states; with less for each, more workloads are run."""
    is_given = click.get_current_context().get_parameter_source("budget") is ParameterSource.COMMANDLINE
    return how if is_given else replace(how, budget=replace(how.budget, recoveries=RANDOM_RECOVERIES, seconds=None))


def _minimized(session: Session, plan: Plan, hunted: HuntResult, fresh: bool, until: float) -> list[GroupSummary]:
    """The summaries of groups. Each group is minimized as long as there is time and the user does not interrupt."""

    def least(finding: Finding) -> MinimalFinding:
        if not hunted.interrupted:
            try:
                return minimized_on(machine, session, finding, plan.how.budget.recoveries, fresh, progress)
            except KeyboardInterrupt:
                hunted.interrupted = True
        raise OutOfTimeError("interrupted")

    settings = settings_for_recorders(session.settings, [plan.how.recorder])
    with Spare(settings, until) as machine, TerminalProgress(None) as progress:
        return summaries(hunted.groups.values(), session.store, least)


def _plan(session: Session, target: Target, expected: Expectation, how: Exploration, kinds: frozenset[str]) -> Plan:
    """The plan for each workload."""
    judges = expected.judges(target, how.model)
    recoveries = recoveries_for(judges, target, how.recovery, kinds)
    session.require(target, recoveries)
    return outline(session, target, judges, recoveries, how)
