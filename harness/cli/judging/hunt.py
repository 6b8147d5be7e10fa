"""`postcrash hunt`: judge every crash state of every bounded workload on one target."""

import time
from dataclasses import dataclass, replace
from typing import Literal

import click
from click.core import ParameterSource

from postcrash.harness.cli.judging.hunt_report import HuntReport, HuntSelection
from postcrash.harness.cli.options import (
    expect_option,
    exploration_options,
    fresh_option,
    json_option,
    kernel_options,
    kinds_options,
    one_disk_option,
    promised_option,
    shard_option,
    target_option,
    time_option,
)
from postcrash.harness.cli.progress import TerminalProgress
from postcrash.harness.errors import NothingSelectedError, UsageError
from postcrash.harness.examination.exploration import Exploration
from postcrash.harness.examination.judges import WALK
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.recording import settings_for_recorders
from postcrash.harness.examination.session import Session
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.reference import opened
from postcrash.harness.files.output import write_json
from postcrash.harness.findings.last_finding import keep_last
from postcrash.harness.findings.minimize import (
    MINIMIZING_SECONDS,
    MinimalFinding,
    OutOfTimeError,
    minimized_on,
)
from postcrash.harness.guests.lazy_machine import Spare
from postcrash.harness.hunting.default_hunt import DefaultSelection, DefaultSpace
from postcrash.harness.hunting.groups import GroupSummary, summaries
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.probes import Plans, Probe, joined_plan, plans_for, probes_for
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.run_hunt import run_hunt
from postcrash.harness.hunting.space_hunt import Selection, Shard
from postcrash.harness.hunting.time_sharing import Turns
from postcrash.store.records import Finding
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
    help="Every workload of N operations of --grammar, in place of the default hunt.",
)
@target_option
@click.option(
    "--grammar",
    type=click.Choice(list(GRAMMARS)),
    help="Which operations and files: ace, which is the default, has ACE's bounds; full has more.",
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
    "--workload-limit",
    type=click.IntRange(1),
    metavar="N",
    help="Only N workloads: the first of the default hunt, and of others so many that are drawn with --seed.",
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
    length: int | None,
    target_name: str,
    grammar: str | None,
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
    """Run many workloads and judge every crash state that each can leave.

    Without --ops, --grammar, --setup and --random this is the default hunt: every workload of one operation of grammar
    full, a corpus of workloads that showed bugs, some workloads of two operations, and some once more with fsck and
    with a second crash within the recovery. What found most bugs comes first, so that some minutes (--time 2m) find
    most of what there is. With --ops, every workload of so many operations is run.

    All checkers judge: what was promised durable is there, nothing appears that never was, and so on. Unless --expect
    documents is given, a state must also be as fstests expects of such a file system. Findings are grouped by their
    cause; each group is shown with its smallest workload (docs/hunting.md). The first finding of each group is shown at
    once. After an interruption, or when --time is over, the same command goes on where it was.

    \b
    Examples:
      postcrash hunt --target ext4-current --time 2m
      postcrash hunt --ops 1 --target ext4-current
      postcrash hunt --ops 2 --target btrfs --shard 1/24 --time 1h
      postcrash hunt --ops 3 --target xfs --workload-limit 1000 --seed 7 --json -
      postcrash hunt --random --target f2fs --time 1h
    """
    started = time.monotonic()
    options = _WorkloadOptions(
        length, grammar, setup, workload_limit, shard=shard, symmetry=symmetry, disks=how.disks(one=one_disk)
    )
    if is_random:
        how = _for_random(how)
    if expected.compares and kinds != {WALK}:
        raise UsageError(f"--expect {expected.name} compares trees only: leave --fsck and --use out")
    target = session.target(target_name)
    with opened(session, expected, target, how) as expected:
        is_mixed = options.is_default and not is_random
        probes = probes_for(expected, target, how, kinds) if is_mixed else (Probe.WALK,)
        plans = plans_for(session, target, expected.judges(target, how.model), how, kinds, probes)
        plans = {probe: replace(plan, enough=None if promised else ENOUGH) for probe, plan in plans.items()}
        selection = options.random(how.seed) if is_random else options.selection(how.seed, target, plans)
        turns = Turns(None if seconds_max is None else started + seconds_max)
        result, groups, seconds = _hunt_in_turns(
            session, selection, plans, turns, guests=guests, fresh=fresh, minimize=minimize
        )
        report = HuntReport(selection, joined_plan(plans), expected, result, groups, seconds)
        keep_last(session.store, [group.shown.id for group in groups])
        write_json(json_file, report.to_json())
        if json_file != "-":
            report.print(session.invocation)
        if result.interrupted:
            raise KeyboardInterrupt
        return (report.verdict_on_promises if promised else result.verdict).exit_code


@dataclass(frozen=True, slots=True)
class _WorkloadOptions:
    """The options that select workloads. None: the option is not given."""

    length: int | None
    grammar: str | None
    setup: Setup | Literal["all"] | None
    limit: int | None
    shard: Shard
    symmetry: bool
    disks: tuple[int | None, ...]

    @property
    def is_default(self) -> bool:
        """Whether the default hunt is asked for."""
        return self.length is None and self.grammar is None and self.setup is None

    def selection(self, seed: int, target: Target, plans: Plans) -> Selection | DefaultSelection:
        """The workloads, unless they are random. Raises NothingSelectedError."""
        found: Selection | DefaultSelection
        if self.is_default:
            space = DefaultSpace(target, tuple(plans))
            found = DefaultSelection(space, self.shard, self.limit, self.symmetry, self.disks)
        else:
            grammar = GRAMMARS[self.grammar or "ace"]
            every = WorkloadSpace(grammar, self.length or 1, _setups(self.setup, grammar))
            found = Selection(every, self.shard, self.limit, seed, self.symmetry, self.disks)
        if not found.count:
            first, step = self.shard
            raise NothingSelectedError(f"there are {len(found.space)} workloads: shard {first} of {step} is empty")
        return found

    def random(self, seed: int) -> RandomSelection:
        """Random workloads. Raises UsageError for options that are not for them."""
        context = click.get_current_context()
        for parameter in context.command.params:
            is_given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
            if is_given and parameter.name in _NOT_FOR_RANDOM:
                name = parameter.opts[0]
                raise UsageError(f"{name} is not for --random, whose workloads are drawn from grammar full")
        grammar = GRAMMARS["full"]
        drawn_from = replace(grammar, setups=_setups(self.setup, grammar))
        return RandomSelection(drawn_from, seed, self.limit, self.disks)


def _hunt_in_turns(
    session: Session,
    selection: HuntSelection,
    plans: Plans,
    turns: Turns,
    *,
    guests: int | None,
    fresh: bool,
    minimize: bool,
) -> tuple[HuntResult, list[GroupSummary], float]:
    """What the hunt found, and for how many seconds it explored. If the hunt is `fresh`, it has one turn only."""
    seconds, is_first = 0.0, True
    while True:
        began = time.monotonic()
        until = turns.looking_ends(is_first=is_first) if minimize else turns.until
        with TerminalProgress(selection.count, session.invocation) as progress:
            crew = session.crew(guests)
            result = run_hunt(selection, plans, crew, session.store, progress, fresh=fresh, until=until)
        seconds += time.monotonic() - began
        if minimize or result.interrupted:
            until = turns.until or time.monotonic() + MINIMIZING_SECONDS
            groups = _minimized(session, joined_plan(plans), result, fresh, until)
        else:
            groups = summaries(result.groups.values(), session.store, None)
        has_more = result.has_more_to_do or selection.count is None
        if result.interrupted or fresh or not (has_more and turns.has_another):
            return result, groups, seconds
        is_first = False


def _setups(requested: Setup | Literal["all"] | None, grammar: Grammar) -> tuple[Setup, ...]:
    if requested is None:
        return grammar.setups
    return tuple(SETUPS) if requested == ALL_SETUPS else (requested,)


_NOT_FOR_RANDOM = ("length", "grammar", "shard", "symmetry")


def _for_random(how: Exploration) -> Exploration:
    """A smaller default budget. Long workloads have many crash states; with less for each, more workloads are run."""
    is_given = click.get_current_context().get_parameter_source("budget") is ParameterSource.COMMANDLINE
    return how if is_given else replace(how, budget=replace(how.budget, recoveries=RANDOM_RECOVERIES, seconds=None))


def _minimized(session: Session, plan: Plan, result: HuntResult, fresh: bool, until: float) -> list[GroupSummary]:
    """The summaries of groups. Each group is minimized as long as there is time and the user does not interrupt."""

    def least(finding: Finding) -> MinimalFinding:
        if not result.interrupted:
            try:
                return minimized_on(machine, session, finding, plan.how.budget.recoveries, fresh, progress)
            except KeyboardInterrupt:
                result.interrupted = True
        raise OutOfTimeError("interrupted")

    settings = settings_for_recorders(session.settings, [plan.how.recorder])
    with Spare(settings, until) as machine, TerminalProgress(None) as progress:
        return summaries(result.groups.values(), session.store, least)
