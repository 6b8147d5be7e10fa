"""What changed from one run of a gate to another, such as on two kernels or at two commits.

Failures are compared by cause, and parts by section, target and device model. Kernels may have other names in the other
run. If no kernel of such a part is in both runs, the first one is compared with the first one of the other run, and so
on. A kernel that was built anew keeps its name: then the differences tell both builds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from postcrash.model.text import one_line
from postcrash.model.validation import shown
from postcrash.reports.gate.failure_text import headline, plural
from postcrash.store.gate_run import Failure, GateRun, Part

Sign = Literal["+", "-", "?", "~"]
Key = tuple[str, str, str]
Pair = tuple[Part | None, Part | None]


@dataclass(frozen=True, order=True, slots=True)
class Difference:
    """One difference.

    part   the title of the part; of a part with another kernel in the other run, it has both kernels
    cause  the id of the cause; empty if it is about the part itself
    sign   + is there now, - is gone, ~ is otherwise now, ? is in one run, and the other one cannot tell because it was
           not all run or decided
    what   in words
    """

    part: str
    cause: str
    sign: Sign
    what: str

    def __str__(self) -> str:
        return f"{self.sign} {self.part}: {self.what}"


def differences(old: GateRun, new: GateRun) -> list[Difference]:
    """All differences, sorted by part; those of a part itself stand before those of its failures."""
    rebuilt = {
        label: f"{label} ({build.short} → {new.kernels[label].short})"
        for label, build in old.kernels.items()
        if label in new.kernels and new.kernels[label].content != build.content
    }
    return sorted(found for pair in _pairs(old, new) for found in _of_pair(*_with_builds(pair, rebuilt)))


def difference_lines(old: GateRun, new: GateRun) -> Iterator[str]:
    """One line for each difference, without its end."""
    return map(str, differences(old, new))


def unlike(old: GateRun, new: GateRun) -> Iterator[str]:
    """What the runs were asked differently, a line each. Then a difference need not come from what was tested."""
    pairs = ((before, after) for before, after in _pairs(old, new) if before is not None and after is not None)
    asked = [(_asked(old), _asked(new)), *((_asked_of(before), _asked_of(after)) for before, after in pairs)]
    told = (
        f"{what}: {before[what]} in OLD, and {after[what]} in NEW"
        for before, after in asked
        for what in before
        if what in after and before[what] != after[what]
    )
    yield from dict.fromkeys(told)


def _asked(run: GateRun) -> dict[str, str]:
    """What a whole run was asked, by the words for it."""
    names = shown(", ".join(sorted(run.names))) if run.names else "all"
    return {
        "version": shown(run.version),
        "file": shown(run.file),
        "shards": shown(", ".join(run.shards)),
        "parts": names,
    }


def _asked_of(part: Part) -> dict[str, str]:
    """What a section was asked. The words do not name the target: on another one, the section is asked the same.

    If no kernel could run the part, its record does not say what had to hold.
    """
    asked: dict[str, str] = {"kind": part.kind, "expect": part.expect}
    if part.workloads or part.not_run:
        asked["hold"] = ", ".join(sorted(part.hold))
    return {f"{what} of part {shown(part.name)}": shown(value) for what, value in asked.items()}


def _pairs(old: GateRun, new: GateRun) -> Iterator[Pair]:
    before, after = _by_key(old), _by_key(new)
    for key in before | after:
        yield from _matched(before.get(key, {}), after.get(key, {}))


def _by_key(run: GateRun) -> dict[Key, dict[str, Part]]:
    """The parts by key and kernel."""
    found: dict[Key, dict[str, Part]] = {}
    for part in run.parts:
        found.setdefault((part.name, part.target, part.model), {})[part.kernel] = part
    return found


def _matched(old: dict[str, Part], new: dict[str, Part]) -> Iterator[Pair]:
    """Each part with the one that it is compared with, or with None."""
    if old.keys() & new.keys():
        yield from ((old.get(kernel), new.get(kernel)) for kernel in old | new)
        return
    first, second = list(old.values()), list(new.values())
    for number in range(max(len(first), len(second))):
        yield (first[number] if number < len(first) else None, second[number] if number < len(second) else None)


def _with_builds(pair: Pair, rebuilt: Mapping[str, str]) -> Pair:
    """The parts of both runs, each with the builds in place of its kernel's name, if that stands for two."""
    old, new = pair
    if old is None or new is None or old.kernel != new.kernel or new.kernel not in rebuilt:
        return pair
    about = {"kernel": rebuilt[new.kernel]}
    return old.model_copy(update=about), new.model_copy(update=about)


def _of_pair(old: Part | None, new: Part | None) -> Iterator[Difference]:
    title = _title(old, new)
    if old is None or new is None:
        part = old or new
        assert part is not None
        yield Difference(title, "", _sign(old), f"part {'added' if old is None else 'removed'}, {part.gated.name}")
    elif old.gated is not new.gated:
        yield Difference(title, "", "~", f"{old.gated.name} → {new.gated.name}")
    before, after = _failures(old), _failures(new)
    for cause in before | after:
        yield from _of_cause(title, before.get(cause), after.get(cause), (old, new))


def _title(old: Part | None, new: Part | None) -> str:
    if old is None or new is None or old.kernel == new.kernel:
        part = new or old
        assert part is not None
        return one_line(part.title)
    return one_line(new.model_copy(update={"kernel": f"{old.kernel} → {new.kernel}"}).title)


def _failures(part: Part | None) -> dict[str, Failure]:
    return {} if part is None else {failure.cause: failure for failure in part.failures}


def _of_cause(title: str, old: Failure | None, new: Failure | None, parts: Pair) -> Iterator[Difference]:
    """How a cause is otherwise. Counts of workloads say something only if as many workloads were run."""
    before, after = parts
    if old is None:
        assert new is not None
        yield _one_sided(title, "+", new, _why_open(before, after), "OLD")
    elif new is None:
        yield _one_sided(title, "-", old, _why_open(after, before), "NEW")
    elif (old.is_new, old.verdict) != (new.is_new, new.verdict):
        yield Difference(title, new.cause, "~", f"{_state(old)} → {_state(new)}: {_told(new)}")
    elif old.workloads != new.workloads and before and after and before.workloads == after.workloads:
        yield Difference(title, new.cause, "~", f"{old.workloads} → {new.workloads} workloads: {_told(new)}")


def _one_sided(title: str, sign: Sign, failure: Failure, why: str, silent: str) -> Difference:
    """A failure that only one run has. `why` says why the `silent` run may have it, too; empty if it cannot."""
    told = f"{_state(failure)}: {_told(failure)}"
    return Difference(title, failure.cause, "?" if why else sign, f"{told}; in {silent}: {why}" if why else told)


def _why_open(silent: Part | None, other: Part | None) -> str:
    """Why the `silent` run may have a failure that only the `other` one has. Empty if it ran all that could show it."""
    if silent is None:
        return "the part was not run"
    if silent.not_run:
        return f"{plural(silent.not_run, 'workload')} not run"
    undecided = [failure for failure in silent.failures if not failure.is_violated]
    if undecided or silent.verdict == "undecided":
        return headline(undecided[0]) if undecided else "undecided"
    there = {} if other is None else other.lacking
    if lacking := [one_line(name) for name, count in silent.lacking.items() if count > there.get(name, 0)]:
        return f"not there: {', '.join(lacking)}"
    if other is not None and silent.workloads < other.workloads:
        return f"{plural(silent.workloads, 'workload')} run instead of {other.workloads}"
    return ""


def _sign(old: object) -> Sign:
    """Of what is in only one of the runs."""
    return "+" if old is None else "-"


def _state(failure: Failure) -> str:
    known = "new" if failure.is_new else "known"
    return f"{known}, {failure.verdict}"


def _told(failure: Failure) -> str:
    return f"{failure.cause} {headline(failure)}"
