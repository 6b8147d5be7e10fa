"""The result of a hunt, as text and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.text import Text

from postcrash.harness.examination.crash_in_recovery import SameRecovery
from postcrash.harness.examination.plan import Plan
from postcrash.harness.examination.result import counts_json
from postcrash.harness.expectations.expectation import Expectation
from postcrash.harness.expectations.objections import objections
from postcrash.harness.files.output import count_text
from postcrash.harness.hunting.causes import cause_of
from postcrash.harness.hunting.default_hunt import DefaultSelection
from postcrash.harness.hunting.groups import GroupSummary
from postcrash.harness.hunting.hunt_result import HuntResult
from postcrash.harness.hunting.losses import headline
from postcrash.harness.hunting.random_hunt import RandomSelection
from postcrash.harness.hunting.space_hunt import Selection
from postcrash.model import Verdict, parse_workload
from postcrash.properties.promises import Statements, statements_of
from postcrash.store.records import standing_json
from postcrash.workloads.random import CALLS_MAX, CALLS_MIN

NOTES_MAX = 5
HuntSelection = Selection | RandomSelection | DefaultSelection


@dataclass(frozen=True, slots=True)
class HuntReport:
    """What a hunt reports.

    plan     has the judges and recoveries of all probes
    groups   the findings, grouped by what is to blame
    seconds  how long the hunt explored
    """

    selection: HuntSelection
    plan: Plan
    expected: Expectation
    result: HuntResult
    groups: Sequence[GroupSummary]
    seconds: float

    @property
    def verdict_on_promises(self) -> Verdict:
        """The hunt's verdict, counting only the groups that break a promise; UNDECIDED if no promise was tested."""
        tested = self.result.tested
        if not any(tested[judge.name] and self._statements(judge.name).promise for judge in self.plan.judges):
            return Verdict.UNDECIDED
        broken = {
            cause: group for cause, group in self.result.groups.items() if self._statements(cause.checker).promise
        }
        return replace(self.result, groups=broken).verdict

    def to_json(self) -> dict[str, object]:
        """What `--json` gives."""
        result, plan = self.result, self.plan
        return {
            "verdict": result.verdict.name.lower(),
            "target": plan.target.name,
            "kernel": plan.kernel,
            "model": plan.how.model,
            "judges": [judge.name for judge in plan.judges],
            "tested": {name: result.tested[name] for name in self._judges},
            **_selection_json(self.selection),
            "held": list(self.selection.disks),
            "workloads": {
                "space": None if isinstance(self.selection, RandomSelection) else len(self.selection.space),
                "selected": self.selection.count,
                "new": result.new,
                "same": result.same,
                "alike": result.alike,
                "run": result.run,
                "lacking": dict(result.lacking),
                "refused": dict(result.refused),
                "undecided": dict(self._undecided),
                "cut_short": result.cut_short,
                "not_run": result.not_run,
            },
            **counts_json(result.counts),
            "seconds": round(self.seconds, 1),
            "notes": result.notes,
            "on_promises": self.verdict_on_promises.name.lower(),
            "expect": self.expected.name,
            "groups": [
                {
                    **_group_json(group),
                    **standing_json(self._statements(group.shown.checker), Verdict.VIOLATED),
                    "meaning": self._meaning(group),
                }
                for group in self.groups
            ],
        }

    def print(self, invocation: str) -> None:
        """Print the groups, what was left out, and the verdict with the counts that it rests on.

        `invocation` is how postcrash is called with the store that has the findings.
        """
        console = Console(soft_wrap=True, highlight=False)
        for number, group in enumerate(self.groups, 1):
            self._print_group(console, number, group, invocation)
        if self.groups:
            console.rule()
        result = self.result
        for title, reasons in (
            ("not on this file system", result.lacking),
            ("could not be run", result.refused),
            ("undecided", self._undecided),
        ):
            for reason, count in reasons.most_common():
                console.print(f"{title}: {count} workloads: {reason}", markup=False)
        if result.cut_short:
            text = f"{result.cut_short} workloads are violated, and not all of their crash states were looked at"
            console.print(f"{text} (--promised looks at all)", markup=False)
        if result.not_run:
            why = "interrupted" if result.interrupted else "--time"
            console.print(f"{result.not_run} of {self.selection.count} workloads were not run: {why}", markup=False)
        for note in result.notes[:NOTES_MAX]:
            console.print(f"note: {note}", markup=False)
        if len(result.notes) > NOTES_MAX:
            console.print(f"{len(result.notes) - NOTES_MAX} more notes: see --json")
        console.print(self._tested)
        console.print("; ".join(_selection_text(self.selection, result)))
        console.print(self._totals)

    def _print_group(self, console: Console, number: int, group: GroupSummary, invocation: str) -> None:
        console.rule(f"[red]{number}[/] · {group.count} workloads, first {group.names[0]}")
        console.print(Text(group.headline, "bold"))
        is_in_headline = group.headline.endswith(group.shown.message)
        console.print(f"{group.shown.checker}{'' if is_in_headline else f': {group.shown.message}'}", markup=False)
        for words in group.other_words:
            console.print(f"found as: {words}", markup=False)
        if meaning := self._meaning(group):
            console.print(meaning, markup=False)
        console.print(f"lost: {', '.join(cause_of(group.shown).lost) or 'nothing that had been sent'}", markup=False)
        console.print(_operations(group), markup=False, end="")
        if group.note:
            console.print(f"perhaps not the smallest: {group.note}", markup=False)
        console.print(f"explained: {invocation} explain {group.shown.id}", markup=False)
        for other in group.others:
            console.print(f"the same calls: {headline(other)}: {invocation} explain {other.id}", markup=False)

    def _statements(self, checker: str) -> Statements:
        return statements_of(self.plan.target, self.plan.how.model, checker)

    def _meaning(self, group: GroupSummary) -> str:
        """The rule that is broken. Of a comparison, which has none: what other judges object to in the same state."""
        if self.expected.compares:
            return "; ".join(f"also {objection.text}" for objection in objections(group.shown, self.plan.target))
        return self.expected.standing(self.plan.target, self.plan.how.model, group.shown.checker, Verdict.VIOLATED)

    @property
    def _judges(self) -> list[str]:
        """The names of all judges, in the order of the tables."""
        return [judge.name for judge in self.plan.judges] + [SameRecovery.name] * (self.plan.how.depth > 1)

    @property
    def _undecided(self) -> Counter[str]:
        """What could not be decided, and in how many workloads."""
        questions = self.result.open_questions()
        return Counter({f"{each.judges}: {each.words}": each.workloads for each in questions})

    @property
    def _tested(self) -> str:
        """For each judge, the number of workloads in which its premise was true. HOLDS without this says nothing."""
        counts = [(name, self.result.tested[name]) for name in self._judges]
        never = ", ".join(name for name, count in counts if not count)
        some = ", ".join(f"{name} {count}" for name, count in counts if count)
        tested = f"put to the test, of {self.result.run} workloads: {some or 'nothing'}"
        return tested + (f"; never: {never}" if never else "")

    @property
    def _totals(self) -> str:
        result, counts, how, disks = self.result, self.result.counts, self.plan.how, self.selection.disks
        within = ""
        if how.depth > 1:
            covered, total = count_text(counts["covered_within"]), count_text(counts["states_within"])
            within = f"{covered} of {total} within their recovery, "
        states = f"{count_text(counts['covered'])} of {count_text(counts['states'])} crash states"
        return (
            f"[bold]{result.verdict.name}[/] on {self.plan.target.name}, {self.plan.kernel}, device model {how.model}: "
            f"{result.run} workloads on "
            f"{f'{len(disks)} disks' if len(disks) > 1 else replace(how, held=disks[0]).disk}, {states} at "
            f"{counts['instants']} instants, {within}{counts['recoveries']} recoveries, "
            f"{counts['remembered']} remembered, {counts['outcomes']} outcomes, "
            f"{counts['rechecks']} run again; {self.seconds:.0f} s, "
            f"{result.run / self.seconds:.1f} workloads/s, {counts['recoveries'] / self.seconds:.0f} recoveries/s"
        )


def _selection_json(selection: HuntSelection) -> dict[str, object]:
    if isinstance(selection, RandomSelection):
        return {
            "random": True,
            "grammar": selection.grammar.name,
            "operations": [CALLS_MIN, CALLS_MAX],
            "setups": list(selection.grammar.setups),
            "seed": selection.seed,
        }
    if isinstance(selection, DefaultSelection):
        return {
            "random": False,
            "default": selection.space.counts,
            "shard": list(selection.shard),
            "sample": selection.limit,
            "symmetry": selection.symmetry,
        }
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


def _group_json(group: GroupSummary) -> dict[str, object]:
    return {
        "headline": group.headline,
        "checker": group.shown.checker,
        "message": group.shown.message,
        "lost": list(cause_of(group.shown).lost),
        "workload": _operations(group),
        "finding": group.representative.id,
        "minimal": None if group.minimal is None else group.minimal.id,
        "note": group.note,
        "count": group.count,
        "names": group.names,
        "causes": [cause.to_json() for cause in group.causes],
        "others": [{"finding": other.id, "headline": headline(other)} for other in group.others],
    }


def _operations(group: GroupSummary) -> str:
    return parse_workload(group.shown.workload_text, group.shown.workload_name).without_tail().to_text()


def _selection_text(selection: HuntSelection, result: HuntResult) -> Iterator[str]:
    """Which workloads were run, and which ones were left out."""
    if isinstance(selection, RandomSelection):
        grammar, setups = selection.grammar.name, ", ".join(selection.grammar.setups)
        drawn = f"grammar {grammar}, set-up {setups}, seed {selection.seed}"
        yield f"random workloads of {CALLS_MIN} to {CALLS_MAX} operations, {drawn}"
        yield f"{result.new} brought something new"
        return
    if isinstance(selection, DefaultSelection):
        mixture = ", ".join(f"{count} {words}" for words, count in selection.space.counts.items())
        yield f"{selection.count} of {len(selection.space)} workloads of the default hunt: {mixture}"
    else:
        space, count = selection.space, selection.count
        some = f"{count} of " if count < len(space) else ""
        setups = ", ".join(space.setups)
        yield (
            f"{some}{len(space)} workloads of {space.length} operations, grammar {space.grammar.name}, set-up {setups}"
        )
        if selection.sample is not None:
            yield f"drawn with seed {selection.seed}"
    if selection.shard != (1, 1):
        yield "shard {}/{}".format(*selection.shard)
    if result.same:
        yield f"{result.same} are equal to another"
    if result.alike:
        yield f"{result.alike} differ from another only in names and are left out (--no-symmetry runs them)"
