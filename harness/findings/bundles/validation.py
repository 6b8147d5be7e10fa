"""Validates findings before they are written to a bundle or read from one.

The parts of a finding must belong together, so that it shows what happened. It must not name commands that are not in
the catalogue, or files of this machine, since bundles come from strangers. And it must be cheap to examine.
"""

import json
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pydantic

from postcrash._core import Interval, Recording, intervals, write_state
from postcrash.harness.auditing import folder_judge
from postcrash.harness.auditing.application_lookup import catalogued
from postcrash.harness.auditing.judge import ABOUT, TEST
from postcrash.harness.errors import UsageError
from postcrash.harness.examination.crash_in_recovery import state_below
from postcrash.harness.examination.planner import plan_again
from postcrash.harness.examination.provenance import Provenance
from postcrash.harness.examination.recording_metadata import described_target
from postcrash.harness.examination.session import JUDGE_NAMES
from postcrash.harness.files.scratch import scratch
from postcrash.model import History, Observation, Workload, parse_workload
from postcrash.model.text import one_line
from postcrash.model.units import BLOCK_SECTORS
from postcrash.model.validation import first_objection, shown
from postcrash.recorders.events import WriteEvent, ZeroEvent, recording_events
from postcrash.reports.explanation import explanation
from postcrash.store.json_codec import Json, to_plain
from postcrash.store.records import COMPARED, Finding, parse_state_id, recording_id, state_id
from postcrash.targets import STACKS, TARGETS, VARIANTS, BaseImage, Target, image_id
from postcrash.targets.catalogue import SIZE_MIB_MAX

DISK_SECTORS_MAX = SIZE_MIB_MAX * 2048
COST_MAX = 5_000_000
"""The most blocks written, times events. The largest recording so far comes to 320,000."""
_REASON_MAX = 500
_COMPARED = re.compile(rf"{COMPARED}(kernel|target):([A-Za-z0-9][\w.+-]*)")


class RefusedError(ValueError):
    """A finding cannot be in a bundle. The text gives the reason."""


@dataclass(frozen=True, slots=True)
class BundleParts:
    """A finding with its files.

    recording    its recording
    below        the recording of the crash state under it, if the crash came within recovery
    base         the base image, and `base_digest` the SHA-256 of its content
    """

    finding: Finding
    recording: Path
    below: Path | None
    base: Path
    base_digest: str

    @property
    def of_workload(self) -> Path:
        """The recording of the workload."""
        return self.below or self.recording

    def facts(self) -> Json:
        """Returns the fields of a manifest that can be checked, as decoded JSON."""
        finding, metadata = self.finding, json.loads(Recording(self.of_workload).metadata)
        application = Provenance.from_wire(metadata).application
        facts = {
            "finding": finding.id,
            "state": finding.state,
            "kernel": finding.kernel,
            "guest": finding.guest,
            "recording": _content(self.recording),
            "below": None if self.below is None else _content(self.below),
            "base": {"id": image_id(self.base_digest), "digest": self.base_digest, "bytes": self.base.stat().st_size},
            "application": None if application is None else application.name,
            "target": asdict(_target(metadata, finding)),
        }
        plain: Json = json.loads(json.dumps(facts))
        return plain


def _target(metadata: Json, finding: Finding) -> Target:
    target = described_target(metadata, finding.id)
    if target is None:
        raise RefusedError("its recording does not describe its target")
    return target


def _content(path: Path) -> Json:
    digest = Recording(path).digest
    return {"id": recording_id(digest), "digest": digest, "bytes": path.stat().st_size}


def without_later_results(finding: Finding) -> Finding:
    """Returns the finding without results of later commands, such as minimizing."""
    return replace(finding, minimal=None, needed=None)


def validated(parts: BundleParts) -> Finding:
    """Returns the finding with a new explanation. Raises RefusedError if it cannot be in a bundle."""
    try:
        return _validated(parts)
    except pydantic.ValidationError as error:
        raise RefusedError(first_objection(error)) from error
    except (UsageError, ValueError, LookupError, OverflowError, RecursionError) as error:
        raise RefusedError(textwrap.shorten(one_line(str(error)), _REASON_MAX, placeholder=" …")) from error


def _validated(parts: BundleParts) -> Finding:
    finding = parts.finding
    recording, of_workload = Recording(parts.recording), Recording(parts.of_workload)
    _check_cost(recording)
    _check_cost(of_workload)
    metadata = json.loads(of_workload.metadata)
    provenance = Provenance.from_wire(metadata)
    target = _target(metadata, finding)
    workload = parse_workload(finding.workload_text, finding.workload_name)
    _check_text(finding, target)
    _check_ids(parts, recording, of_workload, provenance)
    _check_commands(target)
    _check_judge(finding)
    _check_programs(finding, workload, provenance)
    _check_recovery(finding, target)
    _check_identity(parts, target, metadata)
    History(workload, finding.started, finding.returned)
    if finding.observation is not None:
        Observation.from_wire(finding.observation)
    with _disk_image(parts) as image:
        return _explained(finding, recording, image)


def _check_cost(recording: Recording) -> None:
    """Bounds the cost of counting crash states: it grows with the blocks in flight at each event."""
    events = recording_events(recording)
    written = (event for event in events if isinstance(event, WriteEvent | ZeroEvent))
    blocks = sum(event.sectors // BLOCK_SECTORS + 1 for event in written)
    if recording.disk_sectors > DISK_SECTORS_MAX:
        limit = f"a guest's disk has at most {DISK_SECTORS_MAX}"
        raise RefusedError(f"its disk has {recording.disk_sectors} sectors, and {limit}")
    if blocks * len(events) > COST_MAX:
        raise RefusedError(f"its recording writes {blocks} blocks in {len(events)} events, which is too much")


def _check_text(finding: Finding, target: Target) -> None:
    """Texts that are printed as one line must be one line without control characters."""
    of_target = json.dumps(asdict(target), ensure_ascii=False)
    of_kernels = _texts([to_plain(finding.built), to_plain(finding.compared)])
    for text in (*of_kernels, finding.message, finding.kernel, finding.model, finding.workload_name, of_target):
        if not text.isprintable():
            raise RefusedError(f"expected text that can be printed, found {shown(text)}")


def _texts(plain: object) -> Iterator[str]:
    """Yields all texts in decoded JSON except names of fields."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, list | dict):
        for each in plain.values() if isinstance(plain, dict) else plain:
            yield from _texts(each)


def _check_ids(parts: BundleParts, recording: Recording, of_workload: Recording, provenance: Provenance) -> None:
    finding = parts.finding
    state = "" if finding.is_of_run else state_id(finding.recording, finding.interval, finding.choices)
    if state:
        parse_state_id(state)
    base = finding.base if parts.below is None else parse_state_id(finding.base)[0]
    content = image_id(parts.base_digest) if parts.below is None else recording_id(of_workload.digest)
    ids = (
        ("recording", finding.recording, recording_id(recording.digest)),
        ("crash state", finding.state, state),
        ("base", base, content),
        ("recorded base", provenance.base, image_id(parts.base_digest)),
    )
    for what, claimed, found in ids:
        if claimed != found:
            raise RefusedError(f"its {what} is {shown(claimed)}, but the content is that of {shown(found)}")


def _check_commands(target: Target) -> None:
    """Targets outside the catalogue may have other options and sizes, but not other commands.

    The package matters because users are advised to install it.
    """
    catalogue = (*TARGETS, *VARIANTS, *STACKS)
    if target in catalogue:
        return
    alike = [known for known in catalogue if known.fstype == target.fstype]
    commands = (
        ("mkfs", target.mkfs[:1], {known.mkfs[:1] for known in alike}),
        ("after_mkfs", target.after_mkfs, {(), *(known.after_mkfs for known in alike)}),
        ("fsck", target.fsck, {(), *(known.fsck for known in alike)}),
        ("repair", target.repair, {(), *(known.repair for known in alike)}),
        ("helper", target.helper, {()}),
        ("files", target.files, {()}),
        ("modules", target.modules, {(), *(known.modules for known in alike)}),
        ("package", (target.package,), {("",), *((known.package,) for known in alike)}),
    )
    for what, command, known in commands:
        if command not in known:
            raise RefusedError(
                f"its target {target.name} has {what} = {shown(list(command))}, which no {target.fstype} of the "
                f"catalogue has"
            )


def _check_judge(finding: Finding) -> None:
    name = finding.checker
    compared = _COMPARED.fullmatch(name)
    is_file = compared is not None and (compared[2].endswith(".toml") or os.path.exists(compared[2]))
    if is_file or not (compared or name in (*JUDGE_NAMES, folder_judge.NAME)):
        raise RefusedError(f"there is no judge {shown(name)}")
    if finding.reference_outcome is not None and not compared:
        raise RefusedError(f"it says what a reference shows, but {shown(name)} compares with none")


def _check_programs(finding: Finding, workload: Workload, provenance: Provenance) -> None:
    """Programs must belong to an application of the catalogue, and replaying the finding must not run any."""
    if not workload.runs_programs and finding.checker != folder_judge.NAME:
        return
    application = provenance.application
    if application is None:
        raise RefusedError("it runs a program of no application, and only those of the catalogue are run")
    if catalogued(application) is None:
        raise RefusedError(f"its check {shown(application.check)} is not of the catalogue, and no others are run")
    if finding.is_of_run or finding.reference_name:
        raise RefusedError("to see it again its workload would have to run a program")


def _check_recovery(finding: Finding, target: Target) -> None:
    if finding.is_of_run:
        return
    claimed = finding.recovery
    kind = target.recovery(
        walk=claimed.walk, fsck=bool(claimed.fsck), use=claimed.use_after, repair=claimed.is_repaired
    )
    expected = replace(kind, map=claimed.map, bytes=claimed.bytes).to_wire()
    if json.loads(json.dumps(expected)) != finding.recover:
        raise RefusedError(f"it was not recovered as {target.name} is: {shown(finding.recover)}")


def _check_identity(parts: BundleParts, target: Target, metadata: Json) -> None:
    """The id is a digest of the finding's content, so that no other finding can have it."""
    finding = parts.finding
    if target.name != finding.target:
        raise RefusedError(f"it is on {shown(finding.target)}, but was recorded on {target.name}")
    id = id_of(finding, target, BaseImage(parts.base, image_id(parts.base_digest)), metadata)
    if id != finding.id:
        raise RefusedError(f"it is called {shown(finding.id)}, but its content is that of {id}")


def id_of(finding: Finding, target: Target, base: BaseImage, metadata: Json) -> str:
    """Computes the id of a finding from the metadata of its recording. Raises ValueError or UsageError."""
    plan = plan_again(
        finding,
        target,
        base,
        Provenance.from_wire(metadata),
        kernel=finding.kernel,
        guest=finding.guest,
        explainer=explanation,
    )
    about = {name: metadata[name] for name in (ABOUT, TEST) if name in metadata}
    recover = None if finding.is_of_run else finding.recovery
    is_within = state_below(finding) is not None
    return replace(plan, about=about).finding_id(finding.checker, finding.message, recover, within_recovery=is_within)


@contextmanager
def _disk_image(parts: BundleParts) -> Iterator[Path]:
    """Yields the disk on which the recording was made: the base image, or the crash state under it."""
    if parts.below is None:
        yield parts.base
        return
    _, interval, choices = parse_state_id(parts.finding.base)
    with scratch() as folder:
        image = folder / "image"
        write_state(Recording(parts.below), parts.base, parts.finding.model, interval, choices, image)
        yield image


def _explained(finding: Finding, recording: Recording, image: Path) -> Finding:
    """Returns the finding with its explanation. Raises RefusedError if its recording has no such crash state."""
    known = intervals(recording, image, finding.model)
    if finding.is_of_run and not known:
        return replace(finding, explanation=None)
    if not 0 <= finding.interval < len(known):
        raise RefusedError(f"it has crash interval {finding.interval}, and its recording has {len(known)}")
    _check_losses(finding, known[finding.interval])
    return replace(finding, explanation=explanation.explain(finding, recording, image))


def _check_losses(finding: Finding, interval: Interval) -> None:
    losses = tuple(interval.lost(finding.choices)), interval.torn(finding.choices)
    if losses != (finding.lost, finding.torn):
        raise RefusedError(f"its crash state loses {shown(losses)}, not {shown((finding.lost, finding.torn))}")
