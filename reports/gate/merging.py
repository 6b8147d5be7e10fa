"""One result for all shards of a gate."""

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from postcrash.model import Verdict
from postcrash.model.validation import shown
from postcrash.reports.gate.fixed_lines import fixed_lines, unseen_by_all
from postcrash.reports.gate.untested_requirements import with_unasked
from postcrash.store.gate_run import UNTESTED, Failure, GateRun, Part, PartKey, smallest, validated
from postcrash.store.kernel_build import KernelBuild

_OF_ALL_SHARDS = ("postcrash", "file ", "folder ")
"""How the names of digests begin that each shard has."""


def merged(runs: Sequence[GateRun]) -> GateRun:
    """One result for all shards of a gate, in whichever order they are given.

    A line of the baseline is fixed if no shard saw its failure, and if each place where it was ever seen was run. What
    must hold must be put to the test in some shard.
    Raises ValueError if the runs are not shards of the same gate, if they rest on different targets, kernels or files,
    if a shard is missing or there twice, or a part within it, or if the result would be too large.
    """
    if not runs:
        raise ValueError("there is no result to merge")
    in_order = sorted(runs, key=lambda run: min(map(_number, run.shards)))
    first = in_order[0]
    for run in in_order:
        if (run.file, run.version, run.baseline) != (first.file, first.version, first.baseline):
            raise ValueError(f"results of different gates: {_gate(first)} and {_gate(run)}")
        if sorted(run.names) != sorted(first.names):
            told = (shown(", ".join(each.names) or "all parts") for each in (first, run))
            raise ValueError(f"results of different parts: {' and '.join(told)}")
    digests, kernels = _all_digests(in_order), _all_kernels(in_order)
    _check_no_part_is_missing(in_order)
    shares: dict[PartKey, list[Part]] = {}
    for run in in_order:
        _check_each_part_once(run)
        for part in run.parts:
            shares.setdefault(part.key, []).append(part)
    parts = with_unasked([_whole(each) for each in shares.values()])
    unseen = unseen_by_all([run.unseen for run in in_order])
    interrupted = any(run.interrupted for run in in_order)
    return validated(
        first,
        started=min(run.started for run in in_order),
        seconds=sum(run.seconds for run in in_order),
        shards=_all_shards([shard for run in in_order for shard in run.shards]),
        digests=digests,
        kernels=kernels,
        interrupted=interrupted,
        parts=parts,
        fixed=() if interrupted else fixed_lines(unseen, parts),
        unseen=unseen,
    )


def _number(shard: str) -> int:
    return int(shard.partition("/")[0])


def _gate(run: GateRun) -> str:
    return f"{shown(run.file)} with baseline {shown(run.baseline)}, postcrash {shown(run.version)}"


def _all_digests(in_order: Sequence[GateRun]) -> dict[str, str]:
    """What all runs rest on. Raises ValueError if two of them rest on different things of one name.

    Some runs lack targets and kernels that no workload of theirs needed. Each has postcrash and all files.
    """
    found: dict[str, tuple[str, GateRun]] = {}
    needed = {name: run for run in in_order for name in run.digests if name.startswith(_OF_ALL_SHARDS)}
    for run in in_order:
        for name, other in needed.items():
            if name not in run.digests:
                shards = (
                    f"shard {other.shards[0]} has {shown(name)}, and shard {run.shards[0]} does not say what it had"
                )
                raise ValueError(f"results of different gates: {shards}")
        for name, digest in run.digests.items():
            known, other = found.setdefault(name, (digest, run))
            if known != digest:
                both = f"{known} in shard {other.shards[0]} and {digest} in shard {run.shards[0]}"
                raise ValueError(f"results of different gates: the digest of {shown(name)} is {both}")
    return {name: digest for name, (digest, _) in found.items()}


def _all_kernels(in_order: Sequence[GateRun]) -> dict[str, KernelBuild]:
    """The builds of all kernels. Raises ValueError if two runs call different builds alike."""
    found: dict[str, KernelBuild] = {}
    for run in in_order:
        for label, build in run.kernels.items():
            known = found.setdefault(label, build)
            if known.content != build.content:
                builds = f"{known.short} and {build.short}"
                raise ValueError(f"results of different gates: {shown(label)} is {builds}")
    return found


def _check_each_part_once(run: GateRun) -> None:
    for key, count in Counter(part.key for part in run.parts).items():
        if count > 1:
            raise ValueError(f"shard {run.shards[0]} has the part {shown(key)} {count} times")


def _check_no_part_is_missing(in_order: Sequence[GateRun]) -> None:
    """Raise ValueError if a shard must have had a part that it does not have, such as one on another kernel.

    The i-th of n shards has every n-th workload, beginning with the i-th. So a shard has no workload of a part only if
    none after it has one, and none before it has two.
    """
    for number, run in enumerate(in_order):
        there = {part.key for part in run.parts}
        others = [part for each in in_order[:number] for part in each.parts if part.workloads + part.not_run > 1]
        others += [part for each in in_order[number + 1 :] for part in each.parts]
        for part in others:
            if part.key not in there:
                raise ValueError(f"shard {run.shards[0]} has no {shown(part.title)}, and another one has")


def _all_shards(shards: Sequence[str]) -> tuple[str, ...]:
    """The shards in order. Raises ValueError unless each is there once."""
    counts = Counter(shards)
    total = shards[0].partition("/")[2]
    wanted = [f"{number}/{total}" for number in range(1, int(total) + 1)]
    for shard in wanted:
        if counts[shard] != 1:
            there = "is missing" if counts[shard] == 0 else f"is there {counts[shard]} times"
            raise ValueError(f"shard {shard} {there}")
    if other := sorted(set(shards) - set(wanted)):
        raise ValueError(f"{other[0]} is no shard of {total}, as the others are")
    return tuple(wanted)


def _whole(shares: Sequence[Part]) -> Part:
    """One part for its shares. That a share has put nothing to the test is no failure if another one has."""
    is_tested = any(workloads for share in shares for workloads in share.tested.values())
    return reduce(joined, map(_without_untested, shares) if is_tested else shares)


def _without_untested(part: Part) -> Part:
    """The part without the failure that nothing was put to the test, and with the verdict that it has then."""
    left = tuple(failure for failure in part.failures if failure.is_violated or failure.message != UNTESTED)
    if len(left) == len(part.failures):
        return part
    is_explained = part.verdict == "undecided" and all(failure.is_violated for failure in left)
    return validated(part, failures=left, verdict="holds" if is_explained else part.verdict)


def joined(first: Part, second: Part) -> Part:
    """One part for two shards of it. Raises ValueError if they are not of the same section."""
    for what in ("kind", "expect", "hold"):
        one, other = (sorted(part.hold) if what == "hold" else getattr(part, what) for part in (first, second))
        if one != other:
            found = f"{shown(one)} and {shown(other)}"
            raise ValueError(f"results of different gates: {what} of {shown(first.title)} is {found}")
    failures: dict[str, Failure] = {}
    for failure in (*first.failures, *second.failures):
        same = failures.get(failure.cause)
        failures[failure.cause] = _same_cause(same, failure) if same else failure
    sums = ("workloads", "not_run", "instants", "recoveries", "remembered", "outcomes", "seconds")
    return validated(
        first,
        **{name: getattr(first, name) + getattr(second, name) for name in sums},
        states=str(int(first.states) + int(second.states)),
        states_total=str(int(first.states_total) + int(second.states_total)),
        verdict=max(first.verdict, second.verdict, key=lambda name: Verdict[name.upper()]),
        tested={name: first.tested.get(name, 0) + second.tested.get(name, 0) for name in first.tested | second.tested},
        lacking=dict(Counter(first.lacking) + Counter(second.lacking)),
        hold={name: None if second.hold[name] is None else why for name, why in first.hold.items()},
        failures=tuple(failures.values()),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def _same_cause(first: Failure, second: Failure) -> Failure:
    return validated(smallest((first, second)), workloads=first.workloads + second.workloads)
