"""The report of a gate's result: its parts down, targets and kernels across."""

from collections.abc import Iterator
from typing import Final

from postcrash.model import Verdict
from postcrash.model.numbers import counted, grouped, plural
from postcrash.reports.gate.failure_text import fixed_line, unexplained_verdict
from postcrash.reports.page.report import HeatMap, Listing, Report, ReportEntry, Square, TableColumn, TableRow, Tile
from postcrash.store.gate_run import Failure, GateRun, Part

TITLE = "Gate"
NOTES_MAX = 20
"""The most notes of a part that are shown."""

_STANDINGS: Final = {Verdict.VIOLATED: "new", Verdict.UNDECIDED: "undecided", Verdict.HOLDS: "holds"}
_SORTS: Final = {"violated": "new", "undecided": "undecided", "known": "known"}
_HEADINGS = (
    *("expected", "crash states", "recoveries", "remembered", "outcomes", "instants"),
    *("workloads", "not run", "seconds", "put to the test"),
)


def report_of_gate(run: GateRun) -> Report:
    """The report of `run`."""
    return Report(
        title=TITLE,
        standing=_STANDINGS[run.verdict],
        headline=_headline(run),
        about=tuple(_about(run)),
        tiles=tuple(_tiles(run)),
        heat_map=_heat_map(run),
        sections=tuple(_sections(run)),
    )


def _headline(run: GateRun) -> str:
    counts = run.counts()
    numbers = [plural(counts.new, "new failure")] if counts.new else []
    numbers += [f"{counts.undecided} undecided"] if counts.undecided else []
    if run.verdict is Verdict.UNDECIDED and not numbers:
        return "Not everything could be decided"
    return ", ".join(numbers) or "Nothing new is broken"


def _about(run: GateRun) -> Iterator[str]:
    yield f"{run.file}, begun at {run.started}, {run.seconds:.0f} s, postcrash {run.version}"
    yield f"known failures: {run.baseline or 'no baseline'}"
    if run.shards != ("1/1",):
        yield f"shards {', '.join(run.shards)}"
    yield from (f"{label}: {build.description}" for label, build in run.kernels.items())


def _tiles(run: GateRun) -> Iterator[Tile]:
    counts = run.counts()
    yield Tile("new", str(counts.new), "new")
    yield Tile("undecided", str(counts.undecided), "undecided")
    yield Tile("known", str(counts.known), "known")
    yield Tile("fixed", str(counts.fixed))
    yield Tile("crash states covered", counted(counts.states), exactly=grouped(counts.states))


def _heat_map(run: GateRun) -> HeatMap:
    targets = list(dict.fromkeys(part.target for part in run.parts))
    columns = tuple(sorted(dict.fromkeys(map(_column, run.parts)), key=lambda column: targets.index(column.target)))
    parts = {(part.name, _column(part)): part for part in run.parts}
    by_name: dict[str, list[Part]] = {}
    for part in run.parts:
        by_name.setdefault(part.name, []).append(part)
    return HeatMap(
        heading="Parts of the gate",
        rows_are="part",
        columns=columns,
        rows=tuple(
            TableRow(
                name=name,
                title=section[0].kind,
                judges=tuple(dict.fromkeys(judge for part in section for judge in _judges(part))),
                squares=tuple(_square(parts.get((name, column))) for column in columns),
            )
            for name, section in by_name.items()
        ),
        headings=_HEADINGS,
        notes=("✗ new failures, ? undecided, (✗) known failures only, ✓ holds, with the number of failures",),
    )


def _column(part: Part) -> TableColumn:
    return TableColumn(part.target, part.kernel + ("" if part.model == "cache" else f", {part.model}"))


def _judges(part: Part) -> list[str]:
    return [*part.tested, *(judge for failure in part.failures for judge in _judges_of(failure))]


def _judges_of(failure: Failure) -> tuple[str, ...]:
    return tuple(filter(None, failure.judge.split(", ")))


def _square(part: Part | None) -> Square | None:
    if part is None:
        return None
    more = len(part.notes) - NOTES_MAX
    return Square(
        standing="known" if part.failures and part.gate_verdict is Verdict.HOLDS else _STANDINGS[part.gate_verdict],
        evidence=tuple(_evidence(part)),
        marks=f" {len(part.failures)}" if part.failures else "",
        entries=tuple(_entries(part)),
        note="; ".join([*part.notes[:NOTES_MAX], *([f"{more} more notes"] if more > 0 else [])]),
    )


def _evidence(part: Part) -> Iterator[str]:
    yield part.expect
    yield f"{grouped(int(part.states))} of {grouped(int(part.states_total))}"
    yield from map(grouped, (part.recoveries, part.remembered, part.outcomes, part.instants))
    yield from map(grouped, (part.workloads, part.not_run))
    yield f"{part.seconds:.0f}"
    yield ", ".join(f"{judge} {count}" for judge, count in part.tested.items()) or "nothing"


def _entries(part: Part) -> Iterator[ReportEntry]:
    """The failures, and a verdict that no failure explains."""
    yield from (_entry(failure, part) for failure in part.failures)
    if reason := unexplained_verdict(part):
        yield ReportEntry(
            _STANDINGS[part.gate_verdict], (), part.target, _column(part).kernel, reason, facts=(("part", part.name),)
        )


def _entry(failure: Failure, part: Part) -> ReportEntry:
    facts = {
        "part": part.name,
        "workload": failure.name,
        "its file": failure.file,
        "workloads that fail so": str(failure.workloads) if failure.is_violated else "",
        "rule": failure.standing,
        "other rules": "; ".join(failure.objections),
        "kinds of lost writes": ", ".join(failure.lost),
        "known because": failure.accepted_because,
        "more than is known": failure.growth,
        "not the same each time": failure.varies,
        "cause": failure.cause,
    }
    return ReportEntry(
        standing=_SORTS[failure.sort],
        judges=_judges_of(failure),
        target=part.target,
        kernel=_column(part).kernel,
        message=failure.message,
        finding=failure.finding,
        facts=tuple((name, value) for name, value in facts.items() if value),
        operations=failure.operations,
    )


def _sections(run: GateRun) -> Iterator[Listing]:
    if run.fixed:
        yield Listing(f"Fixed: lines of {run.baseline} that can go", tuple(map(fixed_line, run.fixed)))
