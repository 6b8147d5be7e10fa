"""The result of a hunt, as text and as JSON."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from postcrash.harness.examination.crash_in_recovery import SameRecovery
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import COUNTS
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.objections import objections
from postcrash.harness.files.output import count_text
from postcrash.harness.hunting.default_hunt import DefaultSelection
from postcrash.harness.hunting.groups import GroupSummary, kinds_lost
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.losses import headline
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import Verdict, parse_workload
from postcrash.properties.promises import Statements, said_of
from postcrash.store.records import standing_json
from postcrash.workloads.random import CALLS_MAX, CALLS_MIN

NOTES_MAX = 5
HuntSelection = Selection | RandomSelection | DefaultSelection


def verdict_on_promises(plan: Plan, hunted: HuntResult) -> Verdict:
    """The hunt's verdict, counting only the groups that break a promise; UNDECIDED if no promise was tested."""
    if not any(hunted.tested[judge.name] and _said(plan, judge.name).promise for judge in plan.judges):
        return Verdict.UNDECIDED
    groups = {cause: group for cause, group in hunted.groups.items() if _said(plan, cause.checker).promise}
    return replace(hunted, groups=groups).verdict


def _said(plan: Plan, checker: str) -> Statements:
    return said_of(plan.target, plan.how.model, checker)


def to_json(
    selection: HuntSelection,
    plan: Plan,
    expected: Expectation,
    hunted: HuntResult,
    told: list[GroupSummary],
    seconds: float,
) -> dict[str, object]:
    """What `--json` gives. `seconds` is how long the hunt explored."""
    counts = hunted.counts
    return {
        "verdict": hunted.verdict.name.lower(),
        "target": plan.target.name,
        "kernel": plan.kernel,
        "model": plan.how.model,
        "judges": [judge.name for judge in plan.judges],
        "tested": {name: hunted.tested[name] for name in _judges(plan)},
        **_selected(selection),
        "held": list(selection.disks),
        "workloads": {
            "space": None if isinstance(selection, RandomSelection) else len(selection.space),
            "selected": selection.count,
            "new": hunted.new,
            "same": hunted.same,
            "alike": hunted.alike,
            "run": hunted.run,
            "lacking": dict(hunted.lacking),
            "refused": dict(hunted.refused),
            "undecided": dict(_undecided(hunted)),
            "cut_short": hunted.cut_short,
            "not_run": hunted.not_run,
        },
        "states": str(counts["covered"]),
        "states_total": str(counts["states"]),
        "states_within_recovery": str(counts["covered_within"]),
        "states_within_recovery_total": str(counts["states_within"]),
        **{name: counts[name] for name in COUNTS},
        "seconds": round(seconds, 1),
        "notes": hunted.notes,
        "on_promises": verdict_on_promises(plan, hunted).name.lower(),
        "expect": expected.name,
        "groups": [
            {
                **_summary(summary),
                **standing_json(_said(plan, summary.shown.checker), Verdict.VIOLATED),
                "meaning": _meaning(plan, expected, summary),
            }
            for summary in told
        ],
    }


def _meaning(plan: Plan, expected: Expectation, summary: GroupSummary) -> str:
    """The rule that is broken. Of a comparison, which has none: what other judges object to in the same state."""
    if expected.compares:
        return "; ".join(f"also {objection.told}" for objection in objections(summary.shown, plan.target))
    return expected.standing(plan.target, plan.how.model, summary.shown.checker, Verdict.VIOLATED)


def _selected(selection: HuntSelection) -> dict[str, object]:
    if isinstance(selection, RandomSelection):
        grammar, operations = selection.grammar, [CALLS_MIN, CALLS_MAX]
        drawn = {"grammar": grammar.name, "operations": operations, "setups": list(grammar.setups)}
        return {"random": True, **drawn, "seed": selection.seed}
    if isinstance(selection, DefaultSelection):
        chosen = {"shard": list(selection.shard), "sample": selection.limit, "symmetry": selection.symmetry}
        return {"random": False, "default": selection.space.counts, **chosen}
    return {
        "random": False,
        "seed": selection.seed,
        "grammar": selection.space.grammar.name,
        "operations": selection.space.length,
        "setups": list(selection.space.setups),
        "shard": list(selection.shard),
        "sample": selection.sample,
        "symmetry": selection.symmetry,
    }


def _judges(plan: Plan) -> list[str]:
    """The names of all judges, in the order of the tables."""
    return [judge.name for judge in plan.judges] + [SameRecovery.name] * (plan.how.depth > 1)


def _summary(summary: GroupSummary) -> dict[str, object]:
    return {
        "headline": summary.headline,
        "checker": summary.shown.checker,
        "message": summary.shown.message,
        "lost": list(kinds_lost(summary.shown)),
        "workload": parse_workload(summary.shown.workload_text, summary.shown.workload_name).without_tail().to_text(),
        "finding": summary.representative.id,
        "minimal": None if summary.minimal is None else summary.minimal.id,
        "note": summary.note,
        "count": summary.count,
        "names": summary.names,
        "causes": [cause.to_json() for cause in summary.causes],
        "others": [{"finding": other.id, "headline": headline(other)} for other in summary.others],
    }


def print_hunted(
    selection: HuntSelection,
    plan: Plan,
    expected: Expectation,
    hunted: HuntResult,
    told: list[GroupSummary],
    seconds: float,
    *,
    invocation: str,
) -> None:
    """Print the groups, what was left out, and the verdict with the counts that it rests on.

    `invocation` is how postcrash is called with the store that has the findings.
    """
    console = Console(soft_wrap=True, highlight=False)
    for number, summary in enumerate(told, 1):
        console.rule(f"[red]{number}[/] · {summary.count} workloads, first {summary.names[0]}")
        console.print(Text(summary.headline, "bold"))
        is_told = summary.headline.endswith(summary.shown.message)
        console.print(f"{summary.shown.checker}{'' if is_told else f': {summary.shown.message}'}", markup=False)
        for words in summary.other_words:
            console.print(f"found as: {words}", markup=False)
        if meaning := _meaning(plan, expected, summary):
            console.print(meaning, markup=False)
        console.print(f"lost: {', '.join(kinds_lost(summary.shown)) or 'nothing that had been sent'}", markup=False)
        console.print(_summary(summary)["workload"], markup=False, end="")
        if summary.note:
            console.print(f"perhaps not the smallest: {summary.note}", markup=False)
        console.print(f"explained: {invocation} explain {summary.shown.id}", markup=False)
        for other in summary.others:
            console.print(f"the same calls: {headline(other)}: {invocation} explain {other.id}", markup=False)
    if told:
        console.rule()
    for title, reasons in (
        ("not on this file system", hunted.lacking),
        ("could not be run", hunted.refused),
        ("undecided", _undecided(hunted)),
    ):
        for reason, count in reasons.most_common():
            console.print(f"{title}: {count} workloads: {reason}", markup=False)
    if hunted.cut_short:
        text = f"{hunted.cut_short} workloads are violated, and not all of their crash states were looked at"
        console.print(f"{text} (--promised looks at all)", markup=False)
    if hunted.not_run:
        why = "interrupted" if hunted.interrupted else "--time"
        console.print(f"{hunted.not_run} of {selection.count} workloads were not run: {why}", markup=False)
    for note in hunted.notes[:NOTES_MAX]:
        console.print(f"note: {note}", markup=False)
    if len(hunted.notes) > NOTES_MAX:
        console.print(f"{len(hunted.notes) - NOTES_MAX} more notes: see --json")
    console.print(_tested(plan, hunted))
    console.print(_asked(selection, hunted))
    console.print(_came_to(selection, plan, hunted, seconds))


def _undecided(hunted: HuntResult) -> Counter[str]:
    """What could not be decided, and in how many workloads."""
    return Counter({f"{each.judges}: {each.words}": each.workloads for each in hunted.open_questions()})


def _tested(plan: Plan, hunted: HuntResult) -> str:
    """For each judge, the number of workloads in which its premise was true. HOLDS without this says nothing."""
    counts = [(name, hunted.tested[name]) for name in _judges(plan)]
    never = ", ".join(name for name, count in counts if not count)
    some = ", ".join(f"{name} {count}" for name, count in counts if count)
    return f"put to the test, of {hunted.run} workloads: {some or 'nothing'}" + (f"; never: {never}" if never else "")


def _asked(selection: HuntSelection, hunted: HuntResult) -> str:
    """Which workloads were run, and which ones were left out."""
    if isinstance(selection, RandomSelection):
        lengths = f"{CALLS_MIN} to {CALLS_MAX} operations"
        drawn = f"grammar {selection.grammar.name}, set-up {', '.join(selection.grammar.setups)}, seed {selection.seed}"
        return f"random workloads of {lengths}, {drawn}; {hunted.new} brought something new"
    if isinstance(selection, DefaultSelection):
        parts = [f"{selection.count} of {len(selection.space)} workloads of the default hunt: {_mixture(selection)}"]
        return "; ".join([*parts, *_left_out(selection, hunted)])
    space = selection.space
    setups = f"set-up {', '.join(space.setups)}"
    of = f"{len(space)} workloads of {space.length} operations, grammar {space.grammar.name}, {setups}"
    parts = [f"{len(selection.numbers())} of {of}" if len(selection.numbers()) < len(space) else of]
    if selection.sample is not None:
        parts.append(f"drawn with seed {selection.seed}")
    return "; ".join([*parts, *_left_out(selection, hunted)])


def _mixture(selection: DefaultSelection) -> str:
    return ", ".join(f"{count} {words}" for words, count in selection.space.counts.items())


def _left_out(selection: Selection | DefaultSelection, hunted: HuntResult) -> Iterator[str]:
    if selection.shard != (1, 1):
        yield "shard {}/{}".format(*selection.shard)
    if hunted.same:
        yield f"{hunted.same} are equal to another"
    if hunted.alike:
        yield f"{hunted.alike} differ from another only in names and are left out (--no-symmetry runs them)"


def _came_to(selection: HuntSelection, plan: Plan, hunted: HuntResult, seconds: float) -> str:
    counts = hunted.counts
    within = ""
    if plan.how.depth > 1:
        covered, total = count_text(counts["covered_within"]), count_text(counts["states_within"])
        within = f"{covered} of {total} within their recovery, "
    verdict: Verdict = hunted.verdict
    disks = (
        f"{len(selection.disks)} disks" if len(selection.disks) > 1 else replace(plan.how, held=selection.disks[0]).disk
    )
    states = f"{count_text(counts['covered'])} of {count_text(counts['states'])} crash states"
    return (
        f"[bold]{verdict.name}[/] on {plan.target.name}, {plan.kernel}, device model {plan.how.model}: "
        f"{hunted.run} workloads on {disks}, {states} at "
        f"{counts['instants']} instants, {within}{counts['recoveries']} recoveries, "
        f"{counts['remembered']} remembered, {counts['outcomes']} outcomes, "
        f"{counts['rechecks']} run again; {seconds:.0f} s, "
        f"{hunted.run / seconds:.1f} workloads/s, {counts['recoveries'] / seconds:.0f} recoveries/s"
    )
