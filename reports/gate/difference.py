"""The differences between two runs of a gate, such as on two kernels or at two commits.

Failures are compared by cause, and parts by section, target and device model. Kernels may have other names in the other
run. If no kernel of such a part is in both runs, the first one is compared with the first one of the other run, and so
on. If a kernel was built anew under the same name, differences name both builds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from postcrash.model.numbers import plural
from postcrash.model.text import one_line
from postcrash.model.validation import shown
from postcrash.reports.gate.failure_text import headline
from postcrash.store.gate_run import Failure, GateRun, Part

Sign = Literal["+", "-", "?", "~"]
Pair = tuple[Part | None, Part | None]
"""A part in the old run and in the new one; None where it was not run."""


@dataclass(frozen=True, order=True, slots=True)
class Difference:
    """One difference.

    part   the title of the part; with both kernels if they have other names
    cause  the id of the cause; empty if the difference is in the part itself
    sign   + only in the new run, - only in the old run, ~ changed, ? only in one run, and the other one cannot tell
           because it was not all run or decided
    what   in words
    """

    part: str
    cause: str
    sign: Sign
    what: str

    def __str__(self) -> str:
        return f"{self.sign} {self.part}: {self.what}"


def differences(old: GateRun, new: GateRun) -> list[Difference]:
    """All differences, sorted by part. Those of a part itself precede those of its failures."""
    rebuilt = {
        label: f"{label} ({build.short} → {new.kernels[label].short})"
        for label, build in old.kernels.items()
        if label in new.kernels and new.kernels[label].content != build.content
    }
    return sorted(found for pair in _pairs(old, new) for found in _of_pair(*_with_builds(pair, rebuilt)))


def different_questions(old: GateRun, new: GateRun) -> Iterator[str]:
    """A line for each setting that differs between the runs. A difference of results can come from this alone."""
    pairs = ((before, after) for before, after in _pairs(old, new) if before is not None and after is not None)
    settings = [(_settings(old), _settings(new))]
    settings += [(_part_settings(before), _part_settings(after)) for before, after in pairs]
    lines = (
        f"{what}: {before[what]} in OLD, and {after[what]} in NEW"
        for before, after in settings
        for what in before
        if what in after and before[what] != after[what]
    )
    yield from dict.fromkeys(lines)


def _settings(run: GateRun) -> dict[str, str]:
    return {
        "version": shown(run.version),
        "file": shown(run.file),
        "shards": shown(", ".join(run.shards)),
        "parts": shown(", ".join(sorted(run.names))) if run.names else "all",
    }


def _part_settings(part: Part) -> dict[str, str]:
    """Settings of the part's section. They do not depend on the target.

    The result of a part that no kernel could run does not have the properties that must hold.
    """
    settings: dict[str, str] = {"kind": part.kind, "expect": part.expect}
    if part.workloads or part.not_run:
        settings["hold"] = ", ".join(sorted(part.hold))
    return {f"{what} of part {shown(part.name)}": shown(value) for what, value in settings.items()}


def _pairs(old: GateRun, new: GateRun) -> Iterator[Pair]:
    """Each part with the one that it is compared with, or with None."""
    before, after = _by_key(old), _by_key(new)
    for key in before | after:
        old_parts, new_parts = before.get(key, {}), after.get(key, {})
        if old_parts.keys() & new_parts.keys():
            yield from ((old_parts.get(kernel), new_parts.get(kernel)) for kernel in old_parts | new_parts)
        else:
            yield from zip_longest(old_parts.values(), new_parts.values())


def _by_key(run: GateRun) -> dict[tuple[str, str, str], dict[str, Part]]:
    """The parts by section, target and device model, and then by kernel."""
    found: dict[tuple[str, str, str], dict[str, Part]] = {}
    for part in run.parts:
        found.setdefault((part.name, part.target, part.model), {})[part.kernel] = part
    return found


def _with_builds(pair: Pair, rebuilt: Mapping[str, str]) -> Pair:
    """The parts of both runs, each with the builds in place of its kernel's name, if that stands for two."""
    old, new = pair
    if old is None or new is None or old.kernel != new.kernel or new.kernel not in rebuilt:
        return pair
    kernel = {"kernel": rebuilt[new.kernel]}
    return old.model_copy(update=kernel), new.model_copy(update=kernel)


def _of_pair(old: Part | None, new: Part | None) -> Iterator[Difference]:
    part = new or old
    assert part is not None
    if old is not None and new is not None and old.kernel != new.kernel:
        part = new.model_copy(update={"kernel": f"{old.kernel} → {new.kernel}"})
    title = one_line(part.title)
    if old is None:
        yield Difference(title, "", "+", f"part added, {part.gate_verdict.name}")
    elif new is None:
        yield Difference(title, "", "-", f"part removed, {part.gate_verdict.name}")
    elif old.gate_verdict is not new.gate_verdict:
        yield Difference(title, "", "~", f"{old.gate_verdict.name} → {new.gate_verdict.name}")
    before, after = _by_cause(old), _by_cause(new)
    for cause in before | after:
        yield from _of_cause(title, before.get(cause), after.get(cause), (old, new))


def _by_cause(part: Part | None) -> dict[str, Failure]:
    return {} if part is None else {failure.cause: failure for failure in part.failures}


def _of_cause(title: str, old: Failure | None, new: Failure | None, parts: Pair) -> Iterator[Difference]:
    """The difference for one cause. Counts of workloads are compared only if as many workloads were run."""
    before, after = parts
    if old is None:
        assert new is not None
        yield _one_sided(title, "+", new, _why_unknown(before, after), "OLD")
    elif new is None:
        yield _one_sided(title, "-", old, _why_unknown(after, before), "NEW")
    elif (old.is_new, old.verdict) != (new.is_new, new.verdict):
        yield Difference(title, new.cause, "~", f"{_state(old)} → {_state(new)}: {_summary(new)}")
    elif old.workloads != new.workloads and before and after and before.workloads == after.workloads:
        yield Difference(title, new.cause, "~", f"{old.workloads} → {new.workloads} workloads: {_summary(new)}")


def _one_sided(title: str, sign: Sign, failure: Failure, why: str, other: str) -> Difference:
    """A failure that only one run has. `why` says why the `other` run may have it, too; empty if it cannot."""
    what = f"{_state(failure)}: {_summary(failure)}"
    return Difference(title, failure.cause, "?" if why else sign, f"{what}; in {other}: {why}" if why else what)


def _why_unknown(without: Part | None, other: Part | None) -> str:
    """Why the part `without` a failure of the `other` one may have it. Empty if it ran all that could show it."""
    if without is None:
        return "the part was not run"
    if without.not_run:
        return f"{plural(without.not_run, 'workload')} not run"
    undecided = [failure for failure in without.failures if not failure.is_violated]
    if undecided or without.verdict == "undecided":
        return headline(undecided[0]) if undecided else "undecided"
    lacking = {} if other is None else other.lacking
    if names := [one_line(name) for name, count in without.lacking.items() if count > lacking.get(name, 0)]:
        return f"not there: {', '.join(names)}"
    if other is not None and without.workloads < other.workloads:
        return f"{plural(without.workloads, 'workload')} run instead of {other.workloads}"
    return ""


def _state(failure: Failure) -> str:
    return f"{'new' if failure.is_new else 'known'}, {failure.verdict}"


def _summary(failure: Failure) -> str:
    return f"{failure.cause} {headline(failure)}"
