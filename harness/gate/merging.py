"""Decides what only a whole gate can tell: the result of all shards, fixed lines, and untested requirements."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path

from pydantic import ValidationError

from postcrash.harness.errors import UsageError
from postcrash.model import Verdict
from postcrash.model.text import one_line
from postcrash.model.validation import TooLargeError, first_objection, read_bounded, shown
from postcrash.store.gate_run import (
    UNTESTED,
    Failure,
    FixedLine,
    GateRun,
    Part,
    PartKey,
    UnseenLine,
    smallest,
    validated,
)
from postcrash.store.kernel_build import KernelBuild

RESULT_BYTES_MAX = 256 * 1024 * 1024
"""The largest file with a result that is read."""
_DIGESTS_OF_ALL_SHARDS = ("postcrash", "file ", "folder ")
"""Digests whose names begin with one of these are in the result of every shard."""


def load_result(path: Path | str) -> GateRun:
    """Reads the result in the file `path`, which may come from anywhere.

    Raises UsageError. Its text is one line with the file, the place in it, and what was found there.
    """
    try:
        return GateRun.model_validate_json(read_bounded(Path(path), RESULT_BYTES_MAX))
    except TooLargeError as error:
        raise UsageError(one_line(str(error))) from None
    except OSError as error:
        raise UsageError(f"{one_line(str(path))}: {error.strerror}") from None
    except ValidationError as error:
        raise UsageError(f"{one_line(str(path))}: {first_objection(error)}") from None


def merged(runs: Sequence[GateRun]) -> GateRun:
    """Joins the results of all shards of a gate, in whichever order they are given.

    A line of the baseline is fixed if no shard saw its failure, and if each place where it was ever seen was run.
    Properties that must hold must be put to the test in some shard.
    Raises ValueError if the runs are not shards of the same gate, if they rest on different targets, kernels or files,
    if a shard is missing or there twice, or a part within it, or if the result would be too large.
    """
    if not runs:
        raise ValueError("there is no result to merge")
    in_order = sorted(runs, key=lambda run: min(int(shard.partition("/")[0]) for shard in run.shards))
    first = in_order[0]
    _check_same_gate(in_order)
    digests, kernels = _all_digests(in_order), _all_kernels(in_order)
    _check_no_part_is_missing(in_order)
    shares: dict[PartKey, list[Part]] = {}
    for run in in_order:
        for key, count in Counter(part.key for part in run.parts).items():
            if count > 1:
                raise ValueError(f"shard {run.shards[0]} has the part {shown(key)} {count} times")
        for part in run.parts:
            shares.setdefault(part.key, []).append(part)
    parts = with_untested_requirements([_joined_shares(parts) for parts in shares.values()])
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


def fixed_lines(unseen: Iterable[UnseenLine], parts: Sequence[Part]) -> tuple[FixedLine, ...]:
    """The `unseen` lines whose failures are certainly gone. No part of the whole gate shows a failure of these lines.

    A line is fixed only if its failure was ever seen, and if everything was run that could show it: each place where it
    was seen is that of a part, and nothing in any of the parts is left open or not supported.
    """
    if any(part.lacking or part.not_run or not all(failure.is_violated for failure in part.failures) for part in parts):
        return ()
    places = {part.sighting for part in parts}
    return tuple(
        FixedLine(line=line.line, cause=line.cause, why=line.why)
        for line in unseen
        if line.places and places.issuperset(line.places)
    )


def unseen_by_all(runs: Iterable[Sequence[UnseenLine]]) -> tuple[UnseenLine, ...]:
    """The lines whose failures no shard shows, each with the places where any of their stores had seen its failure."""
    by_line = [{(line.line, line.cause, line.why): set(line.places) for line in run} for run in runs]
    common = set.intersection(*map(set, by_line)) if by_line else set()
    return tuple(
        UnseenLine(line=line, cause=cause, why=why, places=tuple(sorted(set.union(*(run[key] for run in by_line)))))
        for key in sorted(common)
        for line, cause, why in [key]
    )


def with_untested_requirements(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Adds a failure to each part of a whole gate in which a property must hold that no workload puts to the test.

    All parts of one target, kernel and device model count together. If one of them lacked time, it is not known yet
    what it would put to the test. Then nothing is added, so that no line of the baseline can accept it.
    """
    tested = {(*part.key[1:], name) for part in parts for name, workloads in part.tested.items() if workloads}
    unknown = {
        part.key[1:] for part in parts if part.not_run or any(failure.is_lack_of_time for failure in part.failures)
    }
    checked = []
    for part in parts:
        untested = [name for name in part.hold if (*part.key[1:], name) not in tested]
        known = {failure.cause for failure in part.failures}
        new = [failure for failure in map(part.untested_requirement, untested) if failure.cause not in known]
        if new and part.key[1:] not in unknown:
            verdict = "undecided" if part.verdict == "holds" else part.verdict
            part = validated(part, failures=(*part.failures, *new), verdict=verdict)
        checked.append(part)
    return tuple(checked)


def _check_same_gate(runs: Sequence[GateRun]) -> None:
    first = runs[0]
    for run in runs:
        if (run.file, run.version, run.baseline) != (first.file, first.version, first.baseline):
            gates = (
                f"{shown(each.file)} with baseline {shown(each.baseline)}, postcrash {shown(each.version)}"
                for each in (first, run)
            )
            raise ValueError(f"results of different gates: {' and '.join(gates)}")
        if sorted(run.names) != sorted(first.names):
            names = (shown(", ".join(each.names) or "all parts") for each in (first, run))
            raise ValueError(f"results of different parts: {' and '.join(names)}")


def _all_digests(runs: Sequence[GateRun]) -> dict[str, str]:
    """The digests of all runs. Raises ValueError if two runs have different digests of one name.

    Some runs lack targets and kernels that no workload of theirs needed. Each has postcrash and all files.
    """
    found: dict[str, tuple[str, GateRun]] = {}
    required = {name: run for run in runs for name in run.digests if name.startswith(_DIGESTS_OF_ALL_SHARDS)}
    for run in runs:
        if missing := next((name for name in required if name not in run.digests), None):
            shard, another = run.shards[0], required[missing].shards[0]
            shards = f"shard {another} has {shown(missing)}, and shard {shard} does not say what it had"
            raise ValueError(f"results of different gates: {shards}")
        for name, digest in run.digests.items():
            known, other = found.setdefault(name, (digest, run))
            if known != digest:
                both = f"{known} in shard {other.shards[0]} and {digest} in shard {run.shards[0]}"
                raise ValueError(f"results of different gates: the digest of {shown(name)} is {both}")
    return {name: digest for name, (digest, _) in found.items()}


def _all_kernels(runs: Sequence[GateRun]) -> dict[str, KernelBuild]:
    """The builds of all kernels. Raises ValueError if two runs call different builds alike."""
    found: dict[str, KernelBuild] = {}
    for run in runs:
        for label, build in run.kernels.items():
            known = found.setdefault(label, build)
            if known.content != build.content:
                builds = f"{known.short} and {build.short}"
                raise ValueError(f"results of different gates: {shown(label)} is {builds}")
    return found


def _check_no_part_is_missing(in_order: Sequence[GateRun]) -> None:
    """Raise ValueError if a shard must have had a part that it does not have, such as one on another kernel.

    The i-th of n shards has every n-th workload, beginning with the i-th. So a shard has no workload of a part only if
    none after it has one, and none before it has two.
    """
    for number, run in enumerate(in_order):
        present = {part.key for part in run.parts}
        others = [part for before in in_order[:number] for part in before.parts if part.workloads + part.not_run > 1]
        others += [part for after in in_order[number + 1 :] for part in after.parts]
        for part in others:
            if part.key not in present:
                raise ValueError(f"shard {run.shards[0]} has no {shown(part.title)}, and another one has")


def _all_shards(shards: Sequence[str]) -> tuple[str, ...]:
    """The shards in order. Raises ValueError unless each is there once."""
    counts = Counter(shards)
    total = shards[0].partition("/")[2]
    expected = [f"{number}/{total}" for number in range(1, int(total) + 1)]
    for shard in expected:
        if counts[shard] != 1:
            problem = "is missing" if counts[shard] == 0 else f"is there {counts[shard]} times"
            raise ValueError(f"shard {shard} {problem}")
    if other := sorted(set(shards) - set(expected)):
        raise ValueError(f"{other[0]} is no shard of {total}, as the others are")
    return tuple(expected)


def _joined_shares(shares: Sequence[Part]) -> Part:
    """Joins the shares of one part. A share that put nothing to the test is no failure if another one did."""
    is_tested = any(workloads for share in shares for workloads in share.tested.values())
    return reduce(joined, map(_without_untested, shares) if is_tested else shares)


def _without_untested(part: Part) -> Part:
    """The part without the failure that nothing was put to the test, and with the verdict that it has then."""
    others = tuple(failure for failure in part.failures if failure.is_violated or failure.message != UNTESTED)
    if len(others) == len(part.failures):
        return part
    is_explained = part.verdict == "undecided" and all(failure.is_violated for failure in others)
    return validated(part, failures=others, verdict="holds" if is_explained else part.verdict)


def joined(first: Part, second: Part) -> Part:
    """One part for two shards of it. Raises ValueError if they are not of the same section."""
    for what in ("kind", "expect", "hold"):
        one, other = (sorted(part.hold) if what == "hold" else getattr(part, what) for part in (first, second))
        if one != other:
            found = f"{shown(one)} and {shown(other)}"
            raise ValueError(f"results of different gates: {what} of {shown(first.title)} is {found}")
    failures: dict[str, Failure] = {}
    for failure in (*first.failures, *second.failures):
        if same := failures.get(failure.cause):
            failure = validated(smallest((same, failure)), workloads=same.workloads + failure.workloads)
        failures[failure.cause] = failure
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
